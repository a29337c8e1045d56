"""What each task is: its columns, labels, splits and metrics."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A GLUE-format task.

    Args:
        name: Name of the task, as on the Hub (`"sst2"`).
        text_columns: One column for single sentences, two for sentence pairs.
        labels: Label names in the order of their ids; empty for a regression task.
        metrics: Names of the metrics of `benchmarks.glue.metrics`, in the order in which they are reported. A task's
            score is their mean.
        validation_splits: Names of the labelled splits that are evaluated.
        test_splits: Names of the unlabelled splits.
        train_split: Name of the training split, `None` for a diagnostic set that has none.
        label_range: Lowest and highest label of a regression task, `None` if it has no bounds.
        diagnostics: Names of tasks of the same suite, columns and labels that have no training data of their own: this
            task's model predicts their test splits.
    """

    name: str
    text_columns: tuple[str, ...]
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    validation_splits: tuple[str, ...] = ("validation",)
    test_splits: tuple[str, ...] = ("test",)
    train_split: str | None = "train"
    label_range: tuple[float, float] | None = None
    diagnostics: tuple[str, ...] = ()

    @property
    def is_regression(self) -> bool:
        """Whether the label is a number instead of a class."""
        return not self.labels

    @property
    def is_pair(self) -> bool:
        """Whether an example is a pair of sentences."""
        return len(self.text_columns) == 2


_STSB = ("pearson", "spearman")
_NLI_LABELS = ("entailment", "neutral", "contradiction")

# Columns and label order of nyu-mll/glue on the Hub; metrics of gluebenchmark.com.
GLUE_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("cola", ("sentence",), ("unacceptable", "acceptable"), ("matthews_correlation",)),
        Task("sst2", ("sentence",), ("negative", "positive"), ("accuracy",)),
        Task("mrpc", ("sentence1", "sentence2"), ("not_equivalent", "equivalent"), ("accuracy", "f1")),
        Task("qqp", ("question1", "question2"), ("not_duplicate", "duplicate"), ("accuracy", "f1")),
        Task("stsb", ("sentence1", "sentence2"), (), _STSB, label_range=(0.0, 5.0)),
        Task(
            "mnli",
            ("premise", "hypothesis"),
            _NLI_LABELS,
            ("accuracy",),
            validation_splits=("validation_matched", "validation_mismatched"),
            test_splits=("test_matched", "test_mismatched"),
            diagnostics=("ax",),
        ),
        Task("qnli", ("question", "sentence"), ("entailment", "not_entailment"), ("accuracy",)),
        Task("rte", ("sentence1", "sentence2"), ("entailment", "not_entailment"), ("accuracy",)),
        Task("wnli", ("sentence1", "sentence2"), ("not_entailment", "entailment"), ("accuracy",)),
        Task(
            "ax",
            ("premise", "hypothesis"),
            _NLI_LABELS,
            ("matthews_correlation",),
            validation_splits=(),
            train_split=None,
        ),
    )
}

_TNEWS_LABELS = (
    "news_story",
    "news_culture",
    "news_entertainment",
    "news_sports",
    "news_finance",
    "news_house",
    "news_car",
    "news_edu",
    "news_tech",
    "news_military",
    "news_travel",
    "news_world",
    "news_stock",
    "news_agriculture",
    "news_game",
)

# Metrics of the CLUE and FewCLUE leaderboards and of the STS benchmark.
ZH_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("chnsenticorp", ("sentence",), ("negative", "positive"), ("accuracy",)),
        Task("afqmc", ("sentence1", "sentence2"), ("0", "1"), ("accuracy",)),
        Task("stsb_mt", ("sentence1", "sentence2"), (), _STSB, label_range=(0.0, 5.0)),
        Task("fewclue_eprstmt", ("sentence",), ("Negative", "Positive"), ("accuracy",), test_splits=("test_public",)),
        Task("fewclue_tnews", ("sentence",), _TNEWS_LABELS, ("accuracy",), test_splits=("test_public",)),
        Task("fewclue_ocnli", ("premise", "hypothesis"), _NLI_LABELS, ("accuracy",), test_splits=("test_public",)),
        Task("fewclue_bustm", ("sentence1", "sentence2"), ("0", "1"), ("accuracy",), test_splits=("test_public",)),
    )
}

SUITES = ("glue", "zh", "minisuite")
FILES_SUITE = "files"


def get_suite(suite: str) -> Mapping[str, Task]:
    """Return the tasks of a suite by name.

    Args:
        suite: `"glue"`, `"zh"` for Chinese tasks, or `"minisuite"` for the tasks that this project generates itself.

    Raises:
        ValueError: If there is no such suite.
    """
    if suite in (named := {"glue": GLUE_TASKS, "zh": ZH_TASKS}):
        return named[suite]
    if suite == "minisuite":
        # The small suite builds on this module, so it is imported only when it is asked for.
        return importlib.import_module("benchmarks.minisuite.tasks").MINISUITE_TASKS
    raise ValueError(f"Unknown suite {suite!r}; allowed: {', '.join(SUITES)}.")


def find_task(suite: str, name: str) -> Task | None:
    """Return a task of a suite, `None` for a task whose data is in files of the user's own."""
    return None if suite == FILES_SUITE else get_suite(suite).get(name)


def get_tasks(names: Sequence[str], suite: str = "glue") -> list[Task]:
    """Look tasks up by name.

    Args:
        names: Names of tasks in the order in which they run; `["all"]` stands for every task that can be trained.
        suite: Name of the suite they belong to.

    Returns:
        The tasks, each once.

    Raises:
        ValueError: If the suite is unknown, no name is given, or a name is not one of the suite's.
    """
    tasks = get_suite(suite)
    if list(names) == ["all"]:
        return [task for task in tasks.values() if task.train_split is not None]
    unknown = [name for name in names if name not in tasks]
    if unknown or not names:
        given = f"Unknown task {', '.join(map(repr, unknown))}" if unknown else "No task was named"
        raise ValueError(f"{given}; tasks of the suite {suite!r}: {', '.join(tasks)}, or all for every one.")
    return [tasks[name] for name in dict.fromkeys(names)]
