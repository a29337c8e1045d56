"""What models and runs cost, where they ran, and with which commands."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from rich.filesize import decimal

from benchmarks.report.runs import Estimate, Row, Run
from benchmarks.report.tables import NOTHING, Column, Table, count_text


def costs_table(rows: Sequence[Row]) -> Table | None:
    """Return what models and runs cost, `None` if nothing is known."""
    batch_sizes = sorted({size for row in rows for run in row.runs for size in run.latency})
    columns = (
        Column("task"),
        Column("model"),
        Column("parameters", True),
        Column("by part"),
        Column("FLOPs, forward, an example", True),
        Column("FLOPs, training", True),
        *(Column(f"inference, ms an example, batch of {size}", True) for size in batch_sizes),
        Column("training examples/s", True),
        Column("peak memory", True),
        Column("run, s", True),
    )
    cells = tuple(
        (
            row.first.task,
            row.label,
            _parameters_text(row.first),
            ", ".join(f"{name} {count_text(count)}" for name, count in row.first.parts.items()),
            _estimate_text(row.estimate(lambda run: run.forward_flops), count_text),
            _estimate_text(row.estimate(lambda run: run.training_flops), count_text),
            *(
                _estimate_text(Estimate.of(run.latency.get(size) for run in row.runs), _milliseconds_text)
                for size in batch_sizes
            ),
            _estimate_text(row.estimate(lambda run: run.train_examples_per_second), lambda value: f"{value:.0f}"),
            _estimate_text(row.estimate(lambda run: run.peak_memory), lambda value: decimal(round(value))),
            _estimate_text(row.estimate(lambda run: run.wall_seconds), lambda value: f"{value:.0f}"),
        )
        for row in rows
    )
    table = Table("Costs", columns, cells, ("Means over seeds.",)).without_empty_columns()
    return table if len(table.columns) > 2 else None


def _parameters_text(run: Run) -> str:
    if run.parameters is None:
        return NOTHING
    total, trainable = count_text(run.parameters), run.trainable_parameters
    return total if trainable in (None, run.parameters) else f"{total} ({count_text(trainable or 0)} trained)"


def _estimate_text(estimate: Estimate | None, write: Callable[[float], str]) -> str:
    return NOTHING if estimate is None else write(estimate.mean)


def _milliseconds_text(seconds: float) -> str:
    return f"{1000 * seconds:.3g}"


def provenance_table(rows: Sequence[Row]) -> Table | None:
    """Return on what and with which versions the runs were made, `None` if none of it is known."""
    columns = (Column("runs", True), Column("machine"), Column("versions"), Column("commit"))
    kinds = Counter(_provenance(run) for row in rows for run in row.runs)
    cells = tuple((str(count), *kind) for kind, count in kinds.items())
    table = Table("Where it ran", columns, cells).without_empty_columns()
    return table if len(table.columns) > 1 else None


def _provenance(run: Run) -> tuple[str, str, str]:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    commit = NOTHING if run.commit is None else run.commit[:12] + (" with changes" if run.has_changes else "")
    return run.machine or NOTHING, versions, commit


def commands(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return each command line, the interpreter without its folder, with what it ran."""
    ran: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in rows:
        for run in row.runs:
            if run.command:
                words = [PurePath(run.command[0]).name, *run.command[1:]]
                ran[shlex.join(words)][row.label][run.task].append(str(run.seed))
    return [
        (command, [f"{label}: {_tasks_text(tasks)}" for label, tasks in by_label.items()])
        for command, by_label in ran.items()
    ]


def _tasks_text(tasks: Mapping[str, Sequence[str]]) -> str:
    by_seeds: dict[str, list[str]] = defaultdict(list)
    for task, seeds in tasks.items():
        by_seeds[", ".join(seeds)].append(task)
    return "; ".join(
        f"{', '.join(names)} (seed{'s' if ',' in seeds else ''} {seeds})" for seeds, names in by_seeds.items()
    )
