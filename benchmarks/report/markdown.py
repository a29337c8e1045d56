"""The report as Markdown that also reads well as plain text."""

import re
from collections.abc import Sequence

from benchmarks.report import cost_tables, measurement_tables, tables
from benchmarks.report.collect import Collected
from benchmarks.report.runs import Row, group_runs, split_suites
from benchmarks.report.tables import Table


def render_markdown(collected: Collected, with_details: bool = True) -> str:
    """Render a report.

    Args:
        collected: From `collect`.
        with_details: Whether costs, machines, versions and commands follow the scores.

    Raises:
        ValueError: If two runs are one and the same.
    """
    suites = split_suites(group_runs(collected.runs))
    parts = []
    for rows in suites:
        if len(suites) > 1:
            parts.append(f"## {_escape(tables.suite_title(rows[0].first.suite))}")
        parts += _suite_parts(rows, with_details)
    found = [
        *map(measurement_tables.speed_table, collected.speed),
        *map(measurement_tables.memory_table, collected.memory),
    ]
    parts += [render_table(table) for table in found]
    return "\n\n".join(parts) + "\n"


def _suite_parts(rows: list[Row], with_details: bool) -> list[str]:
    found = [tables.results_table(rows), tables.averages_table(rows)]
    if with_details:
        found = [tables.overview_table(rows), tables.published_table(rows), *found]
        found += [cost_tables.costs_table(rows), cost_tables.provenance_table(rows)]
    parts = [render_table(table) for table in found if table is not None]
    return [*parts, *_command_parts(rows)] if with_details else parts


def render_table(table: Table) -> str:
    """Render a table with its title and its notes."""
    lines = [f"### {_escape(table.title)}", "", *_align(table)]
    if table.notes:
        lines += ["", *map(_escape, table.notes)]
    return "\n".join(lines)


def _align(table: Table) -> list[str]:
    cells = [[_escape(cell) for cell in row] for row in ([column.heading for column in table.columns], *table.rows)]
    numeric = [column.is_numeric for column in table.columns]
    widths = [max(len(row[column]) for row in cells) for column in range(len(numeric))]
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append(f"| {' | '.join(padded)} |")
    rule = "|".join("-" * (width + 1) + (":" if right else "-") for width, right in zip(widths, numeric, strict=True))
    return [lines[0], f"|{rule}|", *lines[1:]]


def _escape(text: str) -> str:
    """Keep names from ending a cell, a line or the text: Markdown lets HTML through."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return re.sub(r"\s+", " ", escaped)


def _command_parts(rows: Sequence[Row]) -> list[str]:
    found = cost_tables.commands(rows)
    if not found:
        return []
    parts = ["### Commands"]
    for command, ran in found:
        # A fence must be longer than any run of its own sign in what it holds.
        fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", command)), default=0))
        parts.append(f"{_escape('; '.join(ran))}:\n\n{fence}bash\n{command}\n{fence}")
    return parts
