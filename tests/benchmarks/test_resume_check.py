import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from benchmarks import resume_check
from benchmarks.resume_check import Outcome, check

SETTINGS = (
    "--model_name_or_path=bert-tiny --suite=minisuite --task_name=sentiment --seeds=1 --num_train_epochs=2 "
    "--max_train_samples=16 --per_device_train_batch_size=4 --save_steps=3 --max_length=32 --learning_rate=1e-3"
).split()


def test_a_run_killed_at_a_random_step_ends_as_one_that_was_not(tmp_path: Path):
    outcome = check(1, tmp_path, SETTINGS)
    assert outcome.steps == 8
    assert len(outcome.killed_at) == 1
    assert outcome.is_exact


def test_what_differs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With runs that are folders of files."""
    for name in ("whole", "killed"):
        run = tmp_path / name / "sentiment" / "seed-1"
        (run / "model").mkdir(parents=True)
        (run / "results.json").write_text(
            '{"last": {"step": 5}, "epochs": [{"score": %s, "train_seconds": 1}]}' % (0.5 if name == "whole" else 0.25)
        )
        weight = torch.zeros(2) if name == "whole" else torch.tensor([0.0, 1e-30])
        save_file({"a": weight, "b": torch.ones(1)}, run / "model" / "model.safetensors")
    started = []

    def start(arguments, kill_at):
        started.append(kill_at)
        return 0 if kill_at is None else -signal.SIGKILL

    monkeypatch.setattr(resume_check, "_start", start)
    outcome = check(2, tmp_path, SETTINGS)
    assert outcome == Outcome(5, [step for step, _ in started[1:3]], ["a"], False)
    assert not outcome.is_exact
    assert started[0] is started[3] is None
    with pytest.raises(ValueError, match="5 steps cannot be killed at 5"):
        check(5, tmp_path, SETTINGS)
    monkeypatch.setattr(resume_check, "_start", lambda arguments, kill_at: 1)
    with pytest.raises(RuntimeError, match="undisturbed run failed"):
        check(2, tmp_path, SETTINGS)


def test_only_one_run_is_checked(tmp_path: Path):
    for wrong in ("--seeds=1,2", "--task_name=all", "--save_model=none"):
        with pytest.raises(ValueError, match="one task, one seed and a model to keep"):
            check(1, tmp_path, [*SETTINGS, wrong])
