import shlex
from contextlib import suppress
from pathlib import Path

import pytest
from docs_commands import (
    ELLIPSIS,
    MODULES,
    PROGRAMS,
    IncompleteCommand,
    UnknownCommand,
    commands_in,
    read_command,
)
from docs_pages import PAGES, ROOT, Block, blocks, code_spans

BASH = blocks("bash")
SPANS = [(page, span) for page in PAGES for span in code_spans(page) if " " in span and span.split()[0] in PROGRAMS]


def test_there_are_commands():
    assert {"README.md", "README.zh-CN.md", "CONTRIBUTING.md"} <= {block.page for block in BASH}


@pytest.fixture
def settings_files(tmp_path, monkeypatch):
    """An empty folder with the files of settings that commands name: the repository's own, or the page's listing."""
    monkeypatch.chdir(tmp_path)

    def write(page: str, words: list[str]) -> None:
        if "--config" in words:
            name = words[words.index("--config") + 1]
            if (ROOT / name).is_file():
                words[words.index(name)] = str(ROOT / name)
                return
            found = blocks("yaml", page) or [
                block for block in blocks("yaml") if f"family: {Path(name).stem}" in block.code.splitlines()
            ]
            (block,) = found
            Path(name).write_text(block.code, encoding="utf-8")

    return write


@pytest.mark.parametrize("block", BASH, ids=str)
def test_programs_take_the_commands_of_a_block(block, settings_files):
    for words in commands_in(block):
        settings_files(block.page, words)
        read_command(words)


@pytest.mark.parametrize(("page", "span"), SPANS)
def test_programs_know_the_commands_in_the_text(page, span, settings_files):
    words = shlex.split(span)
    # words in capitals stand for others
    words = [word for word, before in zip(words, ["", *words], strict=False) if not word.isupper() or "--" in before]
    if ELLIPSIS not in words:
        settings_files(page, words)
    with suppress(IncompleteCommand):
        read_command(words)


@pytest.mark.parametrize(
    "command",
    [
        "hf-lineage convert elmo --outputs x",
        "hf-lineage unknown",
        "python -m tokenizer_training albert --vocab_size many --output x",
        "python -m hf_lineage.pretraining --train_files a --tokenizer_name_or_path b --output_dir c --unroll_steps 3",
        "accelerate launch -m benchmarks.glue --model_name_or_path a --task_name cola --output_dir b --seed 1",
        "accelerate launch --number_of_processes 2 -m benchmarks.glue",
        "torchrun --processes 2 -m benchmarks.glue",
        "python -m benchmarks.report --out x.html runs",
        "python -m benchmarks.demo --output x",
        "python docs/missing.py",
        "make unknown",
        "make tests",
        "pip install '.[unknown]'",
    ],
)
def test_wrong_commands_are_noticed(command):
    (words,) = commands_in(Block("", 0, "bash", command))
    with pytest.raises(Exception, match=r".") as caught:
        read_command(words)
    assert not isinstance(caught.value, (UnknownCommand, IncompleteCommand))


@pytest.mark.parametrize(
    "command",
    ["hf-lineage convert", "hf-lineage convert elmo", "hf-lineage info", "python -m benchmarks.glue.validate"],
)
def test_commands_that_lack_arguments_are_noticed(command):
    with pytest.raises(IncompleteCommand):
        read_command(command.split())


def test_commands_that_nothing_can_read_are_noticed():
    assert "rm" not in PROGRAMS
    assert "pytest" not in MODULES
    for command in ("rm -r x", "python -m pytest"):
        with pytest.raises(UnknownCommand):
            read_command(command.split())


def test_commands_are_taken_apart():
    code = 'a b \\\n  c | d  # e\n\nfor x in "" --f; do\n  g $x && h\ndone\ni\n'
    assert commands_in(Block("", 0, "bash", code)) == [
        ["a", "b", "c"],
        ["d"],
        ["g"],
        ["h"],
        ["g", "--f"],
        ["h"],
        ["i"],
    ]
