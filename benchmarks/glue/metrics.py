"""Metrics of GLUE as `evaluate` modules that need no network, and the metrics of a task."""

import tempfile
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import datasets
import evaluate
import numpy as np
from scipy import stats
from sklearn import metrics as sklearn_metrics

from benchmarks.glue.tasks import Task


class _LocalMetric(evaluate.Metric):
    """A metric that keeps what it is given in memory, so that runs and processes never share a file."""

    description: str
    reference_url: str
    label_dtype: str
    note: str | None = None

    def __init__(self) -> None:
        # evaluate makes its cache folder even for a metric in memory; this one is gone at once.
        with tempfile.TemporaryDirectory() as unused:
            super().__init__(keep_in_memory=True, cache_dir=unused)

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=self.description,
            citation="",
            inputs_description=(
                f"Args:\n    predictions: One {self.label_dtype} an example.\n"
                f"    references: One {self.label_dtype} an example.\n"
            ),
            features=datasets.Features(
                {name: datasets.Value(self.label_dtype) for name in ("predictions", "references")}
            ),
            reference_urls=[self.reference_url],
        )

    def _undefined(self, reason: str) -> float:
        self.note = f"{type(self).__name__} is undefined because {reason}; 0.0 is reported."
        warnings.warn(self.note, stacklevel=2)
        return 0.0


class Accuracy(_LocalMetric):
    """Share of the predictions that equal their reference."""

    description = "Share of the predictions that equal their reference."
    reference_url = "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.accuracy_score.html"
    label_dtype = "int64"

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        return {"accuracy": float(sklearn_metrics.accuracy_score(references, predictions))}


class F1(_LocalMetric):
    """F1 of class 1 in a binary task; 0.0 with a warning if neither side has that class."""

    description = "Harmonic mean of precision and recall of class 1."
    reference_url = "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.f1_score.html"
    label_dtype = "int64"

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        if not np.any(np.equal(predictions, 1)) and not np.any(np.equal(references, 1)):
            return {"f1": self._undefined("neither predictions nor references have an example of class 1")}
        return {"f1": float(sklearn_metrics.f1_score(references, predictions, average="binary", pos_label=1))}


class MatthewsCorrelation(_LocalMetric):
    """Matthews correlation of two classifications; 0.0 with a warning if either is constant."""

    description = "Matthews correlation coefficient of predicted and true classes."
    reference_url = "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.matthews_corrcoef.html"
    label_dtype = "int64"

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        reason = _constant_side(predictions, references)
        value = self._undefined(reason) if reason else sklearn_metrics.matthews_corrcoef(references, predictions)
        return {"matthews_correlation": float(value)}


class Pearson(_LocalMetric):
    """Pearson correlation; 0.0 with a warning if either side is constant."""

    description = "Pearson correlation coefficient of predictions and references."
    reference_url = "https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.pearsonr.html"
    label_dtype = "float64"

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        return {"pearson": _correlation(self, stats.pearsonr, predictions, references)}


class Spearman(_LocalMetric):
    """Spearman rank correlation; 0.0 with a warning if either side is constant."""

    description = "Spearman rank correlation coefficient of predictions and references."
    reference_url = "https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.spearmanr.html"
    label_dtype = "float64"

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        return {"spearman": _correlation(self, stats.spearmanr, predictions, references)}


METRICS: dict[str, type[_LocalMetric]] = {
    "accuracy": Accuracy,
    "f1": F1,
    "matthews_correlation": MatthewsCorrelation,
    "pearson": Pearson,
    "spearman": Spearman,
}


def _constant_side(predictions: Any, references: Any) -> str:
    for name, values in (("predictions", predictions), ("references", references)):
        if np.all(np.equal(values, values[0])):
            return f"all {name} are equal"
    return ""


def _correlation(metric: _LocalMetric, function: Callable[..., Any], predictions: Any, references: Any) -> float:
    reason = _constant_side(predictions, references)
    if reason:
        return metric._undefined(reason)
    with warnings.catch_warnings():
        # scipy warns of nearly constant input, where the value is inexact but still defined unless it is NaN.
        warnings.simplefilter("ignore")
        value = float(function(predictions, references).statistic)
    return value if np.isfinite(value) else metric._undefined("the spread of one side is too small for its size")


class TaskMetrics:
    """Every metric of a task, fed batch by batch.

    Args:
        task: The task; its `metrics` name entries of `METRICS`.

    Attributes:
        notes: For each metric that the last `compute` reported as 0.0 because it is undefined, the reason.

    Raises:
        ValueError: If the task names an unknown metric.
    """

    def __init__(self, task: Task) -> None:
        unknown = [name for name in task.metrics if name not in METRICS]
        if unknown or not task.metrics:
            raise ValueError(
                f"The task {task.name!r} has the metrics {task.metrics}; allowed: one or more of {', '.join(METRICS)}."
            )
        self._metrics = [METRICS[name]() for name in task.metrics]
        self.notes: list[str] = []
        self._dtype = np.float64 if task.is_regression else np.int64

    def add_batch(self, predictions: Iterable[Any], references: Iterable[Any]) -> None:
        """Add predictions and their references.

        Args:
            predictions: Class ids, or scores of a regression task; shape `(batch,)`.
            references: Labels, shape `(batch,)`.

        Raises:
            ValueError: If the shapes differ or a value is not finite.
        """
        predictions, references = np.asarray(predictions), np.asarray(references)
        if predictions.ndim != 1 or predictions.shape != references.shape:
            raise ValueError(
                f"Predictions and references must be of one shape (batch,), got {predictions.shape} and "
                f"{references.shape}."
            )
        if not np.isfinite(predictions).all() or not np.isfinite(references).all():
            raise ValueError("Predictions and references must be finite, got NaN or infinity.")
        for metric in self._metrics:
            metric.add_batch(predictions=predictions.astype(self._dtype), references=references.astype(self._dtype))

    def compute(self) -> dict[str, float]:
        """Return each metric by name over all that was added since the last call, in the task's order."""
        values: dict[str, float] = {}
        self.notes = []
        for metric in self._metrics:
            metric.note = None
            values.update(metric.compute())
            if metric.note is not None:
                self.notes.append(metric.note)
        return values


def score(metrics: dict[str, float], task: Task) -> float:
    """Return a task's one number on a split: the mean of its metrics."""
    return float(np.mean([metrics[name] for name in task.metrics]))
