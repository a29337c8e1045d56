import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from transformers import AutoTokenizer

import hf_lineage
from tokenizer_training.__main__ import main

REPOSITORY = Path(hf_lineage.__file__).parents[1]
LINES = "\n".join(f"the cat number {number} sat on the mat, the dog ran" for number in range(40))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(LINES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command in this process: its exit status, and what it printed."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["tokenizer_training", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *capsys.readouterr()

    return call


def test_bert_from_files_as_a_shell_gives_them(folder):
    arguments = "bert --input a.txt b.txt --vocab_size 60 --output out"
    done = subprocess.run(
        [sys.executable, "-m", "tokenizer_training", *arguments.split()],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("out: 60 entries; in 80 lines ")
    tokenizer = AutoTokenizer.from_pretrained(folder / "out")
    assert len(tokenizer) == 60
    assert tokenizer.convert_tokens_to_ids("[MASK]") == 4


def test_albert_from_standard_input(folder, run, monkeypatch):
    pytest.importorskip("sentencepiece")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LINES.encode())))
    status, printed, errors = run(
        *("albert", "--input", "-", "--vocab-size", 36, "--output", "out", "--no-lowercase", "--keep_accents"),
        *("--user_defined_symbols", ", .", "--sample_limit", 30, "--seed", 3),
    )
    assert status == 0, errors
    assert printed.startswith("out: 36 entries; in 30 lines ")
    tokenizer = AutoTokenizer.from_pretrained(folder / "out")
    assert type(tokenizer).__name__ == "LineageAlbertTokenizer"
    assert not tokenizer.do_lower_case
    assert tokenizer.keep_accents
    assert tokenizer.convert_ids_to_tokens([5, 6]) == [",", "."]


def test_elmo_from_a_folder(folder, run):
    (folder / "text").mkdir()
    (folder / "a.txt").rename(folder / "text" / "a.txt")
    status, printed, errors = run("elmo", "--input", "text", "--vocab_size", 8, "--output", "out")
    assert status == 0, errors
    assert printed.startswith("out: 8 words cover ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--input absent", "tokenizer_training: no text file or folder absent"),
        ("--input latin", "latin: byte 4 (0xef, in line 2) is not UTF-8; --errors replace reads on"),
        ("--input a.txt --vocab_size 5000", "the text is enough for a vocabulary of "),
        ("--input a.txt --output full", "full exists and is not empty: choose another folder, or overwrite"),
        ("--input a.txt --output a.txt", "a.txt must be a folder, but a file of that name exists"),
        ("--input a.txt --output a.txt/out", "a.txt"),
        ("--input a.txt --errors ignore", "errors must be 'strict' or 'replace', got 'ignore'"),
    ],
)
def test_errors_are_short_and_leave_nothing(folder, run, arguments, message):
    (folder / "latin").write_bytes(b"ok\nn\xef\n")
    (folder / "full").mkdir()
    (folder / "full" / "kept").touch()
    before = sorted(folder.rglob("*"))
    output = "" if "--output" in arguments else "--output out"
    status, printed, errors = run("bert", *arguments.split(), *output.split())
    assert status == 2
    assert not printed
    assert message in errors
    assert "Traceback" not in errors
    assert sorted(folder.rglob("*")) == before
