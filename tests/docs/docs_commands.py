"""Commands as the documentation has them, read by the programs' own parsers, and not run."""

import argparse
import importlib
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import typer
import yaml
from accelerate.commands.launch import launch_command_parser
from docs_pages import ROOT, Block
from torch.distributed.run import get_args_parser
from transformers import HfArgumentParser

from benchmarks.demo import DemoArguments
from benchmarks.features.__main__ import app as features_app
from benchmarks.glue import validate
from benchmarks.glue.arguments import parse_arguments as parse_glue
from benchmarks.glue.compare_processes import CompareArguments
from benchmarks.minisuite.__main__ import MinisuiteArguments
from benchmarks.report.__main__ import report
from benchmarks.speed.__main__ import speed
from benchmarks.speed.memory import memory
from benchmarks.tokenizers.__main__ import app as tokenizers_app
from hf_lineage.cli import app as hf_lineage_app
from hf_lineage.pretraining.arguments import parse_arguments as parse_pretraining
from hf_lineage.pretraining.objective import FAMILIES, objective_class
from tokenizer_training.__main__ import app as tokenizer_training_app

ELLIPSIS = "…"  # in the text, for arguments that are left out
# Programs that are not ours, whose arguments are nobody's business here
FOREIGN = {"cat", "hf", "pytest"}


class UnknownCommand(Exception):
    """A command that nothing here can read."""


class IncompleteCommand(Exception):
    """A command that lacks arguments, which is no fault where a text only names it."""


def commands_in(block: Block) -> list[list[str]]:
    """The words of each command of a block, with those behind `|` and `&&` as commands of their own.

    What stands in a loop is there once with each value of the loop's variable.
    """
    found: list[list[str]] = []
    variable, values = "", [""]
    for line in block.code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["for"]:
            variable, values = f"${words[1]}", [word.removesuffix(";") for word in words[3:-1]]
        elif words == ["done"]:
            variable, values = "", [""]
        else:
            found += [part for value in values for part in _parts(words, {variable: value})]
    return found


