import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.glue import results
from benchmarks.glue.data import load_task_data
from benchmarks.glue.results import majority_baseline, read_results, write_json
from benchmarks.glue.tasks import GLUE_TASKS


def test_results_are_read_from_all_folders_below(tmp_path: Path):
    for seed in (1, 2):
        write_json(tmp_path / "out" / f"seed-{seed}" / "results.json", {"benchmark": "benchmarks.glue", "seed": seed})
    (tmp_path / "results.json").write_text(json.dumps({"benchmark": "another"}))
    assert [found["seed"] for found in read_results(tmp_path)] == [1, 2]
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["results.json"] * 3


def test_folders_without_results_and_broken_files_are_named(tmp_path: Path):
    with pytest.raises(ValueError, match=f"No results of benchmarks.glue in {tmp_path}"):
        read_results(tmp_path)
    for damaged in ("{", '{"benchmark": "benchmarks.glue", "score": NaN}'):
        (tmp_path / "results.json").write_text(damaged)
        with pytest.raises(ValueError, match=r"results\.json is not a results file"):
            read_results(tmp_path)


def test_numbers_that_json_lacks_are_refused_and_leave_the_old_file(tmp_path: Path):
    path = tmp_path / "results.json"
    write_json(path, {"score": 1.0})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"score": float("nan")})
    assert json.loads(path.read_text()) == {"score": 1.0}


def test_baseline_predicts_the_most_frequent_training_label(tmp_path: Path, write_split):
    texts = {"sentence1": "a", "sentence2": "b"}
    write_split(tmp_path, "mrpc", "train", [{**texts, "label": label} for label in (1, 1, 0)])
    write_split(tmp_path, "mrpc", "validation", [{**texts, "label": label} for label in (0, 0, 1, 0)])
    baseline = majority_baseline(load_task_data(GLUE_TASKS["mrpc"], data_dir=str(tmp_path)))
    assert baseline["label"] == 1
    assert baseline["validation"] == {"validation": {"accuracy": 0.25, "f1": 0.4}}
    assert baseline["score"] == pytest.approx(0.325)


def test_baseline_of_a_regression_is_the_mean_and_without_a_training_split_of_validation(
    data_dir: Path, tmp_path: Path, write_split
):
    data = load_task_data(GLUE_TASKS["stsb"], data_dir=str(data_dir))
    baseline = majority_baseline(data)
    assert baseline["label"] == pytest.approx(sum(data.train["label"][:]) / 9)
    assert baseline["score"] == 0.0
    assert baseline["label_from"] == "train"
    write_split(tmp_path, "sst2", "validation", [{"sentence": "a", "label": label} for label in (1, 0, 1, 1)])
    baseline = majority_baseline(load_task_data(GLUE_TASKS["sst2"], data_dir=str(tmp_path), needs_train=False))
    assert (baseline["label"], baseline["label_from"], baseline["score"]) == (1, "validation", 0.75)


def test_a_checkout_that_the_package_is_no_part_of_is_not_its_commit(tmp_path, monkeypatch):
    """As where it is installed into an environment inside a project of the user's own."""
    for command in ("init", "-c user.name=a -c user.email=a@b commit --allow-empty -m x"):
        subprocess.run(["git", "-C", str(tmp_path), *command.split()], check=True, capture_output=True)
    monkeypatch.setattr(results, "__file__", str(tmp_path / "results.py"))
    assert results.git_state() == {"commit": None, "has_changes": None}
    (tmp_path / "results.py").touch()
    assert results.git_state()["commit"] is None
    subprocess.run(["git", "-C", str(tmp_path), "add", "results.py"], check=True)
    state = results.git_state()
    assert len(state["commit"]) == 40
    assert state["has_changes"]
