"""Runs that are killed and started again."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from benchmarks.glue import train
from benchmarks.glue.__main__ import main
from benchmarks.glue.checkpoints import RunFolder
from benchmarks.glue.training import Training


def results(output_dir: Path, task: str = "sst2") -> dict:
    return json.loads((output_dir / task / "seed-1" / "results.json").read_text())


def weights(output_dir: Path, task: str = "sst2") -> dict[str, torch.Tensor]:
    return load_file(output_dir / task / "seed-1" / "model" / "model.safetensors")


def scored(output_dir: Path, task: str = "sst2") -> list[dict]:
    """What does not depend on the clock."""
    epochs = results(output_dir, task)["epochs"]
    return [{name: value for name, value in record.items() if not name.endswith("seconds")} for record in epochs]


def assert_equal_runs(one: Path, other: Path, task: str = "sst2") -> None:
    assert scored(one, task) == scored(other, task)
    expected, found = weights(one, task), weights(other, task)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


class Killed(BaseException):
    """What nothing in a run catches, as a kill."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch):
    """Make runs end at a batch, an epoch's end or while a checkpoint is written; each only once."""

    def arrange(*batches: int) -> None:
        left, plain = list(batches), Training._run_batch

        def run_batch(self, *arguments):
            if left:
                left[0] -= 1
                if left[0] < 0:
                    left.pop(0)
                    raise Killed
            return plain(self, *arguments)

        monkeypatch.setattr(Training, "_run_batch", run_batch)

    return arrange


def run_until_done(argv: list[str]) -> int:
    kills = 0
    while True:
        try:
            main(argv)
        except Killed:
            kills += 1
        else:
            return kills


@pytest.fixture
def dropout_model(model_dir: Path, tmp_path: Path) -> Path:
    """The tiny BERT with dropout, whose random numbers have to go on too."""
    folder = shutil.copytree(model_dir, tmp_path / "bert")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_dropout_prob": 0.3}))
    return folder


@pytest.mark.parametrize("task_name", ["sst2", "stsb"])
@pytest.mark.parametrize("save_model", ["best", "last"])
def test_a_run_goes_on_exactly(command, dropout_model, tmp_path: Path, kill_at, task_name: str, save_model: str):
    options = {
        "model_name_or_path": dropout_model,
        "task_name": task_name,
        "num_train_epochs": 4,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "save_steps": 1 if task_name == "stsb" else 5,
        "save_model": save_model,
    }
    main(command(output_dir=tmp_path / "whole", **options))
    kill_at(0, 1, 2, 3) if task_name == "stsb" else kill_at(3, 11, 12, 24, 30, 1)
    assert run_until_done(command(output_dir=tmp_path / "killed", **options)) == (4 if task_name == "stsb" else 6)
    assert_equal_runs(tmp_path / "whole", tmp_path / "killed", task_name)
    left = sorted(path.name for path in (tmp_path / "killed" / task_name / "seed-1").iterdir())
    assert left == ["model", "results.json"]


def test_a_grid_goes_on_exactly(command, tmp_path: Path, kill_at):
    options = {"grid": '{"learning_rate": [1e-2, 1e-3]}', "num_train_epochs": 2}
    main(command(output_dir=tmp_path / "whole", **options))
    kill_at(5, 20, 14, 6)
    assert run_until_done(command(output_dir=tmp_path / "killed", **options)) == 4
    assert_equal_runs(tmp_path / "whole", tmp_path / "killed")
    assert results(tmp_path / "whole")["tried"] == results(tmp_path / "killed")["tried"]


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_the_checkpoint_before_a_damaged_one_is_used(
    command, tmp_path: Path, kill_at, damage: str, caplog: pytest.LogCaptureFixture
):
    options = {"save_steps": 3}
    main(command(output_dir=tmp_path / "whole", **options))
    kill_at(8)
    argv = command(output_dir=tmp_path / "killed", **options)
    with pytest.raises(Killed):
        main(argv)
    checkpoints = sorted((tmp_path / "killed" / "sst2" / "seed-1" / "checkpoints").glob("step-*"))
    assert [path.name for path in checkpoints] == ["step-00000003", "step-00000006"]
    file = checkpoints[1] / "optimizer.bin"
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[:-10] if damage == "cut" else content[:500] + b"?" + content[501:])
    main(argv)
    assert "step-00000006 is damaged" in caplog.text
    assert_equal_runs(tmp_path / "whole", tmp_path / "killed")


