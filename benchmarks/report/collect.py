"""Reading what the benchmarks wrote, checked and in one shape."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.glue.results import RESULTS_FILE, read_json
from benchmarks.report.runs import Epoch, Run

_GLUE, _SPEED, _MEMORY = "benchmarks.glue", "benchmarks.speed", "benchmarks.speed.memory"
# Measurements of speed have no fixed name; this many bytes of a file show whether it is one.
_HEAD_BYTES = 256
_KINDS: dict[type, str] = {
    str: "a string",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    int: "an integer",
}
# What stands beside the metrics of a validation split
_NOT_METRICS = ("loss", "examples", "notes", "confusion_matrix")
_TIMES = ("ratio_median", "ratio_min", "ratio_max", "baseline_seconds_median", "candidate_seconds_median")
_REQUIRED: Any = object()


@dataclass(frozen=True)
class Collected:
    """What was found in the folders of a report.

    Args:
        runs: Of `benchmarks.glue`.
        speed: The JSON of each measurement of `benchmarks.speed`.
        memory: The JSON of each measurement of `benchmarks.speed.memory`.
    """

    runs: tuple[Run, ...] = ()
    speed: tuple[dict[str, Any], ...] = ()
    memory: tuple[dict[str, Any], ...] = ()


def collect(paths: Sequence[str | os.PathLike[str]]) -> Collected:
    """Read everything that belongs into a report, ordered by path.

    Args:
        paths: Folders, searched with the folders in them, or single JSON files. A file that is reached twice counts
            once.

    Raises:
        ValueError: If a path does not exist, nothing is found, or a file is damaged or lacks something.
    """
    files: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise ValueError(f"There is no file or folder {path}.")
        for found in [path] if path.is_file() else sorted(path.rglob("*.json")):
            files.setdefault(found.resolve(), found)
    runs: list[Run] = []
    measured: dict[str, list[dict[str, Any]]] = {_SPEED: [], _MEMORY: []}
    for path in files.values():
        if path.name != RESULTS_FILE and not _may_be_measurement(path):
            continue
        content = read_json(path)
        benchmark = content.get("benchmark") if isinstance(content, dict) else None
        if benchmark == _GLUE:
            runs.append(read_run(content, path))
        elif benchmark in measured:
            _check_measurement(content, path)
            measured[benchmark].append(content)
    if not (runs or any(measured.values())):
        raise ValueError(
            f"No results of {_GLUE} or {_SPEED} in {', '.join(map(str, paths))}: looked for files named "
            f"{RESULTS_FILE} and for the JSON files of {_SPEED}."
        )
    return Collected(tuple(runs), tuple(measured[_SPEED]), tuple(measured[_MEMORY]))


def _may_be_measurement(path: Path) -> bool:
    with path.open("rb") as file:
        return f'"{_SPEED}'.encode() in file.read(_HEAD_BYTES)


def read_run(content: dict[str, Any], path: str | os.PathLike[str]) -> Run:
    """Check a run's JSON and give it its shape.

    Args:
        content: From a results file of `benchmarks.glue`.
        path: Where it was read, for messages.

    Raises:
        ValueError: If something that a report cannot do without is missing, or something is not what it should be.
    """
    fields = _Fields(content, str(path))
    data = fields.object("data")
    platform, parameters = fields.object("platform", default={}), fields.object("parameters", default={})
    best = _read_epoch(fields.object("best"))
    # Test splits, which are only predicted, have no part in the scores.
    splits = [(name, split) for name, split in data.object("splits").items() if name in ("train", *best.metrics)]
    return Run(
        path=str(path),
        suite=fields.get("suite", str),
        task=fields.get("task", str),
        model=fields.get("model", str),
        seed=fields.get("seed", int),
        best=best,
        last=_read_epoch(fields.object("last")),
        epochs=tuple(_read_epoch(record) for record in fields.objects("epochs")),
        baseline=fields.object("majority_baseline", default={}).number("score", default=None),
        evaluated_examples=fields.object("evaluated_examples", default={}).numbers(),
        split_rows={name: split.get("rows", int) for name, split in splits},
        bad_rows={name: split.get("bad_rows", int, default=0) for name, split in splits},
        subsets=tuple(name for name, split in splits if split.get("is_subset", bool, default=False)),
        missing_splits=tuple(data.get("missing_splits", list)),
        train_examples=data.get("train_examples", int),
        train_was_cut=data.get("train_was_cut", bool),
        arguments=fields.object("arguments").content,
        num_processes=platform.get("num_processes", int, default=None),
        mixed_precision=platform.get("mixed_precision", str, default=None),
        machine=_describe_machine(platform),
        parameters=parameters.number("total", default=None),
        trainable_parameters=parameters.number("trainable", default=None),
        parts=parameters.object("by_part", default={}).numbers(),
        forward_flops=fields.object("flops", default={}).number("forward_per_example", default=None),
        training_flops=fields.object("flops", default={}).number("training_total", default=None),
        latency=_read_latency(fields.object("inference_latency_seconds", default={})),
        peak_memory=fields.number("peak_memory_bytes", default=None),
        wall_seconds=fields.number("wall_seconds", default=None),
        train_examples_per_second=fields.number("train_examples_per_second", default=None),
        was_dev_selected=bool(fields.get("dev_selected", bool, default=False)),
        selected=fields.object("selected", default={}).content,
        num_tried=len(fields.get("tried", list, default=None) or []),
        stopped_early=bool(fields.get("stopped_early", bool, default=False)),
        command=tuple(map(str, fields.get("command", list, default=None) or [])),
        versions={name: str(version) for name, version in fields.object("versions", default={}).content.items()},
        commit=fields.object("git", default={}).get("commit", str, default=None),
        has_changes=bool(fields.object("git", default={}).get("has_changes", bool, default=False)),
    )


class _Fields:
    """Checked access to a JSON object.

    Args:
        content: The object.
        where: What messages call it.
    """

    def __init__(self, content: Any, where: str) -> None:
        if not isinstance(content, dict):
            raise ValueError(f"{where} must be an object, got {content!r}.")
        self.content, self.where = content, where

    def get(self, name: str, kind: type, default: Any = _REQUIRED) -> Any:
        """Return a value of a type; with a default, that where the name is missing or its value is null."""
        value = self.content.get(name)
        if value is None:
            if default is _REQUIRED:
                raise ValueError(f"{self.where} lacks {name!r}.")
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"{self.where}: {name} must be {_KINDS[kind]}, got {value!r}.")
        return value

    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return a finite number, like `get`."""
        value = self.get(name, object, default)
        if value is not default and not _is_number(value):
            raise ValueError(f"{self.where}: {name} must be a finite number, got {value!r}.")
        return value

    def numbers(self) -> dict[str, Any]:
        """Return all values, which must be finite numbers."""
        return {name: self.number(name) for name in self.content}

    def object(self, name: str, default: Any = _REQUIRED) -> "_Fields":
        """Return an object, like `get`."""
        return _Fields(self.get(name, dict, default), f"{self.where}: {name}")

    def objects(self, name: str) -> list["_Fields"]:
        """Return a list of objects, empty where the name is missing."""
        return [_Fields(value, f"{self.where}: {name}") for value in self.get(name, list, default=[])]

    def items(self) -> list[tuple[str, "_Fields"]]:
        """Return all values, which must be objects."""
        return [(name, self.object(name)) for name in self.content]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read_epoch(fields: _Fields) -> Epoch:
    splits = fields.object("validation").items()
    notes = [str(note) for _, values in splits for note in values.get("notes", list, default=[])]
    # A metric that is not defined is written as 0, so that every one must be a number.
    return Epoch(
        number=fields.get("epoch", int, default=0),
        score=fields.number("score"),
        metrics={
            split: {name: values.number(name) for name in values.content if name not in _NOT_METRICS}
            for split, values in splits
        },
        confusion={split: _read_matrix(values) for split, values in splits if "confusion_matrix" in values.content},
        notes=tuple(dict.fromkeys(notes)),
    )


