"""Whole runs of the command in this process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pretraining_runs import (
    MODEL,
    ROOT,
    assert_same_weights,
    command,
    prepare,
    results,
    run,
    weights,
    write_tokenizer,
)
from transformers import AutoModelForPreTraining, AutoTokenizer

import hf_lineage
from hf_lineage import LineageAlbertForPreTraining
from hf_lineage.pretraining.__main__ import main

LONGER = {
    "max_steps": 240,
    "logging_steps": 40,
    "eval_steps": 120,
    "save_steps": 100,
    "optimizer": "adamw",
    "learning_rate": 0.01,
    "warmup_ratio": 0.1,
    "per_device_train_batch_size": 16,
}
DETERMINISTIC = json.dumps({**MODEL, "hidden_dropout_prob": 0.0})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return prepare(tmp_path_factory.mktemp("runs"), num_documents=250, num_held_out=60)


@pytest.fixture(scope="module")
def trained(folder: Path) -> dict:
    wider = {"hidden_size": 32, "embedding_size": 16, "hidden_dropout_prob": 0.0, "initializer_range": 0.1}
    assert run(folder, "trained", model_config=json.dumps({**MODEL, **wider}), **LONGER)
    return results(folder, "trained")


def test_it_learns_to_predict_words(trained: dict):
    first, last = (trained["validation"][name]["validation"]["sop"] for name in ("first", "last"))
    assert last["masked_lm_loss"] < first["masked_lm_loss"] - 0.7
    assert last["masked_lm_accuracy"] > 3 * first["masked_lm_accuracy"]
    losses = [record["loss"] for record in trained["records"] if "loss" in record]
    assert losses[-1] < losses[0] - 0.7


def test_results_are_complete(trained: dict, folder: Path):
    records = trained["records"]
    assert [record["step"] for record in records if "loss" in record] == [40, 80, 120, 160, 200, 240]
    assert [record["step"] for record in records if "validation" in record] == [0, 120, 240]
    lines = (folder / "trained" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == records
    for record in records:
        if "loss" in record:
            assert record["loss"] == pytest.approx(record["prediction_loss"] + record["sentence_loss"])
            assert record["tokens_per_second"] > 0
            assert record["grad_norm"] > 0
    assert max(record["learning_rate"] for record in records if "loss" in record) < 0.01
    assert (trained["steps"], trained["seed"], trained["family"]) == (240, 42, "albert")
    assert trained["tokens"] == records[-2]["tokens"] > 240 * 16 * 10
    assert trained["tokens_per_second"] == pytest.approx(trained["tokens"] / trained["train_seconds"])
    assert trained["wall_seconds"] > trained["train_seconds"] > 0
    assert trained["arguments"]["learning_rate"] == 0.01
    assert trained["arguments"]["sentence_objective"] == "sop"
    assert trained["model_config"]["hidden_size"] == 32
    assert trained["versions"]["hf_lineage"] == hf_lineage.__version__
    assert trained["versions"]["torch"] == torch.__version__
    assert trained["machine"]["num_processes"] == 1
    assert trained["command"] == sys.orig_argv
    evaluated = records[0]["validation"]["sop"]
    assert evaluated["masked_lm_count"] > evaluated["sentence_count"] > 50


def test_the_model_and_every_checkpoint_load_as_usual(trained: dict, folder: Path):
    output = folder / "trained"
    assert sorted(path.name for path in output.iterdir()) == ["checkpoints", "metrics.jsonl", "model", "results.json"]
    model = AutoModelForPreTraining.from_pretrained(output / "model")
    assert isinstance(model, LineageAlbertForPreTraining)
    assert model.num_parameters() == trained["parameters"]
    tokenizer = AutoTokenizer.from_pretrained(output / "model")
    assert tokenizer("w1 w2")["input_ids"] == AutoTokenizer.from_pretrained(folder / "tokenizer")("w1 w2")["input_ids"]
    steps = sorted(path.name for path in (output / "checkpoints").iterdir())
    assert steps == ["step-00000200", "step-00000240"]
    last = LineageAlbertForPreTraining.from_pretrained(output / "checkpoints" / steps[-1])
    assert_same_weights(last.state_dict(), model.state_dict())


def test_a_run_repeats_exactly_and_seeds_differ(folder: Path):
    for output, seed in (("one", 42), ("again", 42), ("other", 43)):
        assert run(folder, output, seed=seed, max_steps=4)
    assert_same_weights(weights(folder, "one"), weights(folder, "again"))
    assert results(folder, "one")["validation"]["first"] != results(folder, "other")["validation"]["first"]


@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
def test_accumulated_batches_give_the_weights_of_the_whole_batch(folder: Path, optimizer: str):
    """Also with losses whose batches have different numbers of predicted tokens."""
    options = {"optimizer": optimizer, "model_config": DETERMINISTIC, "max_steps": 5, "adam_epsilon": 1e-3}
    assert run(folder, f"whole-{optimizer}", per_device_train_batch_size=12, **options)
    accumulated = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3}
    assert run(folder, f"thirds-{optimizer}", **accumulated, **options)
    whole, thirds = weights(folder, f"whole-{optimizer}"), weights(folder, f"thirds-{optimizer}")
    for name, weight in whole.items():
        message = f"{name} differs"
        torch.testing.assert_close(thirds[name], weight, rtol=1e-4, atol=1e-5, msg=message)
    one, other = (results(folder, f"{name}-{optimizer}") for name in ("whole", "thirds"))
    assert one["tokens"] == other["tokens"]
    assert one["records"][1]["loss"] == pytest.approx(other["records"][1]["loss"], rel=1e-5)


def test_evaluation_does_not_change_training_nor_depend_on_its_batches(folder: Path):
    assert run(folder, "without", max_steps=6, validation_files=None)
    assert run(folder, "with", max_steps=6, eval_steps=2, per_device_eval_batch_size=7)
    assert run(folder, "larger", max_steps=6, eval_steps=3, per_device_eval_batch_size=64)
    assert_same_weights(weights(folder, "without"), weights(folder, "with"))
    assert results(folder, "without")["validation"] is None
    one, other = (results(folder, name)["validation"]["last"]["validation"]["sop"] for name in ("with", "larger"))
    assert one == pytest.approx(other, rel=1e-5)


def test_held_out_share_and_several_objectives(folder: Path):
    options = {"validation_files": None, "validation_share": 0.2, "validation_objectives": ["sop", "nsp"]}
    assert run(folder, "share", max_steps=2, sentence_objective="nsp", **options)
    metrics = results(folder, "share")["validation"]["last"]["validation"]
    assert list(metrics) == ["sop", "nsp"]
    for values in metrics.values():
        assert values["sentence_accuracy_standard_error"] > 0
        assert values["sentence_count"] > 20


def test_without_a_sentence_objective(folder: Path):
    assert run(folder, "none", max_steps=2, sentence_objective="none")
    (metrics,) = results(folder, "none")["validation"]["last"]["validation"].values()
    assert "sentence_accuracy" not in metrics
    assert metrics["masked_lm_loss"] > 0


def test_a_budget_of_time(folder: Path):
    assert run(folder, "minutes", max_steps=None, max_minutes=0.03, logging_steps=1)
    found = results(folder, "minutes")
    assert found["steps"] > 3
    assert 1.8 <= found["wall_seconds"] < 10
    rates = [record["learning_rate"] for record in found["records"] if "loss" in record]
    assert rates[-1] < 0.3 * max(rates)


def test_half_precision_and_deterministic_kernels(folder: Path):
    try:
        assert run(folder, "half", max_steps=8, mixed_precision="bf16", full_determinism=True)
    finally:
        torch.use_deterministic_algorithms(False)
    found = results(folder, "half")
    assert found["machine"]["mixed_precision"] == "bf16"
    assert all(weight.dtype == torch.float32 for weight in weights(folder, "half").values())


def test_going_on_from_a_trained_model(trained: dict, folder: Path):
    path = folder / "trained" / "model"
    assert run(folder, "continued", model_config=None, model_name_or_path=path, max_steps=1)
    first = results(folder, "continued")["validation"]["first"]["validation"]["sop"]
    assert first == pytest.approx(trained["validation"]["last"]["validation"]["sop"], rel=1e-6)


def test_a_loss_that_is_not_finite_ends_the_run(folder: Path):
    with pytest.raises(FloatingPointError, match=r"The loss is not finite at step \d+.*try a lower --learning_rate"):
        run(folder, "diverged", learning_rate=1e30, max_grad_norm=0, optimizer="adamw", logging_steps=1)
    assert not (folder / "diverged" / "model").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_config": '{"hiden_size": 3}'}, "did you mean 'hidden_size'"),
        ({"train_files": "nowhere.txt"}, "there is no file or folder nowhere.txt"),
        ({"tokenizer_name_or_path": "/nowhere"}, "--tokenizer_name_or_path: cannot load a tokenizer from /nowhere"),
        (
            {"model_name_or_path": "/nowhere", "model_config": None},
            "--model_name_or_path: cannot load a model from /nowhere",
        ),
        ({"max_length": 64}, "--max_length is 64, but the model has max_position_embeddings=40"),
    ],
)
def test_wrong_settings_are_told_before_anything_is_written(folder: Path, settings: dict, message: str):
    with pytest.raises(ValueError, match=message):
        run(folder, "wrong", **settings)
    assert not [path for path in (folder / "wrong").rglob("*") if path.is_file()]


def test_held_out_text_without_an_example_is_told_before_training(folder: Path, tmp_path: Path):
    (tmp_path / "empty.txt").write_text("\n\nw1\n\n")
    with pytest.raises(ValueError, match="no example in the held-out text"):
        run(folder, "empty", validation_files=tmp_path / "empty.txt")


def test_a_tokenizer_without_a_mask_is_refused(folder: Path, tmp_path: Path):
    tokenizer = AutoTokenizer.from_pretrained(write_tokenizer(tmp_path / "tokenizer"))
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    with pytest.raises(ValueError, match="mask_token"):
        run(folder, "maskless", tokenizer_name_or_path=tmp_path / "tokenizer")


def test_accelerate_launch_runs_a_file_of_settings(folder: Path, tmp_path: Path):
    values = dict(word.removeprefix("--").split("=", 1) for word in command(folder, "launched", max_steps=2))
    values["train_files"], values["validation_files"] = [values["train_files"]], [values["validation_files"]]
    values["model_config"] = json.loads(values["model_config"])
    (tmp_path / "run.yaml").write_text(json.dumps(values))
    words = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", "-m", "hf_lineage.pretraining"]
    words += ["--family", "albert", "--config", str(tmp_path / "run.yaml"), "--seed", "7"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "tokens/s, ETA" in done.stderr
    assert "it/s" not in done.stderr  # no bar where nobody sees it
    assert results(folder, "launched")["seed"] == 7


def test_main_returns_whether_the_run_is_finished(folder: Path):
    assert main(command(folder, "main", max_steps=1)) is True
