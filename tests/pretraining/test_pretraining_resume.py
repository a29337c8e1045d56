"""Runs that are killed, damaged or told to stop, and go on."""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pretraining_runs import (
    ROOT,
    assert_same_weights,
    command,
    last_step,
    prepare,
    results,
    run,
    run_and_kill,
    weights,
)

TIMES = ("wall_seconds", "train_seconds", "tokens_per_second")


def without_times(records: list[dict]) -> list[dict]:
    return [{name: value for name, value in record.items() if name not in TIMES} for record in records]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A corpus and a tokenizer, and in `whole` a run that nothing interrupted."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = prepare(tmp_path_factory.mktemp("runs"))
    assert run(folder, "whole")
    return folder


def check_equal_to_whole(folder: Path, output: str) -> None:
    assert_same_weights(weights(folder, output), weights(folder, "whole"))
    assert without_times(results(folder, output)["records"]) == without_times(results(folder, "whole")["records"])
    assert results(folder, output)["tokens"] == results(folder, "whole")["tokens"]


@pytest.mark.parametrize("attempt", range(3))
def test_a_killed_run_ends_with_the_same_weights_bit_for_bit(folder: Path, attempt: int):
    output = f"killed-{attempt}"
    steps = random.sample(range(4, 17), 2)
    for step in sorted(steps):
        assert run_and_kill(folder, step, output=output) in (-signal.SIGKILL, 0)
    assert run(folder, output)
    check_equal_to_whole(folder, output)


def test_a_run_killed_before_its_first_checkpoint_starts_again(folder: Path):
    assert run_and_kill(folder, 0, output="early", save_steps=19) == -signal.SIGKILL
    assert run(folder, "early")
    check_equal_to_whole(folder, "early")


def test_the_command_itself_killed_as_a_process(folder: Path):
    """From another process, with another hash seed, and with the worker's own random numbers."""
    words = [sys.executable, "-m", "hf_lineage.pretraining", *command(folder, "process")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "5"}
    process = subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
    records = folder / "process" / "metrics.jsonl"
    step = random.randint(4, 12)
    while process.poll() is None and last_step(records) < step:
        pass
    process.kill()
    process.communicate()
    assert last_step(records) < 20
    assert run(folder, "process")
    check_equal_to_whole(folder, "process")


@pytest.mark.parametrize("num_workers", [1, 2])
def test_with_workers_too(folder: Path, num_workers: int):
    options = {"dataloader_num_workers": num_workers}
    assert run(folder, f"workers-{num_workers}", **options)
    output = f"workers-{num_workers}-killed"
    run_and_kill(folder, 8, output=output, **options)
    assert run(folder, output, **options)
    assert_same_weights(weights(folder, output), weights(folder, f"workers-{num_workers}"))


def test_told_to_stop_it_saves_first(folder: Path):
    code = run_and_kill(folder, 4, signal.SIGTERM, output="stopped", save_steps=19)
    assert code == 143
    (checkpoint,) = (folder / "stopped" / "checkpoints").iterdir()
    assert 4 <= int(checkpoint.name.removeprefix("step-")) < 20
    assert not (folder / "stopped" / "model").exists()
    assert run(folder, "stopped")
    check_equal_to_whole(folder, "stopped")


@pytest.mark.parametrize("damaged", ["model.safetensors", "training_state.pt", "checksums.json"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_is_used(folder: Path, damaged: str, caplog):
    output = f"damaged-{damaged}"
    assert run_and_kill(folder, 12, signal.SIGTERM, output=output) == 143
    newest = max((folder / output / "checkpoints").iterdir())
    content = bytearray((newest / damaged).read_bytes())
    content[len(content) // 2] ^= 1
    (newest / damaged).write_bytes(content)
    with caplog.at_level("INFO"):
        assert run(folder, output)
    assert f"{newest} is damaged" in caplog.text
    assert "Going on from step" in caplog.text
    check_equal_to_whole(folder, output)


def test_a_finished_run_is_left_alone(folder: Path, caplog):
    model = folder / "whole" / "model" / "model.safetensors"
    before = model.stat().st_mtime_ns
    with caplog.at_level("INFO"):
        assert run(folder, "whole")
    assert "is finished: 20 steps" in caplog.text
    assert model.stat().st_mtime_ns == before


def test_results_without_checkpoints_are_not_overwritten(folder: Path):
    assert run(folder, "bare", max_steps=2)
    shutil.rmtree(folder / "bare" / "checkpoints")
    with pytest.raises(ValueError, match="bare holds the results of a run, but no checkpoint"):
        run(folder, "bare", max_steps=2)
    assert run(folder, "bare", max_steps=2, overwrite_output_dir=True)


def test_a_run_killed_after_its_last_step_still_writes_the_model(folder: Path):
    for path in ("whole", "unfinished"):
        assert run(folder, path)
    (folder / "unfinished" / "results.json").unlink()
    assert run(folder, "unfinished")
    check_equal_to_whole(folder, "unfinished")


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("learning_rate", 0.02, r"--learning_rate was 0.01 and is now 0.02"),
        ("max_steps", 30, r"--max_steps was 20 and is now 30"),
        ("seed", 1, r"--seed was 42 and is now 1"),
        ("dataloader_num_workers", 1, r"--dataloader_num_workers was 0 and is now 1"),
        ("sentence_objective", "nsp", r"--sentence_objective was 'sop' and is now 'nsp'"),
        ("model_config", '{"hidden_size": 32, "num_attention_heads": 2}', r"--model_config was '\{.*and is now '\{"),
    ],
)
def test_a_run_does_not_go_on_with_other_settings(folder: Path, setting: str, value, message: str):
    before = sorted((folder / "whole").rglob("*"))
    with pytest.raises(ValueError, match=message):
        run(folder, "whole", **{setting: value})
    assert sorted((folder / "whole").rglob("*")) == before


def test_a_run_does_not_go_on_with_other_text(folder: Path, tmp_path: Path):
    prepare(tmp_path)
    assert run(tmp_path, max_steps=3)
    with (tmp_path / "train.txt").open("a") as file:
        file.write("w1 w2\n")
    with pytest.raises(ValueError, match="sizes of the training files was"):
        run(tmp_path, max_steps=3)


def test_what_does_not_touch_the_weights_may_change(folder: Path):
    assert run_and_kill(folder, 8, signal.SIGTERM, output="free") == 143
    assert run(folder, "free", logging_steps=1, save_steps=7, eval_steps=6, per_device_eval_batch_size=3)
    assert_same_weights(weights(folder, "free"), weights(folder, "whole"))


def test_a_run_can_be_started_anew(folder: Path):
    assert run(folder, "anew", seed=5, max_steps=6)
    assert run(folder, "anew", overwrite_output_dir=True)
    check_equal_to_whole(folder, "anew")
