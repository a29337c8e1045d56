import dataclasses
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Value
from transformers import AutoTokenizer

from benchmarks.glue.arguments import DataArguments, FineTuningArguments
from benchmarks.glue.data import (
    TextCollator,
    evaluation_loader,
    limit_train,
    load_task_data,
    load_tasks,
    majority_label,
    select_tasks,
    train_loader,
)
from benchmarks.glue.tasks import GLUE_TASKS, get_suite
from hf_lineage import ElmoTokenizer

SST2, STSB, MNLI = GLUE_TASKS["sst2"], GLUE_TASKS["stsb"], GLUE_TASKS["mnli"]


def settings(**options) -> FineTuningArguments:
    return FineTuningArguments(output_dir="unused", **options)


def test_a_folder_is_read_with_the_columns_of_the_task(data_dir: Path):
    data = load_task_data(SST2, data_dir=str(data_dir))
    assert data.train.column_names == ["sentence", "label"]
    assert (len(data.train), {name: len(split) for name, split in data.validation.items()}) == (96, {"validation": 13})
    source = data.sources["train"]
    assert (source.rows, source.is_subset, source.file) == (96, False, str(data_dir / "sst2" / "train.parquet"))
    assert len(source.sha256) == 64


def test_a_subset_is_taken_and_marked_only_where_the_full_file_is_absent(tmp_path: Path, write_split, sentiment_rows):
    write_split(tmp_path, "sst2", "train_subset", sentiment_rows(3, 0))
    write_split(tmp_path, "sst2", "validation", sentiment_rows(4, 0))
    write_split(tmp_path, "sst2", "validation_subset", sentiment_rows(2, 0))
    data = load_task_data(SST2, data_dir=str(tmp_path))
    assert (data.sources["train"].is_subset, data.sources["validation"].is_subset) == (True, False)
    assert (len(data.train), len(data.validation["validation"])) == (3, 4)


def test_test_splits_are_never_read(tmp_path: Path, write_split, sentiment_rows):
    for split in ("train", "validation"):
        write_split(tmp_path, "sst2", split, sentiment_rows(3, 0))
    (tmp_path / "sst2" / "test.parquet").write_bytes(b"not parquet")
    assert set(load_task_data(SST2, data_dir=str(tmp_path)).splits) == {"train", "validation"}


def test_missing_folders_and_files_say_where_it_looked(tmp_path: Path, write_split, sentiment_rows):
    with pytest.raises(ValueError, match=str(tmp_path / "sst2")):
        load_task_data(SST2, data_dir=str(tmp_path))
    write_split(tmp_path, "sst2", "validation", sentiment_rows(3, 0))
    with pytest.raises(ValueError, match=rf"train\.parquet or train_subset\.parquet.*{tmp_path / 'sst2'}"):
        load_task_data(SST2, data_dir=str(tmp_path))
    assert load_task_data(SST2, data_dir=str(tmp_path), needs_train=False).train is None
    (tmp_path / "sst2" / "validation.parquet").rename(tmp_path / "sst2" / "train.parquet")
    with pytest.raises(ValueError, match="lacks validation "):
        load_task_data(SST2, data_dir=str(tmp_path))


def test_one_of_two_validation_splits_is_enough_but_said(tmp_path: Path, write_split):
    rows = [{"premise": "a", "hypothesis": "b", "label": label} for label in range(3)]
    for split in ("train", "validation_matched"):
        write_split(tmp_path, "mnli", split, rows)
    with pytest.warns(UserWarning, match="validation_mismatched"):
        data = load_task_data(MNLI, data_dir=str(tmp_path))
    assert data.missing_splits == ("validation_mismatched",)
    assert list(data.validation) == ["validation_matched"]


def test_a_broken_file_is_named(tmp_path: Path, write_split, sentiment_rows):
    path = write_split(tmp_path, "sst2", "train", sentiment_rows(3, 0))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"train\.parquet cannot be read"):
        load_task_data(SST2, data_dir=str(tmp_path))


