"""What a run leaves behind: a JSON, and a table of all runs of a folder."""

import importlib.metadata
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from transformers import PreTrainedConfig

from benchmarks.features.tagging_data import TASKS
from benchmarks.glue.results import (
    RESULTS_FILE,
    describe_platform,
    git_state,
    package_versions,
    read_json,
    write_json,
    write_text,
)
from benchmarks.report.markdown import render_table
from benchmarks.report.runs import Estimate
from benchmarks.report.tables import Column, Table, percent_text
from hf_lineage.commands import without_secrets

BENCHMARK = "benchmarks.features"
WEIGHTS = ("random", "pretrained")
_OF_WEIGHTS = {"weights", "weights_digest"}
Run = dict[str, Any]


class RunFolder:
    """The results of a task in an output folder.

    Args:
        output_dir: The folder.
        settings: What the run depends on beside the seed, in types that JSON has; `task` and `weights` among them.
    """

    def __init__(self, output_dir: str | Path, settings: dict[str, Any]):
        self.folder = Path(output_dir, settings["task"])
        self.settings = settings

    def is_finished(self, seed: int) -> bool:
        """Tell whether the run is there already.

        Raises:
            ValueError: If there are runs of the task with other settings, which it could not be compared with.
        """
        for path in sorted(self.folder.rglob(RESULTS_FILE)):
            found = read_json(path)["settings"]
            differing = {name for name in found | self.settings if found.get(name) != self.settings.get(name)}
            if found["weights"] != self.settings["weights"]:
                differing -= _OF_WEIGHTS
            if differing:
                raise ValueError(
                    f"{path} has other settings ({', '.join(sorted(differing))}): give another --output_dir"
                )
        return self._path(seed).is_file()

    def write(self, seed: int, accelerator: Accelerator, config: PreTrainedConfig, measured: dict[str, Any]) -> None:
        """Write what a run measured and everything that is needed to repeat it."""
        content = {
            "benchmark": BENCHMARK,
            "settings": self.settings,
            "seed": seed,
            **measured,
            "command": without_secrets(sys.orig_argv),
            "versions": {**package_versions(), "seqeval": importlib.metadata.version("seqeval")},
            "git": git_state(),
            "platform": describe_platform(accelerator),
            "model_config": json.loads(config.to_json_string(use_diff=False)),
        }
        write_json(self._path(seed), content)

    def _path(self, seed: int) -> Path:
        return self.folder / self.settings["weights"] / f"seed_{seed}" / RESULTS_FILE


def write_table(output_dir: str | Path) -> str:
    """Write `results.md`, a table for each task that the folder has runs of, and return it."""
    contents = (read_json(path) for path in sorted(Path(output_dir).rglob(RESULTS_FILE)))
    by_task: dict[str, list[Run]] = defaultdict(list)
    for content in contents:
        if isinstance(content, dict) and content.get("benchmark") == BENCHMARK:
            by_task[content["settings"]["task"]].append(content)
    tables = [_wic_table(runs) if task == "wic" else _tagging_table(task, runs) for task, runs in by_task.items()]
    text = "\n\n".join(render_table(table) for table in tables) + "\n"
    write_text(Path(output_dir, "results.md"), text)
    return text


def _tagging_table(task: str, runs: Sequence[Run]) -> Table:
    metric = TASKS[task].metric
    rows = []
    for name, measured in runs[0]["baselines"].items():
        scores = [percent_text(Estimate.of([measured[split][metric]])) for split in ("validation", "test")]
        rows.append((name.replace("_", " "), *scores, "", "", ""))
    for label, group in _groups(runs):
        scores = [_mean(run["best"][split][metric] for run in group) for split in ("validation", "test")]
        mixes = [run["best"]["scalar_mix"] for run in group]
        weights = (_number(mix["weights"][layer] for mix in mixes) for layer in range(len(mixes[0]["weights"])))
        rows.append(
            (
                label,
                *scores,
                " / ".join(weights),
                _number(mix["gamma"] for mix in mixes),
                str(len(group)),
            )
        )
    numeric = ("validation", "test", "mix weights, context-free first", "gamma", "seeds")
    return Table(
        title=f"{task}: {metric}" + (" of entities" if metric == "f1" else "") + ", x 100",
        columns=(Column("features"), *(Column(heading, True) for heading in numeric)),
        rows=tuple(rows),
        notes=(
            "Mean over seeds ± their standard deviation. A seed draws the head, its dropout and the order of "
            "sentences, and random weights also the biLM. Test at the epoch that is best on validation. Layers are "
            "mixed with each dimension standardized over the training words.",
        ),
    )


def _wic_table(runs: Sequence[Run]) -> Table:
    rows = []
    for label, group in _groups(runs):
        for name, classifiers in group[0]["accuracy"].items():
            for classifier in classifiers:
                scores = (
                    _mean(run["accuracy"][name][classifier][split] for run in group)
                    for split in ("held_out_words", "validation")
                )
                rows.append((label, name, classifier.replace("_", " "), *scores, str(len(group))))
    rows.sort(key=lambda row: row[2])
    num_pairs = runs[0]["examples"]["validation"]
    standard_error = 100 * (0.25 / num_pairs) ** 0.5
    numeric = ("held-out words of train", "validation", "seeds")
    headings = ("biLM", "vectors", "classifier")
    return Table(
        title="WiC: accuracy, x 100",
        columns=(*map(Column, headings), *(Column(heading, True) for heading in numeric)),
        rows=tuple(rows),
        notes=(
            "Mean over seeds ± their standard deviation. A seed chooses the words of the training file that are held "
            "out, and random weights also the biLM. Both answers are equally frequent in the training file.",
            f"The accuracy on {num_pairs} pairs has a standard error of {standard_error:.1f} besides, which seeds do "
            "not show.",
        ),
    )


def _groups(runs: Iterable[Run]) -> list[tuple[str, list[Run]]]:
    """Return the runs that differ in nothing but their seed, with a label, those of random weights first."""
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[json.dumps(run["settings"], sort_keys=True)].append(run)
    ordered = sorted(groups.values(), key=lambda group: WEIGHTS.index(group[0]["settings"]["weights"]))
    return [(f"{group[0]['settings']['weights']} biLM", group) for group in ordered]


def _mean(scores: Iterable[float]) -> str:
    return percent_text(Estimate.of(scores))


def _number(values: Iterable[float]) -> str:
    return f"{statistics.fmean(values):.2f}"
