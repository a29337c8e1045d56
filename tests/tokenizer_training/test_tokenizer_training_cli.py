import io
import json
import os
import re
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


TRAIN_EVERY_FAMILY = """
import sys
from tokenizer_training.__main__ import main
sizes = {"elmo": 10, "albert": 44, "xlnet": 48, "bert": 60, "gpt": 280, "words": 15}
for family, size in sizes.items():
    arguments = f"{family} --input a.txt --vocab_size {size} --output {family}"
    sys.argv = ["tokenizer_training", *arguments.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, family
    heavy = {"torch", "datasets", "pandas", "pyarrow", "scipy", "sklearn"} & set(sys.modules)
    assert not heavy, (family, heavy)
"""


def test_no_family_waits_for_packages_that_it_does_not_need(folder):
    pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")
    done = subprocess.run(
        [sys.executable, "-c", TRAIN_EVERY_FAMILY],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 0, done.stderr


def test_albert_from_standard_input(folder, run, monkeypatch):
    pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")
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
    assert printed.startswith("out: 8 entries; in 40 lines ")


@pytest.mark.parametrize(
    ("family", "options", "name"),
    [
        ("bert", ("--vocab_size", 60), "BertTokenizer"),
        ("gpt", ("--vocab_size", 270, "--extra_special_tokens", "<|user|> <|tool|>"), "GPT2Tokenizer"),
        ("words", ("--min_count", 2, "--lowercase"), "TokenizersBackend"),
        ("elmo", ("--text_split", "whitespace"), "ElmoTokenizer"),
    ],
)
def test_every_family_is_saved_with_its_report(folder, run, family, options, name):
    common = ("--input", "a.txt", "--held_out", 0.2, "--output", "out")
    status, printed, errors = run(family, *common, *options)
    assert status == 0, errors
    report = json.loads((folder / "out" / "tokenizer_report.json").read_text(encoding="utf-8"))
    assert report["tokenizer"] == name
    assert report["is_held_out"]
    assert 0 < report["lines"] < 20
    assert f"measured on {report['lines']} lines that were kept out of training" in printed
    assert (folder / "out" / "tokenizer_report.md").read_text(encoding="utf-8").startswith(f"# {name}\n")
    tokenizer = AutoTokenizer.from_pretrained("out")
    assert type(tokenizer).__name__ == name
    assert not [path for path in folder.iterdir() if path.name not in ("a.txt", "b.txt", "out")]


def test_datasets_are_text_too(folder, run):
    datasets = pytest.importorskip("datasets", reason="needs the extra train")
    datasets.Dataset.from_dict({"body": LINES.split("\n")}).to_parquet("data.parquet")
    common = ("--dataset", "data.parquet", "--text_column", "body")
    status, printed, errors = run("words", *common, "--output", "out", "--held_out", 0)
    assert status == 0, errors
    assert "40 lines of the training text, as none were kept out" in printed
    status, _, errors = run("words", "--dataset", "data.parquet", "--output", "other")
    assert status == 2
    assert "text_column must be a column of the dataset data.parquet, body, got 'text'" in errors


@pytest.mark.parametrize("family", ["albert", "xlnet", "bert"])
def test_languages_set_coverage_and_accents(folder, run, family):
    pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")
    # of some 40,000 characters 9 are rare: a share of 0.0002
    lines = [*LINES.split("\n") * 20, *["が国" * 10] * 200, "龘" * 3, "麤" * 3, "靐" * 3]
    (folder / "zh.txt").write_text("\n".join(lines), encoding="utf-8")
    size = {"albert": 45, "xlnet": 49, "bert": 65}[family]
    vocabularies = {}
    for name, options in (
        ("none", ()),
        ("zh", ("--language", "zh")),
        ("ja", ("--language", "ja")),
        ("own", ("--language", "ja", "--character_coverage", 1, "--no_keep_accents")),
    ):
        common = ("--input", "zh.txt", "--output", name, "--held_out", 0, "--vocab_size", size)
        status, _, errors = run(family, *common, *options)
        assert status == 0, errors
        vocabularies[name] = "".join(AutoTokenizer.from_pretrained(name).get_vocab())
    assert {name: ("龘" in found, "が" in found) for name, found in vocabularies.items()} == {
        "none": (True, False),
        "zh": (False, False),
        "ja": (False, True),
        "own": (True, False),
    }


def test_what_is_no_language(folder, run):
    status, _, errors = run("bert", "--input", "a.txt", "--language", "klingon", "--output", "out")
    assert status == 2
    assert "language must be one of zh, ja, ko," in errors
    assert "got 'klingon'" in errors


def test_two_tokenizers_side_by_side(folder, run):
    for family, size in (("bert", 60), ("gpt", 280)):
        status, _, errors = run(family, "--input", "a.txt", "--vocab_size", size, "--output", family)
        assert status == 0, errors
    status, printed, errors = run("compare", "bert", "gpt", "--text", "b.txt", "--sample_limit", 30)
    assert status == 0, errors
    assert "30 lines, 330 words" in printed
    for label in ("entries of the vocabulary", "fertility", "unknown tokens", "cut differently", "decoded exactly"):
        assert label in printed
    status, printed, errors = run("compare", "bert", "gpt", "--text", "b.txt", "--json")
    assert status == 0, errors
    found = json.loads(printed)
    assert [each["name"] for each in found["tokenizers"]] == ["bert", "gpt"]
    assert [each["vocab_size"] for each in found["tokenizers"]] == [60, 280]
    assert found["tokenizers"][1]["round_trip_exact"] == 1
    for first, message in (("./absent", "no folder ./absent"), ("a.txt", "no tokenizer can be loaded from a.txt")):
        status, _, errors = run("compare", first, "gpt", "--text", "b.txt")
        assert status == 2
        assert message in errors
        assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--input absent", "tokenizer_training: no text file or folder absent"),
        ("--input latin", "latin: byte 4 (0xef, in line 2) is not UTF-8; --errors replace reads on"),
        ("--input a.txt --vocab_size 5000", "the text is enough for a vocabulary of "),
        ("--input a.txt --output full", "full exists and is not empty: choose another folder, or overwrite"),
        ("--input a.txt --output a.txt", "a.txt must be a folder, but a file of that name exists"),
        ("--input a.txt --output a.txt/out", "a.txt is a file"),
        ("--input a.txt --output /proc/out", "tokenizer_training: cannot write /proc/out: "),
        ("--input a.txt --errors ignore", "errors must be 'strict' or 'replace', got 'ignore'"),
        ("--input empty", "no text in empty"),
        ("--input latin empty --held_out 1", "held_out must be at least 0 and below 1, got 1.0"),
        ("--vocab_size 60", "give at least one text file (--input) or dataset (--dataset)"),
        ("--dataset a.txt", "a dataset's file must end in .parquet"),
    ],
)
def test_errors_are_short_and_leave_nothing(folder, run, arguments, message):
    (folder / "latin").write_bytes(b"ok\nn\xef\n")
    (folder / "empty").touch()
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


