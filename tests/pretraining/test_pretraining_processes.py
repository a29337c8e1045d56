"""Several processes on CPUs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pretraining_runs import ROOT, assert_same_weights, command, prepare, results, run, run_processes, weights


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    torch.set_num_threads(1)
    folder = prepare(tmp_path_factory.mktemp("runs"), num_documents=600, num_held_out=400)
    assert run(folder, "one", max_steps=8)
    return folder


@pytest.fixture(scope="module")
def two(folder: Path) -> str:
    assert run_processes(folder, 2, output="two", max_steps=16) == [0, 0]
    return "two"


def test_torchrun_trains_and_evaluates_each_example_once(folder: Path):
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    words += ["-m", "hf_lineage.pretraining", *command(folder, "torchrun", max_steps=8)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    check_same_evaluation_before_training(folder, "torchrun")
    assert done.stderr.count("Finished: 8 steps") == 1


def check_same_evaluation_before_training(folder: Path, output: str) -> None:
    """Before training the weights do not depend on the number of processes, so the metrics must not either."""
    one, two = (results(folder, name)["validation"]["first"]["validation"]["sop"] for name in ("one", output))
    assert one["masked_lm_count"] == two["masked_lm_count"] > 100
    assert one["sentence_count"] == two["sentence_count"] > 10
    for name, value in one.items():
        assert two[name] == pytest.approx(value, rel=1e-5), name


def test_every_number_of_processes_evaluates_the_same(folder: Path, two: str):
    check_same_evaluation_before_training(folder, two)
    assert run_processes(folder, 3, output="three", max_steps=2, per_device_eval_batch_size=2) == [0, 0, 0]
    check_same_evaluation_before_training(folder, "three")
    assert results(folder, "three")["machine"]["num_processes"] == 3


def test_tokens_of_all_processes_are_counted(folder: Path, two: str):
    """Twice the steps with twice the processes is four times the text."""
    ratio = results(folder, two)["tokens"] / results(folder, "one")["tokens"]
    assert 3.3 < ratio < 4.7


def test_told_to_stop_all_processes_stop_at_the_same_step_and_go_on_together(folder: Path, two: str):
    codes = run_processes(folder, 2, 4, signal.SIGTERM, output="stopped", max_steps=16, save_steps=15)
    assert codes == [143, 143]
    assert run_processes(folder, 2, output="stopped", max_steps=16, save_steps=15) == [0, 0]
    assert_same_weights(weights(folder, "stopped"), weights(folder, two))


def test_a_run_of_two_does_not_go_on_as_one(folder: Path, two: str):
    with pytest.raises(ValueError, match="number of processes was 2 and is now 1"):
        run(folder, two, max_steps=16)
