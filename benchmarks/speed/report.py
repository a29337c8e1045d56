"""What a run leaves behind: a table to read and a JSON to keep."""

import datetime
import importlib.metadata
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

import hf_lineage
from benchmarks.speed.cases import CaseResult
from hf_lineage.files import atomic_file

_PACKAGES = ("transformers", "torch", "numpy")


def describe(family: str, results: Sequence[CaseResult]) -> dict[str, Any]:
    """Collect what was measured and on what, in types that JSON has.

    Args:
        family: Name of the family.
        results: One for each case.
    """
    return {
        "benchmark": "benchmarks.speed",
        "family": family,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            "hf_lineage": hf_lineage.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _PACKAGES},
        },
        "platform": {
            "system": platform.platform(),
            "cpu": cpu_model(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "num_threads": torch.get_num_threads(),
        },
        "cases": [_describe_case(result) for result in results],
    }


def _describe_case(result: CaseResult) -> dict[str, Any]:
    case = result.case
    return {
        "name": case.name,
        "description": case.description,
        "baseline": case.baseline,
        "candidate": case.candidate,
        "wanted": case.wanted,
        "is_fast_enough": result.is_fast_enough,
        "tolerance": case.tolerance,
        "differences": result.differences,
        "facts": result.facts,
        "pairs": len(result.times["wall"].ratios),
        **{
            clock: {
                **times.summary(),
                "baseline_seconds": times.baseline,
                "candidate_seconds": times.candidate,
            }
            for clock, times in result.times.items()
        },
    }


def cpu_model() -> str | None:
    """Return the processor's name as the operating system gives it, `None` where it gives none."""
    path = Path("/proc/cpuinfo")
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or None


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Write the report as JSON, complete or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def render(report: dict[str, Any]) -> Table:
    """Return a table of a report from `describe`."""
    versions, machine = report["versions"], report["platform"]
    largest = max(difference for case in report["cases"] for difference in case["differences"].values())
    table = Table(
        title=f"{report['family']}: how many times faster, median (and range) of pairs",
        caption=f"Before timing, both sides of each case computed the same, to within {largest:.0e}.\n"
        f"{machine['cpu']} ({machine['cpu_capability']}), {machine['num_threads']} threads, torch "
        f"{versions['torch']}, transformers {versions['transformers']}, {report['date']}",
        title_justify="left",
        caption_justify="left",
        show_lines=True,
    )
    table.add_column("case", overflow="fold")
    for column in ("ms", "wall clock", "CPU time", "pairs", "wanted"):
        table.add_column(column, justify="right", no_wrap=True)
    for case in report["cases"]:
        table.add_row(*_cells(case))
    return table


def _cells(case: dict[str, Any]) -> list[str]:
    wall = case["wall"]
    wanted = "-" if case["wanted"] is None else f"{case['wanted']:.2f}"
    return [
        f"{case['name']}: {case['description']}\n{case['baseline']}\n{case['candidate']}",
        f"\n{1000 * wall['baseline_seconds_median']:.0f}\n{1000 * wall['candidate_seconds_median']:.0f}",
        _ratio(wall),
        _ratio(case["cpu"]),
        str(case["pairs"]),
        f"{wanted}\nmissed" if case["is_fast_enough"] is False else wanted,
    ]


def _ratio(summary: dict[str, float]) -> str:
    return f"{summary['ratio_median']:.2f}\n{summary['ratio_min']:.2f} .. {summary['ratio_max']:.2f}"
