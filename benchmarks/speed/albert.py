"""The ALBERT-style family against transformers' ALBERT and BERT.

Both sides have the same random weights. Dropout is off, so that their outputs, losses and gradients can be compared;
transformers' classes run with their defaults otherwise (sdpa attention, `gelu_new` in ALBERT).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AlbertModel,
    BertConfig,
    BertForPreTraining,
    PreTrainedConfig,
    PreTrainedModel,
)

from benchmarks.speed.cases import Case, Workload, largest_difference, relative_difference
from benchmarks.speed.twins import Batch, gradients_as_transformers, own_twin, training_step
from hf_lineage import LineageAlbertForPreTraining, LineageAlbertModel

IGNORED = -100  # a label that is not predicted
SPECIAL_TOKENS = 5  # ids below are not drawn
# Single-precision sums in another order: at base width outputs differ by some 1e-6
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Sizes:
    """Sizes of models and batches; the defaults are ALBERT's and BERT's base models.

    Args:
        hidden_size: Width of the layers.
        num_hidden_layers: Number of layers.
        num_attention_heads: Attention heads.
        intermediate_size: Width inside the feed-forward blocks.
        embedding_size: ALBERT's embedding width; BERT's is `hidden_size`.
        albert_vocab_size: Rows of ALBERT's word table.
        bert_vocab_size: Rows of BERT's.
        batch_size: Rows of a batch without padding.
        num_tokens: Tokens of its rows, and the most that a row of a batch with padding has.
        ragged_batch_sizes: Rows of each batch with padding.
        mean_length: Mean number of tokens of its rows, before those above `num_tokens` are cut.
        median_length: Median of them.
    """

    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    embedding_size: int = 128
    albert_vocab_size: int = 30000
    bert_vocab_size: int = 30522
    batch_size: int = 8
    num_tokens: int = 128
    ragged_batch_sizes: tuple[int, ...] = (16, 32, 16, 32, 16, 32, 16, 32)
    mean_length: float = 28
    median_length: float = 23


# A small model on long pairs: what nobody asks of the last layer is most of the work there
LONG = Sizes(
    hidden_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=256,
    embedding_size=64,
    albert_vocab_size=8000,
    batch_size=16,
    num_tokens=2048,
)


def cases(sizes: Sizes = Sizes(), long_sizes: Sizes = LONG) -> list[Case]:
    """Return the comparisons of the family.

    Args:
        sizes: Sizes of models and batches.
        long_sizes: Those of pretraining on long pairs.
    """
    shape = f"{sizes.batch_size}x{sizes.num_tokens}"
    step = f"pretraining step {shape}: forward, backward, AdamW"
    return [
        Case(
            name="pretraining",
            description=step,
            baseline="AlbertForPreTraining",
            candidate="LineageAlbertForPreTraining",
            wanted=1.12,
            tolerance=TOLERANCE,
            build=partial(_pretraining, sizes, AlbertForPreTraining, _albert_config(sizes), "sentence_order_label"),
        ),
        Case(
            name="pretraining-bert",
            description=f"{step}, BERT's setting",
            baseline="BertForPreTraining",
            candidate="LineageAlbertForPreTraining",
            wanted=1.20,
            tolerance=TOLERANCE,
            build=partial(_pretraining, sizes, BertForPreTraining, _bert_config(sizes), "next_sentence_label"),
        ),
        Case(
            name="pretraining-long",
            description=f"pretraining step of a small model, {long_sizes.batch_size} rows of "
            f"{long_sizes.num_tokens // 2} to {long_sizes.num_tokens} tokens",
            baseline="AlbertForPreTraining",
            candidate="LineageAlbertForPreTraining, padding_free=True",
            wanted=None,
            tolerance=TOLERANCE,
            build=partial(
                _pretraining,
                long_sizes,
                AlbertForPreTraining,
                _albert_config(long_sizes),
                "sentence_order_label",
                padding_free=True,
            ),
        ),
        *(
            Case(
                name=f"glue-{way}{suffix}",
                description=f"evaluation, lengths as in GLUE, padded to {padded_to}",
                baseline="AlbertModel",
                candidate=f"LineageAlbertModel, {candidate}",
                wanted=wanted,
                tolerance=TOLERANCE,
                build=partial(_ragged_forward, sizes, pad_to, way),
            )
            for suffix, pad_to, padded_to, wanted in (
                ("", None, "the longest of the batch", 2.5),
                (f"-{sizes.num_tokens}", sizes.num_tokens, str(sizes.num_tokens), None),
            )
            for way, candidate in (("packed", "packed row"), ("padding-free", "padding_free=True"))
        ),
        Case(
            name="forward",
            description=f"evaluation, {shape}, no padding",
            baseline="AlbertModel",
            candidate="LineageAlbertModel",
            wanted=1.05,
            tolerance=TOLERANCE,
            build=partial(_plain_forward, sizes),
        ),
    ]


def _common_fields(sizes: Sizes) -> dict[str, Any]:
    return {
        "hidden_size": sizes.hidden_size,
        "num_hidden_layers": sizes.num_hidden_layers,
        "num_attention_heads": sizes.num_attention_heads,
        "intermediate_size": sizes.intermediate_size,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def _albert_config(sizes: Sizes) -> AlbertConfig:
    return AlbertConfig(
        vocab_size=sizes.albert_vocab_size,
        embedding_size=sizes.embedding_size,
        classifier_dropout_prob=0.0,
        max_position_embeddings=max(512, sizes.num_tokens),
        **_common_fields(sizes),
    )


def _bert_config(sizes: Sizes) -> BertConfig:
    return BertConfig(vocab_size=sizes.bert_vocab_size, classifier_dropout=0.0, **_common_fields(sizes))


def _twins(
    peer_class: type[PreTrainedModel], config: PreTrainedConfig, own_class: type[PreTrainedModel]
) -> tuple[PreTrainedModel, PreTrainedModel]:
    """A model of transformers with random weights, biases and LayerNorms included, and ours with the same."""
    torch.manual_seed(0)
    peer = peer_class(config)
    return peer, own_twin(peer, own_class)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _tokens(lengths: torch.Tensor, num_tokens: int, vocab_size: int, generator: torch.Generator) -> Batch:
    """Random tokens in rows of these lengths, padded to `num_tokens`; the second half of each row is segment 1."""
    positions = torch.arange(num_tokens)
    attention_mask = (positions < lengths[:, None]).long()
    shape = (len(lengths), num_tokens)
    input_ids = torch.randint(SPECIAL_TOKENS, vocab_size, shape, generator=generator)
    return {
        "input_ids": input_ids * attention_mask,
        "attention_mask": attention_mask,
        "token_type_ids": (positions >= lengths[:, None] // 2).long() * attention_mask,
    }


def _full_batch(sizes: Sizes, vocab_size: int, generator: torch.Generator, shortest: float = 1.0) -> Batch:
    """Rows of all lengths between that share of the tokens and all of them, by default without padding."""
    lengths = torch.linspace(shortest * sizes.num_tokens, sizes.num_tokens, sizes.batch_size).long()
    return _tokens(lengths, sizes.num_tokens, vocab_size, generator)


def _pretraining(
    sizes: Sizes,
    peer_class: type[PreTrainedModel],
    config: PreTrainedConfig,
    sentence_label: str,
    padding_free: bool = False,
) -> Workload:
    """A step with 15 % of the tokens predicted; padding-free, of rows that are up to half padding."""
    peer, own = (model.train() for model in _twins(peer_class, config, LineageAlbertForPreTraining))
    own.config.padding_free = padding_free
    generator = _generator()
    batch = _full_batch(sizes, config.vocab_size, generator, 0.5 if padding_free else 1.0)
    input_ids, is_token = batch["input_ids"], batch["attention_mask"].bool()
    # padding has the last places
    ranks = torch.rand(input_ids.shape, generator=generator).masked_fill(~is_token, 2).argsort(1).argsort(1)
    is_predicted = ranks < (0.15 * is_token.sum(1, keepdim=True)).round()
    batch["labels"] = input_ids.where(is_predicted, torch.tensor(IGNORED))
    batch[sentence_label] = torch.randint(2, (sizes.batch_size,), generator=generator)
    return Workload(
        baseline=training_step(peer),
        candidate=training_step(own),
        inputs=[batch],
        differences=partial(_training_differences, peer, own),
        facts={"predicted_tokens": int(is_predicted.sum()), "tokens": int(is_token.sum())},
    )


def _training_differences(peer: PreTrainedModel, own: PreTrainedModel, batch: Batch) -> dict[str, float]:
    losses = [model(**batch).loss for model in (own, peer)]
    for loss in losses:
        loss.backward()
    expected = {name: parameter.grad for name, parameter in peer.named_parameters()}
    differences = {
        "loss": largest_difference(*losses),
        "gradients (of the largest)": relative_difference(gradients_as_transformers(own), expected),
    }
    for model in (peer, own):
        model.zero_grad()
    return differences


def _plain_forward(sizes: Sizes) -> Workload:
    config = _albert_config(sizes)
    peer, own = (model.eval() for model in _twins(AlbertModel, config, LineageAlbertModel))
    batch = _full_batch(sizes, config.vocab_size, _generator())
    run_peer, run_own = _forward(peer), _forward(own)

    def differences(value: Batch) -> dict[str, float]:
        return _output_differences(run_own(value), run_peer(value))

    return Workload(run_peer, run_own, [batch], differences, {"tokens": batch["input_ids"].numel()})


def _ragged_forward(sizes: Sizes, pad_to: int | None, way: str) -> Workload:
    """Batches of the lengths that GLUE's sentences have, which ours computes without their padding.

    Args:
        sizes: Sizes of models and batches.
        pad_to: Tokens that rows are padded to; `None` for the longest of each batch.
        way: `"packed"`, where ours is given packed rows, or `"padding-free"`, where it is given the padded batches.
    """
    config = _albert_config(sizes)
    peer, own = (model.eval() for model in _twins(AlbertModel, config, LineageAlbertModel))
    own.config.padding_free = way == "padding-free"
    generator = _generator()
    # All lengths first, so that they do not depend on `pad_to`
    drawn = [glue_lengths(batch_size, sizes, generator) for batch_size in sizes.ragged_batch_sizes]
    padded = [_tokens(lengths, pad_to or int(lengths.max()), config.vocab_size, generator) for lengths in drawn]
    is_packed = way == "packed"
    inputs = [(batch, packed_row(batch) if is_packed else batch) for batch in padded]
    run_peer, run_own = _forward(peer), _forward(own)

    def differences(value: tuple[Batch, Batch]) -> dict[str, float]:
        batch, own_batch = value
        is_token = batch["attention_mask"].bool()
        (expected, expected_pooled), (actual, actual_pooled) = run_peer(batch), run_own(own_batch)
        actual = actual[0] if is_packed else actual[is_token]
        return _output_differences((actual, actual_pooled), (expected[is_token], expected_pooled))

    real = sum(int(batch["attention_mask"].sum()) for batch in padded)
    computed = sum(batch["input_ids"].numel() for batch in padded)
    return Workload(
        baseline=lambda value: run_peer(value[0]),
        candidate=lambda value: run_own(value[1]),
        inputs=inputs,
        differences=differences,
        facts={"real_tokens": real, "padded_tokens": computed, "padded_tokens_per_real_token": computed / real},
    )


def glue_lengths(count: int, sizes: Sizes, generator: torch.Generator) -> torch.Tensor:
    """Draw `(count,)` int64 log-normal lengths, at least 3 ([CLS], a word, [SEP]) and at most `sizes.num_tokens`."""
    # The median of a log-normal distribution is exp(mu), its mean is exp(mu + sigma ** 2 / 2)
    mu = math.log(sizes.median_length)
    sigma = math.sqrt(2 * (math.log(sizes.mean_length) - mu))
    normal = torch.randn(count, generator=generator)
    return (mu + sigma * normal).exp().round().long().clamp(3, sizes.num_tokens)


def packed_row(batch: Batch) -> Batch:
    """The same sequences without padding in one row, as `DataCollatorWithFlattening` would collate them."""
    is_token = batch["attention_mask"].bool()
    ends = is_token.sum(1).cumsum(0)
    return {
        "input_ids": batch["input_ids"][is_token][None],
        "token_type_ids": batch["token_type_ids"][is_token][None],
        "cu_seq_lens_q": nn.functional.pad(ends, (1, 0)).int(),
    }


def _forward(model: PreTrainedModel) -> Callable[[Batch], tuple[torch.Tensor, torch.Tensor]]:
    @torch.inference_mode()
    def forward(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        output = model(**batch)
        return output.last_hidden_state, output.pooler_output

    return forward


def _output_differences(
    actual: tuple[torch.Tensor, torch.Tensor], expected: tuple[torch.Tensor, torch.Tensor]
) -> dict[str, float]:
    return {
        "last_hidden_state": largest_difference(actual[0], expected[0]),
        "pooler_output": largest_difference(actual[1], expected[1]),
    }
