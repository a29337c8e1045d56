"""Time a family against transformers' classes.

`python -m benchmarks.speed albert [--only NAME]... [--repeats N] [--threads N] [--output FILE.json]`

Each case has a process of its own, in which it first checks that both sides compute the same numbers and then times
them in pairs. For figures worth keeping, run it alone on the machine; the whole of `albert` takes about twelve minutes
on two cores.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from benchmarks.command_line import one_line_errors
from benchmarks.speed.cases import Case, run_case_alone
from benchmarks.speed.report import describe, render, write_report

# Family -> the module whose `cases()` are its comparisons
FAMILIES = {family: f"benchmarks.speed.{family}" for family in ("albert", "elmo", "xlnet")}


def speed(
    family: Annotated[str, typer.Argument(help=f"What to time: {', '.join(FAMILIES)}.")],
    only: Annotated[list[str] | None, typer.Option(help="Name of a case; may be repeated. Default: all.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Pairs a case at least, all batches taken together.")] = 16,
    threads: Annotated[int, typer.Option(min=1, help="Threads that torch uses.")] = 2,
    output: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Time a family against transformers' classes, in pairs, and print a table."""
    selected = selected_cases(family, only, output)
    torch.set_num_threads(threads)
    show_progress = sys.stderr.isatty()
    results = []
    for case in selected:
        results.append(run_case_alone(case, repeats, threads, show_progress))
        report = describe(family, results)
        if output is not None:
            write_report(output, report)  # a run that is stopped leaves the cases that it finished
    Console().print(render(report))


def selected_cases(family: str, only: Sequence[str] | None, output: Path | None) -> list[Case]:
    """Return the cases of a family that were asked for, after a look at where their results go.

    Raises:
        ValueError: If there is no such family or case, or the results could not be written.
    """
    if output is not None:
        _check_output(output)
    if family not in FAMILIES:
        raise ValueError(f"the family must be one of {', '.join(FAMILIES)}, got {family!r}")
    return select(importlib.import_module(FAMILIES[family]).cases(), only)


def select(cases: Sequence[Case], only: Sequence[str] | None) -> list[Case]:
    """Return the cases of these names in their own order, all of them if there are none.

    Raises:
        ValueError: If there is no case of a name.
    """
    names = [case.name for case in cases]
    unknown = [name for name in only or () if name not in names]
    if unknown:
        raise ValueError(f"--only must be one of {', '.join(names)}, got {', '.join(unknown)}")
    return [case for case in cases if not only or case.name in only]


def _check_output(path: Path) -> None:
    """Find out before minutes of work that their results could not be written."""
    if not path.parent.is_dir():
        raise ValueError(f"--output {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"--output {path}: it is a folder, the results are one file")


def main() -> None:
    """Run the command; an error in what the user gave is one line on stderr and exit status 2."""
    with one_line_errors("benchmarks.speed"):
        typer.run(speed)


if __name__ == "__main__":
    main()
