import json
import math
import random
import signal
from pathlib import Path

import pytest
import torch
from pretraining_runs import assert_same_weights, prepare, results, run, run_and_kill, run_processes, weights
from transformers import AutoModelForPreTraining, AutoTokenizer

from hf_lineage import LineageAlbertConfig, LineageAlbertModel, LineageXLNetForPreTraining
from hf_lineage.pretraining.arguments import PretrainingArguments
from hf_lineage.pretraining.optimization import layer_wise_learning_rates, parameter_groups
from hf_lineage.pretraining.xlnet import XLNetArguments, XLNetObjective

MODEL = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24, "initializer_range": 0.1}
COMMON = {"family": "xlnet", "model_config": json.dumps(MODEL), "optimizer": "adamw", "per_device_eval_batch_size": 4}
OBJECTIVES = ["permutation", "masked", "causal"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    torch.set_num_threads(1)
    return prepare(tmp_path_factory.mktemp("runs"), num_documents=900, num_held_out=300)


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict:
    assert run(folder, "whole", **COMMON)
    return results(folder, "whole")


@pytest.fixture
def make_objective(folder):
    def make(own: dict | None = None, **settings) -> XLNetObjective:
        arguments = PretrainingArguments(
            train_files=[str(folder / "train.txt")],
            tokenizer_name_or_path=str(folder / "tokenizer"),
            output_dir="unused",
            **{"max_steps": 1, "max_length": 32, "model_config": json.dumps(MODEL), **settings},
        )
        return XLNetObjective(
            arguments, XLNetArguments(**(own or {})), AutoTokenizer.from_pretrained(folder / "tokenizer")
        )

    return make


def batches(objective, number):
    rows = objective.settings.per_device_train_batch_size
    examples = iter(objective.train_dataset(1))
    return [objective.collator()([next(examples) for _ in range(rows)]) for _ in range(number)]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_it_learns(folder: Path, objective: str):
    longer = {"max_steps": 150, "eval_steps": 150, "learning_rate": 0.01, "per_device_train_batch_size": 8}
    model = json.dumps({**MODEL, "dropout": 0.0})
    assert run(folder, objective, **{**COMMON, **longer, "model_config": model}, objective=objective)
    found = results(folder, objective)["validation"]
    first, last = (found[name]["validation"][objective] for name in ("first", "last"))
    assert first["prediction_loss"] == pytest.approx(math.log(65), abs=0.2)
    assert last["prediction_loss"] < first["prediction_loss"] - 0.7
    assert last["prediction_count"] == first["prediction_count"] > 500


def test_the_model_loads_as_usual(folder: Path, whole: dict):
    model = AutoModelForPreTraining.from_pretrained(folder / "whole" / "model")
    assert isinstance(model, LineageXLNetForPreTraining)
    assert (model.config.mem_len, model.config.reuse_len, model.config.attn_type) == (24, 16, "bi")
    assert whole["validation"]["last"]["validation"].keys() == {"permutation"}


@pytest.mark.parametrize("attempt", range(2))
def test_a_killed_run_ends_with_the_same_weights_bit_for_bit(folder: Path, whole: dict, attempt: int):
    output = f"killed-{attempt}"
    for step in sorted(random.sample(range(4, 17), 2)):
        assert run_and_kill(folder, step, output=output, **COMMON) in (-signal.SIGKILL, 0)
    assert run(folder, output, **COMMON)
    assert_same_weights(weights(folder, output), weights(folder, "whole"))
    assert results(folder, output)["validation"] == whole["validation"]


def test_evaluation_in_the_middle_changes_nothing(folder: Path, whole: dict):
    assert run(folder, "evaluated", **COMMON, eval_steps=3)
    assert_same_weights(weights(folder, "evaluated"), weights(folder, "whole"))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_several_processes_and_workers(folder: Path, objective: str):
    settings = {**COMMON, "objective": objective, "max_steps": 6, "dataloader_num_workers": 1}
    assert run_processes(folder, 2, output=f"two-{objective}", **settings) == [0, 0]
    assert run(folder, f"one-{objective}", **settings)
    for when in ("first", "last"):
        one, two = (
            results(folder, f"{name}-{objective}")["validation"][when]["validation"][objective]
            for name in ("one", "two")
        )
        # blocks, and with them what is remembered, are others; the text is the same
        assert abs(one["prediction_count"] / two["prediction_count"] - 1) < 0.1
        assert one["prediction_loss"] == pytest.approx(two["prediction_loss"], abs=0.3)


def test_with_and_without_memory_the_text_is_the_same(make_objective):
    with_memory, without = (make_objective({"memory": memory, "mem_len": 20}) for memory in (True, False))
    assert list(with_memory.train_dataset(1)) == list(without.train_dataset(1))


def test_what_an_objective_does_not_use_is_frozen(make_objective):
    """Or several processes would wait for its gradient."""
    for objective in OBJECTIVES:
        made = make_objective({"objective": objective}, per_device_train_batch_size=4)
        model = made.create_model()
        losses, _ = made.losses(model, batches(made, 1)[0], None)
        sum(losses.values()).backward()
        for name, parameter in model.named_parameters():
            assert (parameter.grad is None) != parameter.requires_grad, name


def test_there_are_blocks_for_all_rows(make_objective):
    objective = make_objective()
    few, many = objective.train_corpus(1), objective.train_corpus(32)
    assert few.block_size > many.block_size >= 2048
    assert sum(1 for _ in few) == sum(1 for _ in many)


def test_memory_is_carried_row_by_row(make_objective):
    objective = make_objective({"memory": True}, per_device_train_batch_size=4)
    model = objective.create_model().eval()
    carried, remembered, forgotten = None, [], []
    with torch.no_grad():
        for batch in batches(objective, 6):
            found, carried = objective.losses(model, batch, carried)
            remembered.append(found["prediction_loss"])
            forgotten.append(objective.losses(model, batch, None)[0]["prediction_loss"])
            assert {*carried} == {*batch["rows"].tolist()}
    assert remembered[0] == forgotten[0]
    assert all(one != other for one, other in zip(remembered[1:], forgotten[1:], strict=True))


def test_without_memory_nothing_is_carried(make_objective):
    objective = make_objective({"memory": False}, per_device_train_batch_size=4)
    model = objective.create_model()
    assert model.config.mem_len is None
    assert objective.losses(model, batches(objective, 1)[0], None)[1] is None


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_evaluation_is_the_mean_of_the_losses(make_objective, objective):
    made = make_objective({"objective": objective}, per_device_train_batch_size=6)
    model = made.create_model().eval()
    (batch,) = batches(made, 1)
    with torch.no_grad():
        sums, _ = made.evaluate(model, batch, None, objective)
        losses, _ = made.losses(model, batch, None)
    metrics = made.summarize({key: float(value) for key, value in sums.items()}, objective)
    torch.testing.assert_close(torch.tensor(metrics["prediction_loss"]), losses["prediction_loss"], check_dtype=False)
    assert made.counts(batch)["prediction_loss"] == metrics["prediction_count"]


def test_the_next_sentence(make_objective):
    objective = make_objective({"next_sentence": True}, per_device_train_batch_size=6)
    model = objective.create_model()
    (batch,) = batches(objective, 1)
    losses, _ = objective.losses(model, batch, None)
    assert float(losses["next_sentence_loss"].detach()) == pytest.approx(math.log(2), abs=0.3)
    assert objective.counts(batch)["next_sentence_loss"] == 6
    sum(losses.values()).backward()
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert missing == []


def test_lower_layers_learn_more_slowly(make_objective):
    objective = make_objective({"layer_decay": 0.5}, learning_rate=0.08)
    model = objective.create_model()
    rates = {}
    for group in objective.parameter_groups(model):
        for parameter in group["params"]:
            rates[id(parameter)] = (group["lr"], group["weight_decay"])
    named = {name: rates[id(parameter)][0] for name, parameter in model.named_parameters()}
    assert named["lm_loss.bias"] == 0.08
    for name, rate in named.items():
        if ".layer.1." in name:
            assert rate == 0.08
        elif ".layer.0." in name:
            assert rate == 0.04
        elif name != "lm_loss.bias":
            assert rate == 0.02
    assert len(named) == len(rates)
    assert {decay for _, decay in rates.values()} == {0.0, 0.01}


def test_layer_decay_scales_steps_not_gradients(make_objective):
    """Adam undoes a scale of gradients; here the steps themselves are smaller."""
    objective = make_objective({"layer_decay": 0.5}, learning_rate=0.08)
    model = objective.create_model()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.AdamW(objective.parameter_groups(model), lr=1.0, weight_decay=0.0)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for group in optimizer.param_groups:
        group["weight_decay"] = 0.0
    optimizer.step()
    steps = {name: float((before[name] - parameter.detach()).max()) for name, parameter in model.named_parameters()}
    lower, upper = (steps[f"transformer.layer.{layer}.rel_attn.q.weight"] for layer in (0, 1))
    assert lower == pytest.approx(upper / 2, rel=1e-3)


def test_layers_without_weights_of_their_own_are_refused():
    config = LineageAlbertConfig(
        vocab_size=20, hidden_size=8, embedding_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8
    )
    model = LineageAlbertModel(config)
    with pytest.raises(ValueError, match="no weights of their own"):
        layer_wise_learning_rates(model, parameter_groups(model, 0.0), 0.1, 0.5)
    with pytest.raises(ValueError, match="decay must be above 0"):
        layer_wise_learning_rates(model, [], 0.1, 0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "sideways"}, "invalid choice: 'sideways' (choose from 'permutation', 'masked', 'causal')"),
        ({"objective": "causal", "reuse_len": 4}, "--reuse_len does not go with --objective causal"),
        ({"objective": "causal", "next_sentence": True}, "--next_sentence does not go with --objective causal"),
        ({"reuse_len": 30}, "reuse_len must be from 1 to max_length - 5 = 27, got 30"),
        ({"objective": "causal", "max_ngram": 0}, "--max_ngram does not go with"),
        ({"objective": "masked", "perm_size": 4}, "--perm_size does not go with"),
        ({"perm_size": 5}, "perm_size must divide both parts"),
        ({"num_predict": 40}, "num_predict must be from 1 to max_length = 32"),
        ({"layer_decay": 0}, "layer_decay must be above 0"),
        ({"model_config": json.dumps({"n_layers": 2})}, "did you mean 'n_layer'"),
        ({"model_config": json.dumps({"reuse_len": 3})}, "has reuse_len=3, but the settings make it 16"),
    ],
)
def test_bad_settings_are_told_before_anything_is_written(folder: Path, settings: dict, message: str, capsys):
    with pytest.raises((SystemExit, ValueError)) as caught:
        run(folder, "bad", **{**COMMON, **settings})
    assert message in f"{caught.value}{capsys.readouterr()}"
    assert not (folder / "bad" / "model").exists()
