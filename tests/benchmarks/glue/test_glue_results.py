import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.glue.data import load_task_data
from benchmarks.glue.results import majority_baseline, read_results, render_table, write_json
from benchmarks.glue.tasks import GLUE_TASKS


def result(task: str = "sst2", seed: int = 1, score: float = 0.5, model: str = "m", **changes: Any) -> dict[str, Any]:
    """The part of a run's results that the table reads."""
    splits = GLUE_TASKS[task].validation_splits
    validation = {split: dict.fromkeys(GLUE_TASKS[task].metrics, score) for split in splits}
    arguments = {"model_name_or_path": model, "learning_rate": 1e-3, "seeds": str(seed), "task_name": task}
    plain = {
        "benchmark": "benchmarks.glue",
        "suite": "glue",
        "task": task,
        "model": model,
        "seed": seed,
        "best": {"score": score, "validation": validation},
        "last": {"score": score / 2, "validation": validation},
        "majority_baseline": {"score": 0.25},
        "evaluated_examples": dict.fromkeys(splits, 13),
        "data": {"splits": {}, "missing_splits": [], "train_examples": 48, "train_was_cut": False},
        "arguments": arguments,
    }
    return {**plain, **changes}


def rows(table: str) -> list[dict[str, str]]:
    lines = [line for line in table.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if not line.startswith("|-")]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def test_seeds_share_a_row_with_mean_and_standard_deviation():
    (row,) = rows(render_table([result(seed=seed, score=score) for seed, score in ((2, 0.6), (1, 0.8), (3, 0.7))]))
    assert row["score (best epoch)"] == "70.0 ± 10.0"
    assert row["score (last epoch)"] == "35.0 ± 5.0"
    assert (row["majority"], row["examples"], row["seeds"]) == ("25.0", "13", "1, 2, 3")
    assert row["metrics (best epoch)"] == "accuracy 70.0"
    assert row["notes"] == ""


def test_a_single_seed_has_no_deviation():
    (row,) = rows(render_table([result(score=0.6)]))
    assert row["score (best epoch)"] == "60.0"


def test_rows_are_in_the_order_of_the_suite_and_columns_align():
    table = render_table([result("rte"), result("mnli"), result("cola", model="a much longer name")])
    assert [row["task"] for row in rows(table)] == ["cola", "mnli", "rte"]
    assert len({len(line) for line in table.splitlines() if line.startswith("|")}) == 1
    assert rows(table)[1]["metrics (best epoch)"] == (
        "validation_matched accuracy 50.0, validation_mismatched accuracy 50.0"
    )
    assert rows(table)[1]["examples"] == "13 + 13"


def test_other_settings_get_a_row_of_their_own_that_says_so():
    slow = result(seed=2)
    slow["arguments"] = {**slow["arguments"], "learning_rate": 1e-5}
    found = rows(render_table([result(), slow]))
    assert [row["notes"] for row in found] == ["learning_rate=0.001", "learning_rate=1e-05"]


def test_notes_tell_what_the_data_lacks():
    data = {
        "splits": {"train": {"is_subset": True, "rows": 9999}, "validation": {"is_subset": False, "rows": 13}},
        "missing_splits": ["validation_mismatched"],
        "train_examples": 100,
        "train_was_cut": True,
    }
    (row,) = rows(render_table([result(data=data)]))
    assert row["notes"] == "train is a subset (9999 rows); trained on 100 examples; no validation_mismatched"
    evaluated = {**data, "splits": {}, "missing_splits": [], "train_examples": 0, "train_was_cut": False}
    (row,) = rows(render_table([result(data=evaluated, majority_baseline=None)]))
    assert (row["notes"], row["majority"]) == ("evaluated only", "-")


def test_means_over_tasks_are_given_with_and_without_wnli():
    table = render_table([result("sst2", score=0.8), result("rte", score=0.6), result("wnli", score=0.4)])
    assert "Mean of m over 3 tasks: 60.0; 70.0 without wnli" in table
    assert "Mean of" not in render_table([result("sst2", seed=1), result("sst2", seed=2)])


def test_a_mean_over_tasks_picks_no_setting():
    other = result("sst2", score=0.9)
    other["arguments"] = {**other["arguments"], "learning_rate": 1e-5}
    assert "Mean of" not in render_table([result("sst2"), result("rte"), other])


def test_results_are_read_from_all_folders_below(tmp_path: Path):
    for seed in (1, 2):
        write_json(tmp_path / "out" / f"seed-{seed}" / "results.json", result(seed=seed))
    (tmp_path / "results.json").write_text(json.dumps({"benchmark": "another"}))
    assert [found["seed"] for found in read_results(tmp_path)] == [1, 2]
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["results.json"] * 3


def test_folders_without_results_and_broken_files_are_named(tmp_path: Path):
    with pytest.raises(ValueError, match=f"No results of benchmarks.glue in {tmp_path}"):
        read_results(tmp_path)
    (tmp_path / "results.json").write_text("{")
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
