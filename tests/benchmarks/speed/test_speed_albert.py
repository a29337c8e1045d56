from dataclasses import replace

import pytest
import torch

from benchmarks.speed import albert
from benchmarks.speed.albert import IGNORED, Sizes, cases, glue_lengths, packed_row
from benchmarks.speed.cases import run_case

TINY = Sizes(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    embedding_size=16,
    albert_vocab_size=101,
    bert_vocab_size=97,
    batch_size=3,
    num_tokens=20,
    ragged_batch_sizes=(4, 6),
    mean_length=9,
    median_length=7,
)
TINY_LONG = replace(TINY, num_tokens=60)
CASES = {case.name: case for case in cases(TINY, TINY_LONG)}
TRAINING = ["pretraining", "pretraining-bert", "pretraining-long"]
PADDED = ["glue-packed", "glue-padding-free", "glue-packed-20", "glue-padding-free-20"]


@pytest.fixture
def spoil_ours(monkeypatch):
    """Makes every case's own model pass through a function before it is used."""

    def spoil(function):
        twins = albert._twins

        def spoiled(*args):
            peer, own = twins(*args)
            function(own)
            return peer, own

        monkeypatch.setattr(albert, "_twins", spoiled)

    return spoil


def test_the_cases_have_names_of_their_own():
    assert set(CASES) == {*TRAINING, *PADDED, "forward"}
    assert len(CASES) == len(cases(TINY, TINY_LONG))


@pytest.mark.parametrize("name", CASES)
def test_every_case_runs_and_both_sides_agree(name):
    result = run_case(CASES[name], num_pairs=1)
    compared = {"loss", "gradients (of the largest)"} if name in TRAINING else {"last_hidden_state", "pooler_output"}
    assert set(result.differences) == compared
    assert all(difference <= 1e-5 for difference in result.differences.values())
    num_inputs = len(TINY.ragged_batch_sizes) if name in PADDED else 1
    assert all(len(times.ratios) == 2 * num_inputs for times in result.times.values())


@pytest.mark.parametrize("name", CASES)
def test_other_weights_are_found_out(name, spoil_ours):
    @spoil_ours
    def shift_a_bias(own):
        with torch.no_grad():
            own.base_model.attention_blocks[0].value.bias.add_(1e-2)

    with pytest.raises(ValueError, match=f"{name}: .* differ in "):
        run_case(CASES[name], num_pairs=1)


@pytest.mark.parametrize("name", TRAINING)
def test_other_gradients_are_found_out(name, spoil_ours):
    @spoil_ours
    def scale_a_gradient(own):
        own.base_model.ffn_blocks[0].down_proj.weight.register_hook(lambda gradient: 1.01 * gradient)

    with pytest.raises(ValueError, match=r"differ in gradients \(of the largest\) by"):
        run_case(CASES[name], num_pairs=1)


@pytest.mark.parametrize("name", TRAINING)
def test_a_pretraining_step_trains_both_alike(name, monkeypatch):
    made = []
    twins = albert._twins
    monkeypatch.setattr(albert, "_twins", lambda *args: made.extend(twins(*args)) or made)
    workload = CASES[name].build()
    peer, own = made
    assert peer.training
    assert own.training
    before = {key: value.clone() for key, value in peer.state_dict().items()}
    for _ in range(3):
        workload.baseline(workload.inputs[0])
        workload.candidate(workload.inputs[0])
    assert all(parameter.grad is None for model in made for parameter in model.parameters())
    after, converted = peer.state_dict(), own.to_transformers().state_dict()
    moved = [key for key in before if not torch.equal(before[key], after[key])]
    assert len(moved) > len(before) / 2
    for key in moved:
        torch.testing.assert_close(converted[key], after[key], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "lengths", "predicted"),
    [
        ("pretraining", [20, 20, 20], [3, 3, 3]),
        ("pretraining-bert", [20, 20, 20], [3, 3, 3]),
        ("pretraining-long", [30, 45, 60], [4, 7, 9]),
    ],
)
def test_fifteen_percent_of_the_tokens_are_predicted(name, lengths, predicted):
    workload = CASES[name].build()
    (batch,) = workload.inputs
    is_predicted = batch["labels"] != IGNORED
    assert batch["attention_mask"].sum(1).tolist() == lengths
    assert is_predicted.sum(1).tolist() == predicted
    assert not (is_predicted & (batch["attention_mask"] == 0)).any()
    assert workload.facts == {"predicted_tokens": sum(predicted), "tokens": sum(lengths)}
    assert torch.equal(batch["labels"][is_predicted], batch["input_ids"][is_predicted])
    assert {"sentence_order_label", "next_sentence_label"} & set(batch)


