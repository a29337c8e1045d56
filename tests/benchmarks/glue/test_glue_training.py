"""What training can be told: early stopping, grids, layer-wise rates, a frozen encoder, trackers, memory."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from transformers import AutoModelForSequenceClassification

from benchmarks.glue.__main__ import main
from benchmarks.glue.arguments import FineTuningArguments
from benchmarks.glue.models import load_model_and_tokenizer
from benchmarks.glue.optimization import create_optimizer
from benchmarks.glue.tasks import GLUE_TASKS
from benchmarks.glue.training import Training


def read(output_dir: Path, seed: int = 1) -> dict:
    return json.loads((output_dir / "sst2" / f"seed-{seed}" / "results.json").read_text())


def test_it_stops_after_epochs_without_a_better_score(command, tmp_path: Path):
    main(command(num_train_epochs=30, early_stopping_patience=2))
    results = read(tmp_path / "out")
    scores = [record["score"] for record in results["epochs"]]
    assert results["stopped_early"]
    assert len(scores) < 30
    best = results["best"]["epoch"]
    assert len(scores) == best + 2
    assert max(scores[best:]) <= scores[best - 1]
    assert max(scores[: best - 1], default=-1) < scores[best - 1]


def test_a_grid_keeps_the_setting_of_the_best_mean(command, tmp_path: Path):
    grid = {"learning_rate": [1e-6, 1e-2], "per_device_train_batch_size": [8, 16]}
    main(command(grid=json.dumps(grid), seeds="1,2", num_train_epochs=3))
    results = [read(tmp_path / "out", seed) for seed in (1, 2)]
    for index, result in enumerate(results):
        assert result["dev_selected"]
        assert [entry["settings"] for entry in result["tried"]] == [
            {"learning_rate": rate, "per_device_train_batch_size": size} for rate in (1e-6, 1e-2) for size in (8, 16)
        ]
        best = max(result["tried"], key=lambda entry: entry["mean_score"])
        assert result["selected"] == best["settings"]
        assert result["selected"]["learning_rate"] == 1e-2
        assert result["best"]["score"] == best["scores"][index]
        assert result["arguments"]["learning_rate"] == 1e-2
        assert json.loads(result["arguments"]["grid"]) == grid
        assert (tmp_path / "out" / "sst2" / f"seed-{index + 1}" / "model" / "model.safetensors").is_file()
    assert not list((tmp_path / "out" / "sst2" / "trials").glob("*/*/model"))
    assert len(list((tmp_path / "out" / "sst2" / "trials").glob("*/*/trial.json"))) == 8
    assert "| sst2 " in (tmp_path / "out" / "results.md").read_text()
    main(command(grid=json.dumps(grid), seeds="1,2", num_train_epochs=3))  # all is done
    with pytest.raises(ValueError, match="--seeds was '1,2' and is now '1'"):
        main(command(grid=json.dumps(grid), num_train_epochs=3))


def test_layers_have_their_rates(model_dir: Path):
    model, _ = load_model_and_tokenizer(str(model_dir), GLUE_TASKS["sst2"])
    settings = FineTuningArguments("unused", learning_rate=0.1, layer_decay=0.5, weight_decay=0.3)
    rates = {
        id(weight): (group["lr"], group["weight_decay"])
        for group in create_optimizer(model, settings).param_groups
        for weight in group["params"]
    }
    assert len(rates) == len(list(model.parameters()))
    assert rates[id(model.classifier.weight)] == (0.1, 0.3)
    assert rates[id(model.bert.pooler.dense.bias)] == (0.1, 0.0)
    assert rates[id(model.bert.encoder.layer[0].output.dense.weight)] == (0.1, 0.3)
    assert rates[id(model.bert.embeddings.word_embeddings.weight)] == (0.05, 0.3)


def test_rates_by_layer_need_layers(command, tmp_path: Path):
    options = {"model_name_or_path": "albert-tiny", "layer_decay": 0.9}
    with pytest.raises(ValueError, match=r"--layer_decay: LineageAlbert.* no weights of their own"):
        main(command(**options))


def test_a_frozen_encoder_does_not_change(command, tmp_path: Path, model_dir: Path):
    main([*command(save_model="last"), "--freeze_encoder"])
    before = AutoModelForSequenceClassification.from_pretrained(model_dir).state_dict()
    after = load_file(tmp_path / "out" / "sst2" / "seed-1" / "model" / "model.safetensors")
    changed = {name for name in after if not torch.equal(before[name], after[name])}
    assert changed == {"classifier.weight", "classifier.bias"}
    parameters = read(tmp_path / "out")["parameters"]
    assert parameters["trainable"] == 2 * 16 + 2 < parameters["total"]


def test_tensorboard_gets_losses_and_scores(command, tmp_path: Path):
    main(command(report_to="tensorboard", logging_steps=5))
    (folder,) = (tmp_path / "out" / "trackers" / "sst2" / "seed-1").iterdir()
    events = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [5, 10, 15, 20]
    results = read(tmp_path / "out")
    assert [event.value for event in events.Scalars("score")] == pytest.approx(
        [record["score"] for record in results["epochs"]]
    )
    first_losses = results["epochs"][0]["train_step_losses"][:5]
    assert events.Scalars("train/loss")[0].value == pytest.approx(sum(first_losses) / 5)
    assert [event.step for event in events.Scalars("validation/accuracy")] == [12, 24]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried"),
        MemoryError("no more"),
    ],
)
def test_too_little_memory_comes_with_advice(command, monkeypatch: pytest.MonkeyPatch, error: Exception):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(Training, "_run_batch", fail)
    with pytest.raises(MemoryError, match="smaller --per_device_train_batch_size than 8") as caught:
        main(command())
    assert "--gradient_accumulation_steps than 1" in str(caught.value)
    assert "--max_length than 32" in str(caught.value)


def test_other_errors_stay_what_they_are(command, monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments):
        raise RuntimeError("something else")

    monkeypatch.setattr(Training, "_run_batch", fail)
    with pytest.raises(RuntimeError, match="something else"):
        main(command())


def test_inputs_longer_than_the_model_takes_are_refused(command):
    with pytest.raises(ValueError, match="--max_length must be at most 32, the longest input of"):
        main(command(max_length=33))


def test_a_preset_trains_its_vocabulary_once_and_from_what_it_is_trained_on(command, tmp_path: Path):
    main(command(model_name_or_path="bert-tiny", seeds="1,2", num_train_epochs=1, max_train_samples=40))
    folder = tmp_path / "out" / "sst2"
    assert (folder / "tokenizer" / "tokenizer.json").is_file()
    contents = [(folder / f"seed-{seed}" / "model" / "tokenizer.json").read_text() for seed in (1, 2)]
    assert contents[0] == contents[1]
    assert 30 < read(tmp_path / "out")["model_config"]["vocab_size"] < 600
