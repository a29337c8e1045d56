"""What each task is: its columns, labels, splits and metrics."""

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
    """

    name: str
    text_columns: tuple[str, ...]
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    validation_splits: tuple[str, ...] = ("validation",)
    test_splits: tuple[str, ...] = ("test",)
    train_split: str | None = "train"

    @property
    def is_regression(self) -> bool:
        """Whether the label is a number instead of a class."""
        return not self.labels

    @property
    def is_pair(self) -> bool:
        """Whether an example is a pair of sentences."""
        return len(self.text_columns) == 2
