from pathlib import Path

import pyarrow.parquet
import pytest
from datasets import ClassLabel, Features

from benchmarks.glue.arguments import DataArguments
from benchmarks.glue.data import load_task_data, load_tasks, select_tasks
from benchmarks.glue.results import majority_baseline
from benchmarks.glue.tasks import ZH_TASKS


@pytest.fixture
def zh(shared: Path) -> Path:
    return shared / "data" / "zh"


@pytest.mark.parametrize("name", ZH_TASKS)
def test_columns_and_labels_are_those_of_the_files(name: str, zh: Path):
    task = ZH_TASKS[name]
    files = sorted((zh / name).glob("*.parquet"))
    assert files
    for file in files:
        features = Features.from_arrow_schema(pyarrow.parquet.read_schema(file))
        assert set(task.text_columns) <= set(features)
        if task.is_regression:
            assert features["label"].dtype == "float32"
        else:
            assert isinstance(features["label"], ClassLabel)
            assert tuple(features["label"].names) == task.labels


def test_every_folder_is_a_task(zh: Path):
    assert {path.name for path in zh.iterdir()} == set(ZH_TASKS)


def test_all_tasks_with_training_data_are_loaded(zh: Path):
    arguments = DataArguments("all", suite="zh", data_dir=str(zh), predict=True)
    with pytest.warns(UserWarning, match=r"Left out of all tasks: The task 'afqmc' lacks train"):
        loaded = load_tasks(select_tasks(arguments), arguments)
    assert [data.task.name for data in loaded] == [name for name in ZH_TASKS if name != "afqmc"]
    assert all(data.tests and "label" in next(iter(data.tests.values())).column_names for data in loaded)


# The shares that the data's own description gives.
@pytest.mark.parametrize(
    ("name", "score"),
    [("chnsenticorp", 607 / 1200), ("afqmc", 2978 / 4316), ("fewclue_bustm", 82 / 160), ("stsb_mt", 0.0)],
)
def test_majority_baselines(name: str, score: float, zh: Path):
    data = load_task_data(ZH_TASKS[name], suite="zh", data_dir=str(zh), needs_train=False)
    baseline = majority_baseline(data)
    assert baseline["score"] == pytest.approx(score)
    assert baseline["label_from"] == ("validation" if name == "afqmc" else "train")
