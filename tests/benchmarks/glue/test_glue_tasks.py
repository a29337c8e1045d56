from pathlib import Path

import pyarrow.parquet
import pytest
from datasets import ClassLabel, Features

from benchmarks.glue.metrics import TaskMetrics
from benchmarks.glue.tasks import GLUE_TASKS, get_suite, get_tasks

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "glue"


def test_all_tasks_and_their_metrics():
    assert {name: task.metrics for name, task in GLUE_TASKS.items()} == {
        "cola": ("matthews_correlation",),
        "sst2": ("accuracy",),
        "mrpc": ("accuracy", "f1"),
        "qqp": ("accuracy", "f1"),
        "stsb": ("pearson", "spearman"),
        "mnli": ("accuracy",),
        "qnli": ("accuracy",),
        "rte": ("accuracy",),
        "wnli": ("accuracy",),
        "ax": ("matthews_correlation",),
    }


@pytest.mark.skipif(not DATA.is_dir(), reason="the GLUE files are not beside the checkout")
@pytest.mark.parametrize("name", GLUE_TASKS)
def test_columns_and_labels_are_those_of_the_files(name: str):
    task = GLUE_TASKS[name]
    files = sorted((DATA / name).glob("*.parquet"))
    assert files
    for file in files:
        features = Features.from_arrow_schema(pyarrow.parquet.read_schema(file))
        assert set(features) == {*task.text_columns, "label", "idx"}
        if task.is_regression:
            assert features["label"].dtype == "float32"
        else:
            assert isinstance(features["label"], ClassLabel)
            assert tuple(features["label"].names) == task.labels


def test_mnli_has_both_validation_splits_and_ax_none():
    assert GLUE_TASKS["mnli"].validation_splits == ("validation_matched", "validation_mismatched")
    assert GLUE_TASKS["ax"].validation_splits == ()
    assert GLUE_TASKS["ax"].labels == GLUE_TASKS["mnli"].labels


def test_tasks_are_returned_in_the_order_asked_for_and_once():
    assert [task.name for task in get_tasks(["rte", "cola", "rte"])] == ["rte", "cola"]


def test_all_stands_for_the_tasks_that_can_be_trained():
    assert [task.name for task in get_tasks(["all"])] == [name for name in GLUE_TASKS if name != "ax"]


@pytest.mark.parametrize("names", [["sst2", "sst3"], []])
def test_unknown_tasks_are_named_with_what_is_allowed(names: list[str]):
    with pytest.raises(ValueError, match="cola, sst2, mrpc") as caught:
        get_tasks(names)
    assert ("'sst3'" in str(caught.value)) == bool(names)
    assert "'sst2'" not in str(caught.value)


def test_unknown_suite():
    with pytest.raises(ValueError, match="'superglue'; allowed: glue, zh, minisuite"):
        get_tasks(["all"], "superglue")


def test_minisuite_tasks_have_known_metrics():
    for task in get_suite("minisuite").values():
        TaskMetrics(task)
