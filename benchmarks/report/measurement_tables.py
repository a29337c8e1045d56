"""Tables of what `benchmarks.speed` and `benchmarks.speed.memory` measured."""

import statistics
from collections.abc import Sequence
from typing import Any

from rich.filesize import decimal

from benchmarks.report.tables import NOTHING, Column, Table


def speed_table(report: dict[str, Any]) -> Table:
    """Return a measurement of `benchmarks.speed`."""
    columns = (
        Column("case"),
        Column("baseline"),
        Column("candidate"),
        Column("baseline, ms", True),
        Column("candidate, ms", True),
        Column("times faster, wall clock", True),
        Column("times faster, CPU time", True),
        Column("pairs", True),
        Column("wanted", True),
    )
    cells = tuple(
        (
            f"{case['name']}: {case['description']}",
            case["baseline"],
            case["candidate"],
            f"{1000 * case['wall']['baseline_seconds_median']:.3g}",
            f"{1000 * case['wall']['candidate_seconds_median']:.3g}",
            _ratio_text(case["wall"]),
            _ratio_text(case["cpu"]),
            str(case["pairs"]),
            _wanted_text(case),
        )
        for case in report["cases"]
    )
    notes = ["Medians of the pairs; in brackets the range of the ratios.", *_speed_circumstances(report)]
    return Table(f"Speed of {report['family']}", columns, cells, tuple(notes))


def _ratio_text(times: dict[str, float]) -> str:
    return f"{times['ratio_median']:.2f} ({times['ratio_min']:.2f} to {times['ratio_max']:.2f})"


def _wanted_text(case: dict[str, Any]) -> str:
    if case.get("wanted") is None:
        return NOTHING
    return f"{case['wanted']:.2f}" + (", missed" if case.get("is_fast_enough") is False else "")


def _speed_circumstances(report: dict[str, Any]) -> list[str]:
    differences = [value for case in report["cases"] for value in (case.get("differences") or {}).values()]
    notes = []
    if differences:
        notes.append(f"Before timing, both sides of each case computed the same, to within {max(differences):.0e}.")
    machine, versions = report.get("platform") or {}, report.get("versions") or {}
    parts = [machine.get("cpu"), f"{machine['num_threads']} threads" if machine.get("num_threads") else None]
    parts += [f"{name} {versions[name]}" for name in ("torch", "transformers", "hf_lineage") if versions.get(name)]
    described = ", ".join(str(part) for part in [*parts, report.get("date")] if part)
    return [*notes, f"{described}."] if described else notes


def memory_table(report: dict[str, Any]) -> Table:
    """Return a measurement of `benchmarks.speed.memory`."""
    columns = (Column("case"), Column("transformers'", True), Column("ours", True), Column("ours / theirs", True))
    cells = tuple(
        (
            case["name"],
            *(_median_bytes_text(case["bytes"].get(side)) for side in ("baseline", "candidate")),
            f"{case['ratio_of_medians']:.2f}",
        )
        for case in report["cases"]
    )
    note = "Memory that a run takes at its highest, median of several processes."
    return Table(f"Peak memory of {report['family']}", columns, cells, (note,))


def _median_bytes_text(sizes: Sequence[float] | None) -> str:
    return decimal(round(statistics.median(sizes))) if sizes else NOTHING
