import pytest
import torch
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2ForSequenceClassification

from benchmarks.glue.arguments import FineTuningArguments
from benchmarks.glue.costs import measure_costs
from benchmarks.glue.tasks import GLUE_TASKS
from benchmarks.glue.train import create_accelerator
from hf_lineage import (
    ElmoConfig,
    ElmoForSequenceClassification,
    ElmoTokenizer,
    LineageAlbertConfig,
    LineageAlbertForSequenceClassification,
    LineageXLNetConfig,
    LineageXLNetForSequenceClassification,
)

WIDTH, INNER, LAYERS, LABELS = 16, 40, 3, 2
SIZES = {"vocab_size": 20, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": INNER}


class PieceCollator:
    """Makes an example of as many pieces as its text has characters."""

    task = GLUE_TASKS["sst2"]

    def __call__(self, examples: list[dict]) -> dict[str, torch.Tensor]:
        length = max(len(example["sentence"]) for example in examples)
        ids = torch.ones(len(examples), length, dtype=torch.long)
        mask = torch.tensor([[1] * len(e["sentence"]) + [0] * (length - len(e["sentence"])) for e in examples])
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([e["label"] for e in examples])}


class CharacterCollator:
    task = GLUE_TASKS["sst2"]

    def __call__(self, examples: list[dict]) -> dict[str, torch.Tensor]:
        batch = ElmoTokenizer()([example["sentence"] for example in examples], padding=True, return_tensors="pt")
        return {**batch, "labels": torch.tensor([example["label"] for example in examples])}


@pytest.fixture
def accelerator():
    return create_accelerator(FineTuningArguments(output_dir="unused"))


def texts(*lengths: int) -> Dataset:
    return Dataset.from_list([{"sentence": "a" * length, "label": 1} for length in lengths])


def layer_flops(tokens: int) -> int:
    """Four projections, scores and their sums of values, and a feed-forward block."""
    return 8 * tokens * WIDTH**2 + 4 * tokens**2 * WIDTH + 4 * tokens * WIDTH * INNER


def head_flops() -> int:
    return 2 * WIDTH * WIDTH + 2 * WIDTH * LABELS


def test_a_transformer_is_counted_as_by_hand(accelerator):
    model = BertForSequenceClassification(BertConfig(hidden_size=WIDTH, num_labels=LABELS, **SIZES))
    costs = measure_costs(accelerator, model, PieceCollator(), texts(7), texts(5))
    assert costs.forward_flops == LAYERS * layer_flops(7) + head_flops()
    # The backward pass has two products for each of the forward pass.
    assert costs.train_flops == 3 * (LAYERS * layer_flops(5) + head_flops())


def test_a_shared_layer_counts_each_time_it_runs(accelerator):
    config = LineageAlbertConfig(hidden_size=WIDTH, embedding_size=8, num_labels=LABELS, **SIZES)
    model = LineageAlbertForSequenceClassification(config)
    costs = measure_costs(accelerator, model, PieceCollator(), texts(7), None)
    assert costs.forward_flops == 2 * 7 * 8 * WIDTH + LAYERS * layer_flops(7) + head_flops()
    assert costs.train_flops == 0
    layer = sum(parameter.numel() for parameter in model.albert.attention_blocks.parameters())
    assert layer < 6 * WIDTH**2  # there is only one


def test_relative_attention_counts_its_positions(accelerator):
    config = LineageXLNetConfig(
        vocab_size=20, d_model=WIDTH, n_layer=1, n_head=2, d_inner=INNER, num_labels=LABELS, summary_use_proj=False
    )
    model = LineageXLNetForSequenceClassification(config)
    one = measure_costs(accelerator, model, PieceCollator(), texts(7), None).forward_flops
    # Twice as many positions as tokens go through a projection of their own.
    assert one >= layer_flops(7) + 2 * (2 * 7) * WIDTH**2 + 2 * WIDTH * LABELS


def test_characters_are_counted_where_they_are_read(accelerator):
    """Each distinct word once, as wide as the longest and one filter more; the LSTMs read every word."""
    filters, width, size, head = [[1, 4], [3, 8]], 12, 10, 9
    config = ElmoConfig(
        hidden_size=width,
        lstm_hidden_size=size,
        char_cnn_filters=filters,
        num_highway_layers=1,
        classifier_hidden_size=head,
        num_labels=LABELS,
    )
    model = ElmoForSequenceClassification(config)
    split = Dataset.from_list([{"sentence": "a b cde f a", "label": 1}])
    costs = measure_costs(accelerator, model, CharacterCollator(), split, None)
    # a, b, cde, f, and both ends of the sentence; "cde" has 5 characters with its own ends
    distinct, words, characters = 6, 7, 5 + 3
    convolutions = sum(2 * distinct * (characters - w + 1) * number * w * 16 for w, number in filters)
    highway_and_projection = 2 * distinct * 12 * 2 * 12 + 2 * distinct * 12 * width // 2
    lstm_layer = 2 * words * (2 * (width // 2) * 4 * size + size * (width // 2))
    expected = convolutions + highway_and_projection + 2 * 2 * lstm_layer + 2 * width * head + 2 * head * LABELS
    assert costs.forward_flops == expected


def test_a_frozen_encoder_has_no_backward_pass(accelerator):
    model = BertForSequenceClassification(BertConfig(hidden_size=WIDTH, num_labels=LABELS, **SIZES))
    model.bert.requires_grad_(False)
    costs = measure_costs(accelerator, model, PieceCollator(), texts(5), texts(5), freeze_encoder=True)
    assert costs.train_flops == costs.forward_flops + 2 * WIDTH * LABELS  # of the classifier's weights only


def test_examples_of_all_lengths_count(accelerator):
    model = GPT2ForSequenceClassification(
        GPT2Config(vocab_size=20, n_embd=WIDTH, n_layer=1, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=0)
    )
    model.config.pad_token_id = 0
    split = texts(*range(32, 0, -1))
    alone = [
        measure_costs(accelerator, model, PieceCollator(), texts(length), None).forward_flops for length in (2, 32)
    ]
    # 16 of 32: every second, from the second on
    every_second = [
        measure_costs(accelerator, model, PieceCollator(), texts(length), None).forward_flops
        for length in range(2, 33, 2)
    ]
    mean = measure_costs(accelerator, model, PieceCollator(), split, None).forward_flops
    assert mean == pytest.approx(sum(every_second) / 16)
    assert alone[0] < mean < alone[1]


def test_measuring_changes_neither_weights_nor_random_numbers(accelerator):
    model = BertForSequenceClassification(BertConfig(hidden_size=WIDTH, num_labels=LABELS, **SIZES))
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    costs = measure_costs(accelerator, model, PieceCollator(), texts(4, 5), texts(4, 5))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert costs.latency_seconds.keys() == {1, 32}
    assert 0 < costs.latency_seconds[32] < costs.latency_seconds[1]
