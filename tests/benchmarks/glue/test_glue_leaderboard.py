import zipfile
from pathlib import Path

import pytest

from benchmarks.glue.leaderboard import PREDICTION_FILES, check_predictions, prediction_file
from benchmarks.glue.tasks import GLUE_TASKS
from benchmarks.glue.validate import main

FILES = {file.name: file for file in PREDICTION_FILES}
SMALL = [name for name in FILES if name != "QQP.tsv"]


def right(name: str) -> str:
    file = FILES[name]
    labels = file.labels or ("0.000", "5.000", "2.5", "3")
    return "index\tprediction\n" + "".join(f"{index}\t{labels[index % len(labels)]}\n" for index in range(file.rows))


def test_the_files_are_the_official_ones():
    assert {file.name: file.rows for file in PREDICTION_FILES} == {
        "CoLA.tsv": 1063,
        "SST-2.tsv": 1821,
        "MRPC.tsv": 1725,
        "STS-B.tsv": 1379,
        "QQP.tsv": 390965,
        "MNLI-m.tsv": 9796,
        "MNLI-mm.tsv": 9847,
        "QNLI.tsv": 5463,
        "RTE.tsv": 3000,
        "WNLI.tsv": 146,
        "AX.tsv": 1104,
    }


def test_every_test_split_has_its_file():
    found = {
        prediction_file(task, split)
        for task in GLUE_TASKS.values()
        for split in (*task.test_splits, *task.diagnostics)
        if task.validation_splits
    }
    assert found == set(PREDICTION_FILES)


@pytest.mark.parametrize("file", PREDICTION_FILES, ids=lambda file: file.name)
def test_labels_are_those_of_the_task(file):
    task = GLUE_TASKS[file.task]
    assert len(file.labels) == len(task.labels)
    if file.task in ("mnli", "qnli", "rte"):
        assert file.labels == task.labels
    elif file.labels:
        assert file.labels == ("0", "1")


@pytest.mark.parametrize("name", FILES)
def test_right_files_have_no_faults(name: str):
    assert check_predictions(FILES[name], right(name).encode()) == []


@pytest.mark.parametrize("name", SMALL)
def test_rows_too_few_or_too_many(name: str):
    file, text = FILES[name], right(name)
    cut = text.rstrip("\n").rsplit("\n", 1)[0] + "\n"
    assert check_predictions(file, cut.encode()) == [f"there must be {file.rows} rows, got {file.rows - 1}"]
    label = (file.labels or ("1.0",))[0]
    longer = f"{text}{file.rows}\t{label}\n"
    assert check_predictions(file, longer.encode()) == [f"there must be {file.rows} rows, got {file.rows + 1}"]


@pytest.mark.parametrize("name", SMALL)
def test_a_header_that_is_missing_or_another(name: str):
    assert "line 1: the header must be 'index\\tprediction', got 'id\\tlabel'" in check_predictions(
        FILES[name], right(name).replace("index\tprediction", "id\tlabel").encode()
    )
    faults = check_predictions(FILES[name], right(name).split("\n", 1)[1].encode())
    assert faults[0].startswith("line 1: the header must be")
    assert faults[1].startswith("there must be")


@pytest.mark.parametrize("name", SMALL)
def test_rows_out_of_order(name: str):
    lines = right(name).split("\n")
    lines[4], lines[5] = lines[5], lines[4]
    assert check_predictions(FILES[name], "\n".join(lines).encode()) == [
        "line 5: the index must be 3, got '4'",
        "line 6: the index must be 4, got '3'",
    ]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("wrong", ["", "2", "Entailment", "entailment ", "0\r", "-0.001", "5.001", "nan", "1e0", "١"])
def test_predictions_that_are_no_label(name: str, wrong: str):
    file = FILES[name]
    if not file.labels and wrong == "2":
        return
    lines = right(name).split("\n")
    lines[7] = f"6\t{wrong}"
    (fault,) = check_predictions(file, "\n".join(lines).encode())
    assert fault.startswith("line 8: the prediction must be")
    assert fault.endswith(repr(wrong))


@pytest.mark.parametrize("line", ["6", "6\t0\t0", "", "6,0"])
def test_rows_of_another_shape(line: str):
    lines = right("CoLA.tsv").split("\n")
    lines[7] = line
    (fault,) = check_predictions(FILES["CoLA.tsv"], "\n".join(lines).encode())
    assert fault == f"line 8: must be an index, a tab and a prediction, got {line!r}"


def test_label_names_of_digit_tasks_and_digits_of_named_tasks_are_faults():
    for name, wrong in (("WNLI.tsv", "entailment"), ("RTE.tsv", "0"), ("AX.tsv", "2"), ("SST-2.tsv", "positive")):
        text = "index\tprediction\n" + "".join(f"{index}\t{wrong}\n" for index in range(FILES[name].rows))
        faults = check_predictions(FILES[name], text.encode())
        assert len(faults) == 6
        assert faults[-1] == f"… {FILES[name].rows} faults of rows in all"


def test_bytes_that_are_no_text():
    assert check_predictions(FILES["WNLI.tsv"], b"\xff\xfe")[0].startswith("is not UTF-8 text")


@pytest.fixture(scope="module")
def submission(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("submission")
    for name in FILES:
        (folder / name).write_text(right(name))
    (folder / "predictions.json").write_text("{}")
    return folder


def _zip(path: Path, folder: Path, names: list[str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.write(folder / Path(name).name, name)
    return path


def test_a_whole_submission_is_right(submission: Path, tmp_path: Path, capsys):
    path = _zip(tmp_path / "submission.zip", submission, list(FILES))
    for given in (submission, path):
        assert main([str(given)]) == 0
        assert "right in every row (11 files of 426309 rows)" in capsys.readouterr().out


def test_missing_and_unknown_files(submission: Path, tmp_path: Path, capsys):
    path = _zip(tmp_path / "submission.zip", submission, ["WNLI.tsv", "glue/RTE.tsv"])
    assert main([str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "glue/RTE.tsv: is not a file of the leaderboard"
    assert set(lines[1:]) == {f"{name}: is missing" for name in FILES if name != "WNLI.tsv"}
    path = _zip(tmp_path / "part.zip", submission, ["WNLI.tsv"])
    assert main([str(path), "--allow_missing"]) == 0
    empty = _zip(tmp_path / "empty.zip", submission, [])
    assert main([str(empty), "--allow_missing"]) == 1
    assert capsys.readouterr().out.endswith("holds no predictions\n")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_there_twice(submission: Path, tmp_path: Path, capsys):
    path = _zip(tmp_path / "submission.zip", submission, ["WNLI.tsv", "WNLI.tsv"])
    assert main([str(path), "--allow_missing"]) == 1
    assert capsys.readouterr().out == "WNLI.tsv: is there twice\n"


def test_what_is_no_submission(tmp_path: Path, capsys):
    (tmp_path / "x.zip").write_bytes(b"PK nothing")
    for path, message in ((tmp_path / "x.zip", "neither a folder nor a zip"), (tmp_path / "y", "no file or folder")):
        assert main([str(path)]) == 2
        assert message in capsys.readouterr().err
