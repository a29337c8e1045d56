"""What the JSON of a fine-tuning or pretraining run says, for model cards."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult

from ..commands import public_command, without_folders

StrPath = str | os.PathLike

RESULTS_FILE = "results.json"
_FINE_TUNING = "benchmarks.glue"
_PRETRAINING = "hf_lineage.pretraining"
_SCORES = ("accuracy", "f1", "matthews_correlation", "pearson", "spearman")
# Ours -> the Hub's, where they differ
_METRICS = {"pearson": "pearsonr", "spearman": "spearmanr"}
_GLUE = "nyu-mll/glue"


@dataclass(frozen=True)
class TrainedBy:
    """A run that made a model.

    Args:
        facts: What it was, each fact in words.
        command: The command line, without what is of a machine.
        results: What it scored.
        datasets: Hub names of its datasets.
        remarks: What its scores are to be read with.
        model_type: Of the model that it trained.
    """

    facts: dict[str, str]
    command: str
    results: list[EvalResult]
    datasets: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    model_type: str | None = None


def results_beside(folder: Path) -> list[Path]:
    """Returns the results in a model's folder, or in the folder of the run whose `model/` it is."""
    places = [folder, folder.parent] if folder.name == "model" else [folder]
    return [place / RESULTS_FILE for place in places if (place / RESULTS_FILE).is_file()][:1]


def read_run(path: StrPath, pretraining_task: str = "text-generation") -> TrainedBy:
    """Reads the JSON that `benchmarks.glue` or `hf_lineage.pretraining` ended a run with.

    Args:
        path: The file.
        pretraining_task: The Hub's name for the task that pretraining is measured by.

    Raises:
        ValueError: If it is another file, or damaged.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read the results in {path}: {error}") from error
    if not isinstance(content, dict) or not ("family" in content or content.get("benchmark") == _FINE_TUNING):
        raise ValueError(f"{path} holds no results of {_FINE_TUNING} or {_PRETRAINING}")
    try:
        if "family" in content:
            return _pretraining(content, pretraining_task)
        return _fine_tuning(content)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__} {error}") from error


def _fine_tuning(content: Mapping[str, Any]) -> TrainedBy:
    arguments, data = content["arguments"], content["data"]
    kept = "best" if arguments["save_model"] == "best" else "last"
    record = content[kept]
    dataset = _task_title(content)
    facts = {
        "task": dataset,
        "started from": without_folders(str(content["model"])),
        "training data": f"{data['train_examples']:,} examples, {data['max_length']} tokens at most",
        "epochs": f"{record['epoch']}, the {kept} of {len(content['epochs'])}",
        "seed": str(content["seed"]),
        **_settings(arguments, content["platform"]["num_processes"]),
        "software": _software(content["versions"]),
    }
    results = [
        EvalResult(
            task_type="text-classification",
            task_name="Text classification",
            dataset_type=_GLUE if content["suite"] == "glue" else content["task"],
            dataset_name=dataset,
            dataset_config=content["task"],
            dataset_split=split,
            metric_type=_METRICS.get(name, name),
            metric_name=name.replace("_", " "),
            metric_value=value,
        )
        for split, metrics in record["validation"].items()
        for name, value in metrics.items()
        if name in _SCORES and _is_number(value)
    ]
    return TrainedBy(
        facts,
        public_command(content["command"]),
        results,
        [_GLUE] if content["suite"] == "glue" else [],
        _fine_tuning_remarks(content, kept),
        content["model_config"].get("model_type"),
    )


def _task_title(content: Mapping[str, Any]) -> str:
    suites = {"glue": "GLUE", "zh": "Chinese task", "minisuite": "generated task", "files": "own files,"}
    return f"{suites.get(content['suite'], content['suite'])} {content['task']}"


def _fine_tuning_remarks(content: Mapping[str, Any], kept: str) -> list[str]:
    data = content["data"]
    remarks = [
        f"{split} is a part of {source['rows']:,} rows of the whole split"
        for split, source in data["splits"].items()
        if source.get("is_subset")
    ]
    if data["train_was_cut"]:
        remarks.append(f"the training data was cut to {data['train_examples']:,} examples")
    if content["dev_selected"]:
        remarks.append("the settings were chosen on the validation data")
    if kept == "best":
        remarks.append("the epoch was chosen on the validation data")
    majority = content["majority_baseline"]["score"]
    return [*remarks, f"always predicting the most frequent label scores {majority:.4g}", "one run, one seed"]


def _pretraining(content: Mapping[str, Any], task: str) -> TrainedBy:
    arguments = content["arguments"]
    files = ", ".join(without_folders(str(file)) for file in arguments["train_files"])
    facts = {
        "training data": f"{files}: {content['tokens']:,} tokens were read in {content['steps']:,} steps",
        "seed": str(content["seed"]),
        **_settings(arguments, content["machine"]["num_processes"]),
        "longest input": f"{arguments['max_length']} tokens",
        "speed": f"{content['tokens_per_second']:,.0f} tokens a second, {content['train_seconds']:,.0f} s of training",
        "software": _software(content["versions"]),
    }
    if arguments.get("model_name_or_path"):
        facts = {"started from": without_folders(str(arguments["model_name_or_path"])), **facts}
    validation = content["validation"]
    last = validation["last"]["validation"] if validation else {}
    results = [
        EvalResult(
            task_type=task,
            task_name="Language modelling",
            dataset_type="text",
            dataset_name=f"held-out text ({without_folders(str(name))})",
            metric_type="perplexity" if metric.endswith("perplexity") else metric.rpartition("_")[2],
            metric_name=metric.replace("_", " "),
            metric_value=value,
        )
        for name, metrics in last.items()
        for metric, value in metrics.items()
        if metric.endswith(("_accuracy", "_loss", "perplexity")) and _is_number(value)
    ]
    return TrainedBy(
        facts,
        public_command(content["command"]),
        results,
        remarks=["one run, one seed"] if results else ["nothing was held out, so nothing was measured"],
        model_type=content["model_config"].get("model_type"),
    )


def _settings(arguments: Mapping[str, Any], num_processes: int) -> dict[str, str]:
    batch = arguments["per_device_train_batch_size"] * arguments["gradient_accumulation_steps"] * num_processes
    rate = f"{arguments['learning_rate']:g}"
    return {
        "learning rate": rate if "optimizer" not in arguments else f"{rate} ({arguments['optimizer']})",
        "batch": f"{batch} examples a step",
    }


def _software(versions: Mapping[str, str]) -> str:
    names = ("hf_lineage", "transformers", "torch", "python")
    return ", ".join(f"{name} {versions[name]}" for name in names if name in versions)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


__all__ = ["RESULTS_FILE", "TrainedBy", "read_run", "results_beside"]
