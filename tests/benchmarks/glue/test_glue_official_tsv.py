from pathlib import Path

import pyarrow.parquet
import pytest
from official_files import FOLDERS, write_official

from benchmarks.glue.data import load_task_data
from benchmarks.glue.sources import read_folder
from benchmarks.glue.tasks import GLUE_TASKS, Task

# Quotes that never close, a line separator and a no-break space that end no row, and blanks to be kept.
TEXTS = ['He said "no', 'it \'s "fine" ', "a\u2028b\x85c\x0bd", "\xa0caf\xe9 \u2013 x", "''", "plain", "", " {label} "]


def rows_of(task: Task, count: int = 8) -> list[dict]:
    rows = []
    for index in range(count):
        row = {column: TEXTS[(index + at) % len(TEXTS)] for at, column in enumerate(task.text_columns)}
        rows.append({**row, "label": 0.4 * index if task.is_regression else index % len(task.labels)})
    return rows


def write_all(folder: Path, task: Task) -> dict[str, list[dict]]:
    splits = {}
    for name in filter(None, (task.train_split, *task.validation_splits, *task.test_splits)):
        splits[name] = rows_of(task, 6 + len(splits))
        write_official(folder, task, name, splits[name])
    return splits


@pytest.mark.parametrize(
    "task", [task for task in GLUE_TASKS.values() if task.validation_splits], ids=lambda t: t.name
)
def test_every_task_is_read_as_it_was_written(task: Task, tmp_path: Path):
    splits = write_all(tmp_path, task)
    for diagnostic in task.diagnostics:
        splits[diagnostic] = rows_of(GLUE_TASKS[diagnostic], 5)
        write_official(tmp_path, GLUE_TASKS[diagnostic], "test", splits[diagnostic])
    data = load_task_data(task, data_dir=str(tmp_path), needs_tests=True)
    assert {*data.splits, *data.tests} == set(splits)
    for name, rows in splits.items():
        read = data.splits[name] if name in data.splits else data.tests[name]
        for column in task.text_columns:
            assert read[column][:] == [row[column] for row in rows]
        if name in data.splits:
            assert read["label"][:] == pytest.approx([row["label"] for row in rows])
        else:
            assert "label" not in read.column_names
        source = data.sources[name]
        assert (source.rows, source.bad_rows, source.is_subset) == (len(rows), 0, False)
        assert Path(source.file).parent.name in FOLDERS.values()


@pytest.mark.parametrize("name", GLUE_TASKS)
def test_the_real_texts_survive_the_official_form(name: str, shared: Path, tmp_path: Path):
    task = GLUE_TASKS[name]
    for file in sorted((shared / "data" / "glue" / name).glob("*.parquet")):
        split = file.stem.removesuffix("_subset")
        if split == "test_labelled":
            continue
        rows = pyarrow.parquet.read_table(file).slice(0, 3000).to_pylist()
        write_official(tmp_path, task, split, rows)
        read = read_folder(task, tmp_path, [split]).splits[split]
        for column in task.text_columns:
            assert read[column][:] == [row[column] for row in rows]
        if split not in task.test_splits:
            assert read["label"][:] == [row["label"] for row in rows]


def test_damaged_rows_are_left_out_counted_and_named(tmp_path: Path):
    task = GLUE_TASKS["qqp"]
    write_all(tmp_path, task)
    path = tmp_path / "QQP" / "train.tsv"
    lines = path.read_text().split("\n")
    lines[2] = lines[2].rsplit("\t", 2)[0]
    lines[4] += "\tmore"
    lines.insert(6, "")
    path.write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=r"train\.tsv: 3 rows are damaged and left out, on the lines 3, 5, 7\."):
        data = load_task_data(task, data_dir=str(tmp_path))
    source = data.sources["train"]
    assert (len(data.train), source.rows, source.bad_rows, source.first_bad_lines) == (4, 4, 3, (3, 5, 7))


def test_a_damaged_row_of_a_test_file_is_an_error(tmp_path: Path):
    write_all(tmp_path, GLUE_TASKS["qqp"])
    path = tmp_path / "QQP" / "test.tsv"
    path.write_text(path.read_text().replace("\n2\t", "\n2 ", 1))
    with pytest.raises(ValueError, match=r"test\.tsv: 1 rows are damaged, on the lines 4; every row"):
        load_task_data(GLUE_TASKS["qqp"], data_dir=str(tmp_path), needs_tests=True)
    load_task_data(GLUE_TASKS["qqp"], data_dir=str(tmp_path))


def test_test_rows_out_of_order_are_an_error(tmp_path: Path):
    write_all(tmp_path, GLUE_TASKS["rte"])
    path = tmp_path / "RTE" / "test.tsv"
    lines = path.read_text().split("\n")
    path.write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]))
    with pytest.raises(ValueError, match="the column index must count from 0 to 7 in this order"):
        load_task_data(GLUE_TASKS["rte"], data_dir=str(tmp_path), needs_tests=True)


def test_rows_of_mnli_without_a_gold_label_are_left_out(tmp_path: Path):
    write_all(tmp_path, GLUE_TASKS["mnli"])
    path = tmp_path / "MNLI" / "dev_matched.tsv"
    path.write_text(path.read_text().replace("\tcontradiction\n", "\t-\n", 1))
    with pytest.warns(UserWarning, match=r"dev_matched\.tsv: 1 rows .* on the lines 4\."):
        data = load_task_data(GLUE_TASKS["mnli"], data_dir=str(tmp_path))
    assert len(data.validation["validation_matched"]) == 6