def _write(tmp_path: Path, task_name: str, columns: dict) -> None:
    for split in ("train", "validation"):
        path = tmp_path / task_name / f"{split}.parquet"
        path.parent.mkdir(exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.table(columns), path)


@pytest.mark.parametrize(
    ("task_name", "columns", "message"),
    [
        ("sst2", {"text": ["a"], "label": [0]}, "sst2/train.*lacks the column sentence; it has text, label"),
        ("sst2", {"sentence": ["a"]}, "lacks the column label"),
        ("sst2", {"sentence": pyarrow.array([], "string"), "label": pyarrow.array([], "int64")}, "is empty"),
        ("sst2", {"sentence": ["a", "b"], "label": [0, -1]}, "from -1 to 0, allowed are 0 to 1"),
        ("sst2", {"sentence": ["a", "b"], "label": [0, 2]}, "from 0 to 2"),
        ("sst2", {"sentence": ["a", "b"], "label": [0, None]}, "1 rows have no label"),
        ("sst2", {"sentence": ["a", "b"], "label": ["negative", "positive"]}, "must be whole numbers, got string"),
        ("sst2", {"sentence": ["a", None], "label": [0, 1]}, "column sentence has 1 rows without a text"),
        ("sst2", {"sentence": [1, 2], "label": [0, 1]}, "must hold strings"),
        ("stsb", {"sentence1": ["a"], "sentence2": ["b"], "label": [-1.0]}, "allowed are 0.0 to 5.0"),
        ("stsb", {"sentence1": ["a"], "sentence2": ["b"], "label": [float("nan")]}, "NaN or infinite"),
        ("stsb", {"sentence1": ["a"], "sentence2": ["b"], "label": [1]}, "must be floats"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, task_name: str, columns: dict, message: str):
    _write(tmp_path, task_name, columns)
    with pytest.raises(ValueError, match=message):
        load_task_data(GLUE_TASKS[task_name], data_dir=str(tmp_path))


def test_another_label_order_is_refused(tmp_path: Path):
    features = Features({"sentence": Value("string"), "label": ClassLabel(names=["positive", "negative"])})
    for split in ("train", "validation"):
        path = tmp_path / "sst2" / f"{split}.parquet"
        path.parent.mkdir(exist_ok=True)
        Dataset.from_list([{"sentence": "a", "label": 0}], features=features).to_parquet(path)
    with pytest.raises(ValueError, match=r"the labels are .'positive', 'negative'.*those of the task"):
        load_task_data(SST2, data_dir=str(tmp_path))


def test_ax_has_nothing_to_train_or_evaluate_on(tmp_path: Path):
    with pytest.raises(ValueError, match="'ax' has no labelled split"):
        load_task_data(GLUE_TASKS["ax"], data_dir=str(tmp_path))


def test_without_a_folder_the_data_comes_from_the_hub(monkeypatch: pytest.MonkeyPatch, sentiment_rows):
    asked = []

    def load_dataset(*arguments):
        asked.append(arguments)
        splits = {name: sentiment_rows(3, 0) for name in ("train", "validation", "test")}
        return datasets.DatasetDict({name: Dataset.from_list(rows) for name, rows in splits.items()})

    monkeypatch.setattr("benchmarks.glue.sources.load_dataset", load_dataset)
    data = load_task_data(SST2)
    assert asked == [("nyu-mll/glue", "sst2")]
    assert (data.origin, set(data.splits)) == ("nyu-mll/glue", {"train", "validation"})


def test_a_hub_out_of_reach_is_said_with_what_can_be_done(monkeypatch: pytest.MonkeyPatch):
    def load_dataset(*arguments):
        raise ConnectionError("no network")

    monkeypatch.setattr("benchmarks.glue.sources.load_dataset", load_dataset)
    with pytest.raises(ValueError, match=r"no network\. Without a network, give --data_dir, or --suite minisuite"):
        load_task_data(SST2)


def test_all_leaves_out_tasks_without_data_and_says_so(data_dir: Path):
    arguments = DataArguments("all", data_dir=str(data_dir))
    with pytest.warns(UserWarning, match="Left out of all tasks: No data for the task 'cola'"):
        loaded = load_tasks(select_tasks(arguments), arguments)
    assert [data.task.name for data in loaded] == ["sst2", "stsb"]
    named = DataArguments("sst2,cola", data_dir=str(data_dir))
    with pytest.raises(ValueError, match="No data for the task 'cola'"):
        load_tasks(select_tasks(named), named)


@pytest.mark.filterwarnings("ignore:Left out of all tasks")
def test_all_of_an_empty_folder_is_an_error(tmp_path: Path):
    arguments = DataArguments("all", data_dir=str(tmp_path))
    with pytest.raises(ValueError, match="No task of the suite 'glue' has all its data in"):
        load_tasks(select_tasks(arguments), arguments)


@pytest.mark.filterwarnings("ignore:Not predicted", "ignore:Evaluated on the other")
def test_a_diagnostic_set_that_is_named_must_be_there(tmp_path: Path, write_split):
    rows = [{"premise": "a", "hypothesis": "b", "label": label} for label in range(3)]
    for split in ("train", "validation_matched", "test_matched"):
        write_split(tmp_path, "mnli", split, rows)
    alone, named = (DataArguments(names, data_dir=str(tmp_path), predict=True) for names in ("mnli", "mnli,ax"))
    (loaded,) = load_tasks(select_tasks(alone), alone)
    assert set(loaded.tests) == {"test_matched"}
    with pytest.raises(ValueError, match=r"There is no data of the task 'ax' beside that of .*mnli"):
        load_tasks(select_tasks(named), named)


def test_hidden_labels_of_test_splits_are_left_out(tmp_path: Path, write_split, sentiment_rows):
    for split in ("train", "validation", "test"):
        write_split(tmp_path, "sst2", split, sentiment_rows(4, 0))
    assert "label" in load_task_data(SST2, data_dir=str(tmp_path), needs_tests=True).tests["test"].column_names
    write_split(tmp_path, "sst2", "test", [{**row, "label": -1} for row in sentiment_rows(4, 0)])
    assert load_task_data(SST2, data_dir=str(tmp_path), needs_tests=True).tests["test"].column_names == ["sentence"]
    write_split(tmp_path, "sst2", "test", [{"sentence": "a", "label": label} for label in (-1, 1)])
    with pytest.raises(ValueError, match=r"sst2/test .* labels reach from -1 to 1"):
        load_task_data(SST2, data_dir=str(tmp_path), needs_tests=True)


def test_the_minisuite_is_generated():
    task = next(iter(get_suite("minisuite").values()))
    data = load_task_data(task, suite="minisuite")
    assert "minisuite" in data.origin
    assert len(data.train) > len(data.validation["validation"]) > 0


def test_limit_is_a_choice_that_repeats(data_dir: Path):
    train = load_task_data(SST2, data_dir=str(data_dir)).train
    assert limit_train(train, None) is train
    assert limit_train(train, 96) is train
    limited = limit_train(train, 10)
    assert len(limited) == 10
    assert limited["sentence"][:] == limit_train(train, 10)["sentence"][:]
    assert limited["sentence"][:] != train["sentence"][:10]


def test_majority_is_that_of_the_rows_selected(data_dir: Path):
    train = load_task_data(SST2, data_dir=str(data_dir)).train
    for label in (0, 1):
        rows = [index for index, value in enumerate(train["label"][:]) if value == label]
        assert majority_label(SST2, train.select(rows)) == label
    assert majority_label(SST2, Dataset.from_dict({"label": [1, 0, 0, 1]})) == 0


@pytest.fixture
def collator(model_dir: Path) -> TextCollator:
    return TextCollator(AutoTokenizer.from_pretrained(model_dir), SST2, max_length=8)


def test_collator_pads_to_the_longest_and_cuts_to_the_bound(collator: TextCollator):
    batch = collator([{"sentence": "the film", "label": 1}, {"sentence": "bad " * 20, "label": 0}])
    assert batch["input_ids"].shape == (2, 8)
    assert batch["attention_mask"].sum(1).tolist() == [4, 8]
    assert (batch["labels"].tolist(), batch["labels"].dtype) == ([1, 0], torch.int64)
    assert collator([{"sentence": "the film", "label": 1}])["input_ids"].shape == (1, 4)


def test_collator_takes_pairs_of_character_ids_and_float_labels():
    collator = TextCollator(ElmoTokenizer(), STSB, max_length=12)
    rows = [
        {"sentence1": "A short one.", "sentence2": "Another!", "label": 2.5},
        {"sentence1": "This one is " + "very " * 20 + "long", "sentence2": "Another!", "label": 0.0},
    ]
    batch = collator(rows)
    assert batch["input_ids"].shape == (2, 12, 50)
    assert batch["attention_mask"].shape == batch["token_type_ids"].shape == (2, 12)
    assert (batch["labels"].tolist(), batch["labels"].dtype) == ([2.5, 0.0], torch.float32)


def _orders(collator: TextCollator, split: Dataset, seed: int, num_processes: int = 1, **options) -> list[list[str]]:
    """Return the sentences of two epochs as the loader orders them."""
    loader = train_loader(split, collator, settings(**options), num_processes, seed)
    orders = []
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        orders.append([split[index]["sentence"] for batch in loader.batch_sampler for index in batch])
    return orders


@pytest.mark.parametrize("group_by_length", [True, False])
def test_order_follows_seed_and_epoch_and_covers_every_example(collator, data_dir, group_by_length):
    split = load_task_data(SST2, data_dir=str(data_dir)).train
    options = {"group_by_length": group_by_length, "per_device_train_batch_size": 4}
    first, second = _orders(collator, split, seed=1, **options)
    assert sorted(first) == sorted(second) == sorted(split["sentence"][:])
    assert first != second
    assert _orders(collator, split, seed=1, **options) == [first, second]
    assert second not in _orders(collator, split, seed=2, **options)


def test_order_depends_on_the_size_of_a_step_only(collator, data_dir):
    split = load_task_data(SST2, data_dir=str(data_dir)).train
    whole = _orders(collator, split, seed=1, per_device_train_batch_size=8)
    assert _orders(collator, split, seed=1, per_device_train_batch_size=4, gradient_accumulation_steps=2) == whole
    assert _orders(collator, split, seed=1, per_device_train_batch_size=4, num_processes=2) == whole


def test_grouping_pads_less(collator, data_dir):
    split = limit_train(load_task_data(SST2, data_dir=str(data_dir)).train, 40)

    def padding(group_by_length: bool) -> int:
        options = settings(per_device_train_batch_size=4, group_by_length=group_by_length)
        loader = train_loader(split, dataclasses.replace(collator, max_length=32), options, 1, seed=0)
        return sum((batch["attention_mask"] == 0).sum().item() for batch in loader)

    assert padding(True) < 0.5 * padding(False)


def test_evaluation_goes_from_long_to_short(collator, data_dir):
    split = load_task_data(SST2, data_dir=str(data_dir)).validation["validation"]
    loader = evaluation_loader(
        split, dataclasses.replace(collator, max_length=32), settings(per_device_eval_batch_size=4)
    )
    sizes = [batch["attention_mask"].sum(1).tolist() for batch in loader]
    flat = [size for batch in sizes for size in batch]
    assert len(flat) == 13
    assert flat == sorted(flat, reverse=True)
