import json
import os
import subprocess
import sys
from pathlib import Path

import evaluate_every_task
import pytest

from benchmarks.glue import compare_processes
from benchmarks.glue.tasks import GLUE_TASKS, ZH_TASKS

ROOT = Path(__file__).resolve().parents[3]


def test_two_processes_give_the_metrics_of_one_on_every_task(tmp_path: Path):
    evaluate_every_task.main(str(tmp_path / "one.json"))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [*launch, evaluate_every_task.__file__, str(tmp_path / "two.json")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    one, two = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("one", "two"))
    assert set(one) == {*GLUE_TASKS, *ZH_TASKS} - {"ax"}
    for name, splits in one.items():
        assert (splits.pop("num_processes"), two[name].pop("num_processes")) == (1, 2)
        assert two[name] == splits
    sizes = {metrics["examples"] % 8 for splits in one.values() for metrics in splits.values()}
    assert sizes == set(range(8))


def test_the_comparison_says_what_differs(monkeypatch: pytest.MonkeyPatch, data_dir: Path, tmp_path: Path, capsys):
    results = {
        1: {"validation": {"accuracy": 0.5, "loss": 0.7, "examples": 13}},
        2: {"validation": {"accuracy": 0.5, "loss": 0.7 + 1e-7, "examples": 13}},
        3: {"validation": {"accuracy": 0.6, "loss": 0.8, "examples": 16}},
    }
    given = []

    def evaluate(arguments, task, model, num_processes, scratch):
        given.append((task, (model / "model.safetensors").is_file(), num_processes))
        return results[num_processes]

    monkeypatch.setattr(compare_processes, "_evaluate", evaluate)
    argv = ["--data_dir", str(data_dir), "--task_name", "sst2"]
    assert compare_processes.main(argv) == 0
    assert given == [("sst2", True, 1), ("sst2", True, 2)]
    assert "identical" in capsys.readouterr().out
    file = tmp_path / "found.json"
    assert compare_processes.main([*argv, "--num_processes", "1,2,3", "--output_file", str(file)]) == 1
    assert json.loads(file.read_text())[0]["differences"] == {"2": [], "3": ["accuracy", "examples", "loss"]}