@pytest.mark.parametrize("name", PADDED)
def test_batches_are_padded_as_the_case_says(name):
    workload = CASES[name].build()
    masks = [batch["attention_mask"] for batch, _ in workload.inputs]
    assert tuple(len(mask) for mask in masks) == TINY.ragged_batch_sizes
    for mask in masks:
        longest = int(mask.sum(1).max())
        assert mask.shape[1] == (TINY.num_tokens if name.endswith("20") else longest)
    assert workload.facts["real_tokens"] == sum(int(mask.sum()) for mask in masks)
    assert workload.facts["padded_tokens"] == sum(mask.numel() for mask in masks)


def test_cases_with_padding_have_sentences_of_the_same_lengths():
    lengths = [[batch["attention_mask"].sum(1).tolist() for batch, _ in CASES[name].build().inputs] for name in PADDED]
    assert lengths[0] == lengths[1] == lengths[2] == lengths[3]


@pytest.mark.parametrize("name", PADDED)
def test_ours_computes_no_padding(name):
    workload = CASES[name].build()
    for value in workload.inputs:
        is_token = value[0]["attention_mask"].bool()
        states, _ = workload.candidate(value)
        if "padding-free" in name:
            assert states.shape[:2] == is_token.shape
            assert states[~is_token].abs().sum() == 0
            assert states[is_token].abs().sum(1).all()
        else:
            assert states.shape[:2] == (1, int(is_token.sum()))


def test_models_share_weights_that_are_all_random():
    peer, own = albert._twins(albert.AlbertModel, albert._albert_config(TINY), albert.LineageAlbertModel)
    weights, converted = peer.state_dict(), own.to_transformers().state_dict()
    assert all(torch.equal(converted[name], weights[name]) for name in converted)
    assert all(parameter.unique().numel() > 1 for parameter in own.parameters())


def test_lengths_are_log_normal_as_in_glue():
    sizes = Sizes()
    lengths = glue_lengths(50_000, sizes, torch.Generator().manual_seed(0))
    assert lengths.dtype == torch.int64
    assert lengths.min() >= 3
    assert lengths.max() == sizes.num_tokens
    assert lengths.float().mean() == pytest.approx(sizes.mean_length, abs=0.5)
    assert lengths.float().median() == pytest.approx(sizes.median_length, abs=0.5)


def test_a_packed_row_holds_the_tokens_without_their_padding():
    batch = albert._tokens(torch.tensor([2, 4]), 4, 50, torch.Generator().manual_seed(0))
    assert batch["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert batch["token_type_ids"].tolist() == [[0, 1, 0, 0], [0, 0, 1, 1]]
    assert (batch["input_ids"] == 0).tolist() == [[False, False, True, True], [False] * 4]
    packed = packed_row(batch)
    assert packed["cu_seq_lens_q"].tolist() == [0, 2, 6]
    assert packed["input_ids"].tolist() == [[*batch["input_ids"][0, :2].tolist(), *batch["input_ids"][1].tolist()]]
    assert packed["token_type_ids"].tolist() == [[0, 1, 0, 0, 1, 1]]