def commands_of_the_documentation():
    page = (REPOSITORY / "docs" / "tokenizers.md").read_text(encoding="utf-8")
    for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.partition("  #")[0].partition("| ")[2] or line.partition("  #")[0]
            if command.startswith("python -m tokenizer_training"):
                yield command.removeprefix("python -m tokenizer_training ")


def test_commands_of_the_documentation(folder, run, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="needs the extra train")
    pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")
    (folder / "text").mkdir()
    lines = [f"{line} {word}" for line in LINES.splitlines() for word in ("却说曹操引军而来", "Été", "quickly")]
    for name in ("text/a.txt", "zh.txt", "held_out.txt"):
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    streamed = datasets.Dataset.from_dict({"text": lines}).to_iterable_dataset()
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: streamed)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("\n".join(lines).encode())))
    found = list(commands_of_the_documentation())
    assert {command.split()[0] for command in found} == {"elmo", "albert", "xlnet", "bert", "gpt", "words", "compare"}
    sizes = {"albert": 55, "xlnet": 58, "bert": 75, "gpt": 280, "elmo": 20, "words": 20}
    for command in found:
        arguments = command.split()
        if "--vocab_size" in arguments:  # the text is small
            arguments[arguments.index("--vocab_size") + 1] = sizes[arguments[0]]
        status, _, errors = run(*arguments)
        assert status == 0, f"{command}: {errors}"