def _read_matrix(fields: _Fields) -> tuple[tuple[int, ...], ...]:
    rows = fields.content["confusion_matrix"]
    is_square = isinstance(rows, list) and all(isinstance(row, list) and len(row) == len(rows) for row in rows)
    if not is_square or not all(_is_number(count) and count >= 0 for row in rows for count in row):
        raise ValueError(f"{fields.where}: confusion_matrix must be a square of counts, got {rows!r}.")
    return tuple(map(tuple, rows))


def _read_latency(fields: _Fields) -> dict[int, float]:
    wrong = [name for name in fields.content if not name.isdecimal()]
    if wrong:
        raise ValueError(f"{fields.where}: the names must be batch sizes, got {', '.join(map(repr, wrong))}.")
    return {int(name): seconds for name, seconds in fields.numbers().items()}


def _describe_machine(platform: _Fields) -> str:
    content = platform.content
    device = content.get("device_name") or content.get("machine")
    parts = [content.get("device"), device, content.get("system")]
    if content.get("num_threads"):
        parts.append(f"{content['num_threads']} threads")
    if content.get("num_processes"):
        parts.append(f"{content['num_processes']} process" + ("es" if content["num_processes"] != 1 else ""))
    return ", ".join(str(part) for part in parts if part)


def _check_measurement(content: dict[str, Any], path: Path) -> None:
    fields = _Fields(content, str(path))
    fields.get("family", str)
    if not fields.get("cases", list):
        raise ValueError(f"{path} has no cases.")
    is_memory = content["benchmark"] == _MEMORY
    for case in fields.objects("cases"):
        case.get("name", str)
        if is_memory:
            case.number("ratio_of_medians")
            sides = case.object("bytes")
            if not all(sides.get(side, list) and all(map(_is_number, sides.content[side])) for side in sides.content):
                raise ValueError(f"{sides.where} must be lists of numbers, got {json.dumps(sides.content)}.")
            continue
        for name in ("description", "baseline", "candidate"):
            case.get(name, str)
        case.get("pairs", int)
        for clock in ("wall", "cpu"):
            times = case.object(clock)
            for name in _TIMES:
                if times.number(name) <= 0:
                    raise ValueError(f"{times.where}: {name} must be above 0, got {times.content[name]}.")