def _parts(words: list[str], variables: dict[str, str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word in ("|", "&&", ";"):
            yield part
            part = []
        elif value := variables.get(word, word):
            part.append(value)
    if part:
        yield part


def read_command(words: list[str]) -> None:
    """Reads a command with the parser of its program.

    Raises:
        UnknownCommand: If the program, or the module that `python -m` names, is not known here.
        Exception: Whatever the program raises for arguments that it does not take.
    """
    while "=" in words[0] and not words[0].startswith("-"):
        words = words[1:]  # a variable of the environment
    program, *rest = words
    if program not in PROGRAMS:
        if program not in FOREIGN:
            raise UnknownCommand(f"no parser is known for {program}")
        return
    PROGRAMS[program](rest)


def read_module(module: str, arguments: list[str]) -> None:
    """Reads the arguments of `python -m module`."""
    if module not in MODULES:
        raise UnknownCommand(f"no parser is known for python -m {module}")
    importlib.import_module(module)
    if ELLIPSIS not in arguments:
        with _errors():
            MODULES[module](arguments)


@contextmanager
def _errors() -> Iterator[None]:
    """Makes exceptions of what parsers print before they stop the process."""
    with redirect_stderr(StringIO()) as said:
        try:
            yield
        except SystemExit as stopped:
            message = said.getvalue()
            kind = IncompleteCommand if "arguments are required" in message else ValueError
            raise kind(message) from stopped
        except Exception as error:
            # typer brings its own copy of click, but the oldest that is supported
            if type(error).__name__ in ("MissingParameter", "NoArgsIsHelpError"):
                raise IncompleteCommand(str(error)) from error
            raise


def _python(words: list[str]) -> None:
    if words[0] == "-m":
        read_module(words[1], words[2:])
    elif not (ROOT / words[0]).is_file():
        raise ValueError(f"no file {words[0]}")


def _accelerate(words: list[str]) -> None:
    with _errors():
        arguments = launch_command_parser().parse_args(words[1:])
    if arguments.config_file is not None:
        yaml.safe_load((ROOT / arguments.config_file).read_text(encoding="utf-8"))
    assert words[0] == "launch"
    assert arguments.module
    read_module(arguments.training_script, arguments.training_script_args)


def _torchrun(words: list[str]) -> None:
    with _errors():
        arguments = get_args_parser().parse_args(words)
    assert arguments.module
    read_module(arguments.training_script, arguments.training_script_args)


def _pip(words: list[str]) -> None:
    """`pip install`: an extra of ours must exist."""
    assert words[0] == "install"
    extras = _extras()
    for word in (word for word in words[1:] if not word.startswith("-")):
        wanted = re.fullmatch(r"(?:\.|hf-lineage)(?:\[([\w,]+)\])?", word)
        if wanted and (unknown := {*(wanted[1] or "").split(",")} - {"", *extras}):
            raise ValueError(f"no extra {', '.join(sorted(unknown))}")


def _extras() -> set[str]:
    section = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[project.optional-dependencies]\n")[1]
    return {line.split(" = ")[0] for line in section.split("\n[")[0].splitlines() if " = " in line}


def _make(words: list[str]) -> None:
    (targets,) = (line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY:"))
    if unknown := {word for word in words if "=" not in word} - {*targets.split()[1:]}:
        raise ValueError(f"no target {', '.join(sorted(unknown))}")
    subprocess.run(["make", "--dry-run", *words], cwd=ROOT, check=True, capture_output=True)


def _hf_lineage(words: list[str]) -> None:
    if ELLIPSIS not in words:
        with _errors():
            _typer(hf_lineage_app)(words)


def _typer(app: typer.Typer) -> Callable[[list[str]], None]:
    def read(arguments: list[str]) -> None:
        command = typer.main.get_command(app)
        _silence(command)
        command.main(arguments, standalone_mode=False)

    return read


def _silence(command: Any) -> None:
    """Has a command read its arguments and do nothing with them."""
    command.callback = lambda **_: None
    for child in getattr(command, "commands", {}).values():
        _silence(child)


def _typer_function(function: Callable) -> Callable[[list[str]], None]:
    app = typer.Typer()
    app.command()(function)
    return _typer(app)


def _dataclass(arguments_class: type) -> Callable[[list[str]], None]:
    return lambda arguments: HfArgumentParser(arguments_class).parse_args_into_dataclasses(arguments)


def _pretraining(arguments: list[str]) -> None:
    parse_pretraining(arguments, list(FAMILIES), lambda family: objective_class(family).arguments_class)


def _resume_check(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--output_dir", type=Path, required=True)
    known, rest = parser.parse_known_args(arguments)
    parse_glue([*rest, f"--output_dir={known.output_dir}"])


PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "accelerate": _accelerate,
    "hf-lineage": _hf_lineage,
    "make": _make,
    "pip": _pip,
    "python": _python,
    "torchrun": _torchrun,
}
MODULES: dict[str, Callable[[list[str]], object]] = {
    "benchmarks.demo": _dataclass(DemoArguments),
    "benchmarks.features": _typer(features_app),
    "benchmarks.glue": parse_glue,
    "benchmarks.glue.compare_processes": _dataclass(CompareArguments),
    "benchmarks.glue.validate": validate.main,
    "benchmarks.minisuite": _dataclass(MinisuiteArguments),
    "benchmarks.report": _typer_function(report),
    "benchmarks.resume_check": _resume_check,
    "benchmarks.speed": _typer_function(speed),
    "benchmarks.speed.memory": _typer_function(memory),
    "benchmarks.tokenizers": _typer(tokenizers_app),
    "hf_lineage.pretraining": _pretraining,
    "tokenizer_training": _typer(tokenizer_training_app),
}