@pytest.mark.parametrize("name", ["cola", "rte"])
def test_unknown_labels_are_an_error(name: str, tmp_path: Path):
    write_all(tmp_path, GLUE_TASKS[name])
    path = tmp_path / FOLDERS[name] / "train.tsv"
    old, new = ("\t1\t", "\tyes\t") if name == "cola" else ("\tnot_entailment\n", "\tyes\n")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=r"train\.tsv: the labels must be .*, got 'yes' on line . \(3 rows"):
        load_task_data(GLUE_TASKS[name], data_dir=str(tmp_path))


def test_a_score_that_is_no_number_is_an_error(tmp_path: Path):
    write_all(tmp_path, GLUE_TASKS["stsb"])
    path = tmp_path / "STS-B" / "dev.tsv"
    path.write_text(path.read_text().replace("\t0.4\n", "\thigh\n"))
    with pytest.raises(ValueError, match=r"dev\.tsv: the score on line 3 is not a number"):
        load_task_data(GLUE_TASKS["stsb"], data_dir=str(tmp_path))


def test_missing_columns_and_bytes_that_are_no_text_are_named(tmp_path: Path):
    write_all(tmp_path, GLUE_TASKS["qnli"])
    path = tmp_path / "QNLI" / "train.tsv"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"question", b"query", 1))
    with pytest.raises(ValueError, match=r"train\.tsv lacks the column question; it has index, query, sentence"):
        load_task_data(GLUE_TASKS["qnli"], data_dir=str(tmp_path))
    path.write_bytes(content + b"\xff")
    with pytest.raises(ValueError, match=r"train\.tsv cannot be read as UTF-8"):
        load_task_data(GLUE_TASKS["qnli"], data_dir=str(tmp_path))
    path.write_bytes(b"\n")
    with pytest.raises(ValueError, match=r"train\.tsv is empty"):
        load_task_data(GLUE_TASKS["qnli"], data_dir=str(tmp_path))


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_the_rows(tmp_path: Path):
    write_all(tmp_path, GLUE_TASKS["sst2"])
    expected = load_task_data(GLUE_TASKS["sst2"], data_dir=str(tmp_path)).train.to_dict()
    path = tmp_path / "SST-2" / "train.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_task_data(GLUE_TASKS["sst2"], data_dir=str(tmp_path)).train.to_dict() == expected


def _write_msr(folder: Path, rows: list[dict], name: str) -> None:
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    lines = [f"{row['label']}\t7{i}\t8{i}\t{row['sentence1']}\t{row['sentence2']}" for i, row in enumerate(rows)]
    (folder / name).write_bytes("".join(f"{line}\r\n" for line in (header, *lines)).encode())


def test_mrpc_as_microsoft_gives_it(tmp_path: Path):
    task, folder = GLUE_TASKS["mrpc"], tmp_path / "MRPC"
    folder.mkdir()
    rows = rows_of(task, 8)
    _write_msr(folder, rows, "msr_paraphrase_train.txt")
    _write_msr(folder, rows[:3], "msr_paraphrase_test.txt")
    with pytest.raises(ValueError, match=r"dev_ids\.tsv is missing"):
        load_task_data(task, data_dir=str(tmp_path))
    (folder / "dev_ids.tsv").write_text("71\t81\n76\t86\n")
    data = load_task_data(task, data_dir=str(tmp_path), needs_tests=True)
    assert data.validation["validation"]["sentence1"][:] == [rows[index]["sentence1"] for index in (1, 6)]
    assert data.train["sentence2"][:] == [rows[index]["sentence2"] for index in (0, 2, 3, 4, 5, 7)]
    assert data.tests["test"]["label"][:] == [0, 1, 0]


def test_the_full_diagnostic_set_has_labels(tmp_path: Path):
    write_all(tmp_path, GLUE_TASKS["mnli"])
    header = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel\n"
    (tmp_path / "diagnostic").mkdir()
    (tmp_path / "diagnostic" / "diagnostic-full.tsv").write_text(
        header + "Quantifiers\t\t\t\tNews\tA cat.\tAn animal.\tentailment\n\t\tNegation\t\tNews\ta\tb\tcontradiction\n"
    )
    ax = load_task_data(GLUE_TASKS["mnli"], data_dir=str(tmp_path), needs_tests=True).tests["ax"]
    assert ax.to_dict() == {"premise": ["A cat.", "a"], "hypothesis": ["An animal.", "b"], "label": [0, 2]}


def test_parquet_files_win_over_official_ones(tmp_path: Path, write_split, sentiment_rows):
    write_all(tmp_path, GLUE_TASKS["sst2"])
    for split in ("train", "validation"):
        write_split(tmp_path, "sst2", split, sentiment_rows(3, 0))
    data = load_task_data(GLUE_TASKS["sst2"], data_dir=str(tmp_path))
    assert (len(data.train), data.origin) == (3, str(tmp_path / "sst2"))


def test_what_is_missing_is_called_by_its_official_name(tmp_path: Path):
    write_official(tmp_path, GLUE_TASKS["cola"], "test", rows_of(GLUE_TASKS["cola"]))
    with pytest.raises(ValueError, match=rf"lacks train \(train\.tsv\) in {tmp_path / 'CoLA'}"):
        load_task_data(GLUE_TASKS["cola"], data_dir=str(tmp_path))
    with pytest.raises(ValueError, match=rf"{tmp_path / 'rte'} is not a folder .*, nor {tmp_path / 'RTE'}"):
        load_task_data(GLUE_TASKS["rte"], data_dir=str(tmp_path))
