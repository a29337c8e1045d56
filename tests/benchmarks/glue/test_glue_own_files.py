import csv
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.glue.arguments import DataArguments
from benchmarks.glue.data import TaskData, load_tasks, select_tasks
from benchmarks.glue.own_files import describe_own_task

ROWS = [
    {"sentence1": 'a "b", c', "sentence2": "d\u2028e", "label": "yes"},
    {"sentence1": "two\nlines", "sentence2": "", "label": "no"},
    {"sentence1": "f", "sentence2": "g", "label": "yes"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    else:
        path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return str(path)


def load(folder: Path, suffix: str = ".csv", **changes: Any) -> TaskData:
    """Write three files, of which `train` and the like change the rows, and load them."""
    options = {name: value for name, value in changes.items() if name not in ("train", "validation", "test")}
    for split in ("train", "validation", "test"):
        rows = changes.get(split, ROWS if split != "test" else None)
        if rows is not None:
            options[f"{split}_file"] = write(folder / f"{split}{suffix}", rows)
    arguments = DataArguments("mine", predict=changes.get("test") is not None, **options)
    (data,) = load_tasks(select_tasks(arguments), arguments)
    return data


def labelled(*labels: Any) -> list[dict[str, Any]]:
    return [{"sentence1": f"text {index}", "label": label} for index, label in enumerate(labels)]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_pairs_are_read_as_they_were_written(tmp_path: Path, suffix: str):
    data = load(tmp_path, suffix, test=[{key: row[key] for key in ("sentence1", "sentence2")} for row in ROWS])
    assert (data.task.name, data.task.labels, data.task.metrics) == ("mine", ("no", "yes"), ("accuracy",))
    for split in (data.train, data.validation["validation"]):
        assert split.to_dict() == {
            "sentence1": [row["sentence1"] for row in ROWS],
            "sentence2": [row["sentence2"] for row in ROWS],
            "label": [1, 0, 1],
        }
    assert data.tests["test"].column_names == ["sentence1", "sentence2"]
    assert data.sources["train"].file == str(tmp_path / f"train{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize(
    ("labels", "names", "ids"),
    [
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        ([10, 9, 2], ("2", "9", "10"), [2, 1, 0]),
        ([0.5, 2.0, -1.25], (), [0.5, 2.0, -1.25]),
        ([1, 2.5, 3], (), [1.0, 2.5, 3.0]),
    ],
)
def test_labels_say_what_the_task_is(tmp_path: Path, suffix: str, labels, names, ids):
    data = load(tmp_path, suffix, train=labelled(*labels), validation=labelled(*labels))
    assert (data.task.labels, data.train["label"][:]) == (names, ids)
    assert data.task.text_columns == ("sentence1",)
    assert data.task.metrics == (("accuracy",) if names else ("pearson", "spearman"))


def test_truth_values_are_classes(tmp_path: Path):
    assert load(tmp_path, ".jsonl", train=labelled(True, False), validation=labelled(True)).task.labels == (
        "false",
        "true",
    )


def test_label_names_can_be_given_in_an_order(tmp_path: Path):
    data = load(tmp_path, labels="yes, no, maybe", metrics="matthews_correlation,accuracy")
    assert (data.task.labels, data.train["label"][:]) == (("yes", "no", "maybe"), [0, 1, 0])
    assert data.task.metrics == ("matthews_correlation", "accuracy")


@pytest.mark.parametrize("label", ["", -1])
def test_hidden_labels_of_a_test_file_are_none(tmp_path: Path, label):
    hidden = [{**row, "label": label} for row in ROWS]
    assert "label" not in load(tmp_path, test=hidden).tests["test"].column_names
    assert load(tmp_path, test=ROWS).tests["test"]["label"][:] == [1, 0, 1]


def test_a_class_may_be_called_minus_one(tmp_path: Path):
    rows = labelled(1, -1, 1)
    data = load(tmp_path, train=rows, validation=rows, test=labelled(-1, -1))
    assert (data.task.labels, data.tests["test"]["label"][:]) == (("-1", "1"), [0, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": [{"text": "a", "label": "x"}]}, r"train\.csv lacks the column sentence1; it has text, label"),
        ({"train": [{"sentence1": "a"}]}, r"train\.csv lacks the column label; it has sentence1"),
        (
            {"train": [{"sentence1": "a", "label": ""}]},
            r"train\.csv: 1 rows have no label, the first of them is row 1",
        ),
        ({"train": labelled("a", "a")}, r"train\.csv has the label a only; name all of them with --labels"),
        ({"train": [{"sentence1": "a", "label": "x\ty"}]}, "must not hold a tab"),
        (
            {"labels": "yes,si"},
            r"train\.csv: the labels of the task are yes, si; 1 rows .* row 2 with 'no'",
        ),
        ({"metrics": "bleu"}, "metric 'bleu' is none for a task of 2 labels; allowed: accuracy, f1, matthews"),
        ({"metrics": "pearson"}, "'pearson' is none for a task of 2 labels"),
        ({"metrics": "f1", "labels": "yes,no,maybe"}, "'f1' is none for a task of 3 labels"),
        ({"train": labelled(0.5, 1.5), "validation": labelled(1.5, "x")}, "regression, but the label of row 2 is 'x'"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, changes: dict, message: str):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, **changes)


def test_labels_that_training_never_has_are_named(tmp_path: Path):
    with pytest.raises(
        ValueError, match=r"validation\.csv: the labels of the task are no, yes; .*row 2 with 'perhaps'"
    ):
        load(tmp_path, validation=[ROWS[0], {**ROWS[1], "label": "perhaps"}])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "a.csv has no rows"),
        ("a.csv", "sentence1,label\n", "a.csv has no rows"),
        ("a.csv", "sentence1,label\na,1\nb,2,3\n", "row that ends on line 3 has 3 fields, the header has 2"),
        ("a.csv", 'sentence1,label\na,"1\n', "a.csv is not a CSV file: .* on line 2"),
        ("a.json", "[", "a.json is not JSON: .* on line 1, column 2"),
        ("a.json", "[]", "a.json has no rows"),
        ("a.jsonl", '{"sentence1": "a", "label": 1}\n\n{"sentence1": "b"\n', "a.jsonl is not JSON: .* on line 3"),
        ("a.jsonl", '{"sentence1": "a", "label": 1}\n{"sentence1": "b"}', "row 2 has the keys sentence1, row 1 has"),
        ("a.jsonl", "3", "row 1 is not an object"),
        ("a.jsonl", '{"sentence1": 3, "label": 1}\n{"sentence1": "b", "label": 0}', "sentence1 of row 1 .* got 3"),
        ("a.tsv", "sentence1\tlabel\n", r"must end in one of \.csv, \.json, \.jsonl"),
    ],
)
def test_broken_files_say_where(tmp_path: Path, name: str, content: str, message: str):
    file = tmp_path / name
    file.write_text(content)
    arguments = DataArguments("mine", train_file=str(file), validation_file=str(file))
    with pytest.raises(ValueError, match=message):
        load_tasks(select_tasks(arguments), arguments)


def test_files_that_are_missing_or_no_text(tmp_path: Path):
    with pytest.raises(ValueError, match="There is no file"):
        describe_own_task("mine", {"train": str(tmp_path / "a.csv")})
    (tmp_path / "a.csv").write_bytes(b"sentence1,label\n\xff,1\n")
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        describe_own_task("mine", {"train": str(tmp_path / "a.csv")})
