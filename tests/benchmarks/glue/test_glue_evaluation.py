from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader

from benchmarks.glue.arguments import FineTuningArguments
from benchmarks.glue.evaluation import evaluate_splits, predict
from benchmarks.glue.tasks import GLUE_TASKS
from benchmarks.glue.train import create_accelerator


@pytest.fixture
def accelerator():
    return create_accelerator(FineTuningArguments(output_dir="unused"))


class Echo(torch.nn.Module):
    """Returns its input as logits, and states that have no batch dimension in front, as XLNet does."""

    def forward(self, logits: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=logits, mems=[torch.zeros(7, len(logits), 2)])


def loader_of(accelerator, logits: list[list[float]], labels: list[float], batch_size: int):
    rows = [
        {"logits": torch.tensor(row), "labels": torch.tensor(label)} for row, label in zip(logits, labels, strict=True)
    ]
    return accelerator.prepare(DataLoader(rows, batch_size))


def test_predictions_keep_the_order_of_the_loader(accelerator):
    rows = [[float(index), 0.0] for index in range(5)]
    logits, labels = predict(accelerator, Echo(), loader_of(accelerator, rows, [0, 1, 0, 1, 0], batch_size=2))
    assert logits.tolist() == rows
    assert labels.tolist() == [0, 1, 0, 1, 0]


def test_a_last_batch_of_one_regression_example(accelerator):
    rows, labels = [[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0]
    loaders = {"validation": loader_of(accelerator, rows, labels, batch_size=2)}
    metrics = evaluate_splits(accelerator, Echo(), loaders, GLUE_TASKS["stsb"])["validation"]["validation"]
    assert metrics["examples"] == 3
    assert metrics["spearman"] == pytest.approx(1.0)
    assert metrics["loss"] == pytest.approx(1 / 3)


def test_score_is_the_mean_over_splits_and_metrics(accelerator):
    right, wrong = [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]
    loaders = {name: loader_of(accelerator, rows, [1, 0], 2) for name, rows in (("a", right), ("b", wrong))}
    evaluated = evaluate_splits(accelerator, Echo(), loaders, GLUE_TASKS["mrpc"])
    assert evaluated["validation"]["a"] == {
        "accuracy": 1.0,
        "f1": 1.0,
        "loss": pytest.approx(0.3133, abs=1e-4),
        "examples": 2,
        "confusion_matrix": [[1, 0], [0, 1]],
    }
    assert evaluated["validation"]["b"]["accuracy"] == 0.5
    assert evaluated["validation"]["b"]["confusion_matrix"] == [[1, 0], [1, 0]]
    assert evaluated["validation"]["b"]["notes"] == ["All predictions are equal."]
    assert evaluated["validation"]["b"]["f1"] == 0.0
    assert evaluated["score"] == pytest.approx((1.0 + 0.25) / 2)


@pytest.mark.parametrize("task_name", ["cola", "stsb"])
def test_constant_predictions_score_zero_with_a_note(accelerator, task_name: str):
    task = GLUE_TASKS[task_name]
    rows = [[0.0, 1.0] if task.labels else [1.0]] * 4
    labels = [0, 1, 1, 1] if task.labels else [1.0, 2.0, 3.0, 4.0]
    evaluated = evaluate_splits(accelerator, Echo(), {"validation": loader_of(accelerator, rows, labels, 4)}, task)
    assert evaluated["score"] == 0.0
    notes = evaluated["validation"]["validation"]["notes"]
    assert notes[0] == "All predictions are equal."
    assert [note.split()[0] for note in notes[1:]] == (
        ["MatthewsCorrelation"] if task.labels else ["Pearson", "Spearman"]
    )
    assert all(note.endswith("0.0 is reported.") for note in notes[1:])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_predictions_that_are_not_finite_are_an_error(accelerator, value: float):
    with pytest.raises(FloatingPointError, match="NaN or infinity"):
        predict(accelerator, Echo(), loader_of(accelerator, [[0.0, value]], [0], batch_size=1))


def test_constant_predictions_are_noted_and_never_nan(accelerator):
    loaders = {"validation": loader_of(accelerator, [[1.0, 0.0]] * 3, [0, 1, 0], batch_size=2)}
    with pytest.warns(UserWarning, match="all predictions are equal"):
        evaluated = evaluate_splits(accelerator, Echo(), loaders, GLUE_TASKS["cola"])
    metrics = evaluated["validation"]["validation"]
    assert (metrics["matthews_correlation"], evaluated["score"]) == (0.0, 0.0)
    assert metrics["notes"] == [
        "All predictions are equal.",
        "MatthewsCorrelation is undefined because all predictions are equal; 0.0 is reported.",
    ]