def test_without_a_whole_checkpoint_the_run_says_so(command, tmp_path: Path, kill_at):
    argv = command(save_steps=3)
    kill_at(4)
    with pytest.raises(Killed):
        main(argv)
    (checkpoint,) = (tmp_path / "out" / "sst2" / "seed-1" / "checkpoints").glob("step-*")
    (checkpoint / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match=r"All checkpoints in .* are damaged: step-00000003"):
        main(argv)


def test_finished_runs_are_skipped_and_more_seeds_added(command, tmp_path: Path, capsys, monkeypatch):
    main(command(task_name="sst2,stsb"))
    before = (tmp_path / "out" / "sst2" / "seed-1" / "results.json").stat().st_mtime_ns
    trained = []
    plain = train._Run.run
    monkeypatch.setattr(train._Run, "run", lambda self: trained.append((self.task.name, self.seed)) or plain(self))
    main(command(task_name="sst2,stsb", seeds="1,2"))
    assert trained == [("sst2", 2), ("stsb", 2)]
    assert "sst2 seed-1: finished already" in capsys.readouterr().out
    assert (tmp_path / "out" / "sst2" / "seed-1" / "results.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"learning_rate": 1e-3}, "--learning_rate was 0.01 and is now 0.001"),
        ({"max_train_samples": 9}, "--max_train_samples was None and is now 9"),
        ({"model_name_or_path": "elmo-tiny"}, "--model_name_or_path was .* and is now 'elmo-tiny'"),
    ],
)
def test_a_run_under_way_does_not_go_on_with_other_settings(command, kill_at, changed: dict, message: str):
    kill_at(9)
    with pytest.raises(Killed):
        main(command(save_steps=3))
    with pytest.raises(ValueError, match=message):
        main(command(save_steps=3, **changed))
    main(command(save_steps=50, dataloader_num_workers=0, logging_steps=7))  # which change no score


def test_other_data_in_the_same_files_is_noticed(command, tmp_path: Path, data_dir: Path, write_split, sentiment_rows):
    folder = shutil.copytree(data_dir, tmp_path / "data")
    main(command(data_dir=folder, seeds=1))
    write_split(folder, "sst2", "train", sentiment_rows(96, 5))
    with pytest.raises(ValueError, match="have other settings: data was"):
        main(command(data_dir=folder, seeds=2))


def test_models_of_epochs_that_no_checkpoint_needs_are_removed(tmp_path: Path, model_dir: Path):
    from benchmarks.glue.arguments import FineTuningArguments
    from benchmarks.glue.models import load_model_and_tokenizer
    from benchmarks.glue.tasks import GLUE_TASKS

    accelerator = train.create_accelerator(FineTuningArguments("unused"))
    model, tokenizer = load_model_and_tokenizer(str(model_dir), GLUE_TASKS["sst2"])
    folder = RunFolder(accelerator, tmp_path)
    for epoch in (1, 2, 4, 7):
        folder.save_model(model, tokenizer, epoch)
    names = [path.name for path in sorted((tmp_path / "checkpoints").iterdir())]
    assert names == ["model-epoch-0002", "model-epoch-0004", "model-epoch-0007"]
    folder.keep_model(4)
    assert (tmp_path / "model" / "model.safetensors").is_file()


def test_starting_anew_does_not_remove_the_model_that_it_starts_from(command, tmp_path: Path):
    main(command(num_train_epochs=1))
    model = tmp_path / "out" / "sst2" / "seed-1" / "model"
    with pytest.raises(ValueError, match=r"--overwrite_output_dir would remove .*seed-1/model"):
        main([*command(model_name_or_path=model), "--overwrite_output_dir"])
    main([*command(model_name_or_path=model, num_train_epochs=0), "--overwrite_output_dir"])
    assert (model / "model.safetensors").is_file()
    assert results(tmp_path / "out")["best"]["epoch"] == 0
