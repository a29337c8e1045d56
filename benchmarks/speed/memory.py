"""Peak memory of a family's cases against transformers' classes.

`python -m benchmarks.speed.memory xlnet [--only NAME]... [--threads N] [--repeats N] [--output FILE.json]`

Each side runs in processes of its own, which make both models, run the case once to warm up (which makes optimizer
states), and then tell by how much another run lifts the resident memory at its highest. Linux only: the kernel counts.
"""

import importlib
import json
import multiprocessing
import os
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.peak_memory import forget_peak, status_bytes
from benchmarks.speed.__main__ import FAMILIES, select, selected_cases
from hf_lineage.files import atomic_file

_SIDES = ("baseline", "candidate")
# Tensors of this size and more go back to the system when they are freed, so that nothing of the warm-up is left
_LARGEST_KEPT = 64 * 1024


def peak_memory(family: str, name: str, side: str, threads: int = 2, sizes: Any = None) -> int:
    """Bytes by which one run of a case lifts the memory of a process of its own, at its highest.

    Args:
        family: Name of the family.
        name: Name of the case.
        side: `"baseline"` or `"candidate"`.
        threads: Threads that torch uses.
        sizes: What the family's `cases` are given; by default its own.

    Raises:
        OSError: Where the system does not count it.
    """
    if not Path("/proc/self/clear_refs").exists():
        raise OSError("peak memory is measured by Linux alone (/proc/self/clear_refs)")
    before = os.environ.get("MALLOC_MMAP_THRESHOLD_")
    os.environ["MALLOC_MMAP_THRESHOLD_"] = str(_LARGEST_KEPT)
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(_measure, family, name, side, threads, sizes).result()
    finally:
        del os.environ["MALLOC_MMAP_THRESHOLD_"]
        if before is not None:
            os.environ["MALLOC_MMAP_THRESHOLD_"] = before


def _measure(family: str, name: str, side: str, threads: int, sizes: Any) -> int:
    torch.set_num_threads(threads)
    module = importlib.import_module(FAMILIES[family])
    (case,) = select(module.cases() if sizes is None else module.cases(sizes), [name])
    workload = case.build()
    run, value = getattr(workload, side), workload.inputs[0]
    run(value)
    forget_peak(torch.device("cpu"))
    before = status_bytes("VmRSS")
    run(value)
    return status_bytes("VmHWM") - before


def memory(
    family: Annotated[str, typer.Argument(help=f"What to measure: {', '.join(FAMILIES)}.")],
    only: Annotated[list[str] | None, typer.Option(help="Name of a case; may be repeated. Default: all.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Processes for each side.")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Threads that torch uses.")] = 2,
    output: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Measure the peak memory of a family's cases against transformers', and print a table."""
    selected = selected_cases(family, only, output)
    table = Table(title=f"{family}: memory that a run takes at its highest, median of {repeats} processes")
    for column in ("case", "transformers' (MB)", "ours (MB)", "ratio"):
        table.add_column(column, justify="left" if column == "case" else "right")
    measured = []
    for case in selected:
        found = {side: [peak_memory(family, case.name, side, threads) for _ in range(repeats)] for side in _SIDES}
        medians = {side: statistics.median(values) for side, values in found.items()}
        ratio = medians["candidate"] / medians["baseline"]
        measured.append({"name": case.name, "bytes": found, "ratio_of_medians": ratio})
        in_megabytes = [f"{medians[side] / 1e6:.0f}" for side in _SIDES]
        table.add_row(f"{case.name}: {case.description}", *in_megabytes, f"{ratio:.2f}")
        if output is not None:
            report = {"benchmark": "benchmarks.speed.memory", "family": family, "threads": threads, "cases": measured}
            with atomic_file(output) as temporary:
                temporary.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    Console().print(table)


def main() -> None:
    """Run the command; an error in what the user gave is one line on stderr and exit status 2."""
    try:
        typer.run(memory)
    except (ValueError, OSError) as error:
        print(f"benchmarks.speed.memory: {error}", file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
