"""Evaluation of a model on the labelled splits of a task."""

import time
from collections.abc import Mapping
from typing import Any

import torch
from accelerate import Accelerator
from sklearn.metrics import confusion_matrix
from torch import nn
from tqdm import tqdm

from benchmarks.glue.metrics import TaskMetrics, score
from benchmarks.glue.tasks import Task


def hides_progress(accelerator: Accelerator) -> bool | None:
    """Return what tqdm calls `disable`: `True` in all processes but one, and there `None`, a bar on terminals only."""
    return None if accelerator.is_main_process else True


@torch.inference_mode()
def predict(accelerator: Accelerator, model: nn.Module, loader: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Run a model over a loader.

    Args:
        accelerator: The run's accelerator.
        model: The prepared model.
        loader: A prepared `DataLoader` of batches with `labels`.

    Returns:
        The float32 logits `(examples, labels)` and the labels `(examples,)` of all processes, on the CPU, in the
        loader's order and each example once.

    Raises:
        FloatingPointError: If a logit is NaN or infinite.
    """
    model.eval()
    gathered = []
    for batch in tqdm(loader, desc="evaluation", leave=False, disable=hides_progress(accelerator)):
        labels = batch.pop("labels")
        # Only the logits: outputs may hold states, such as `mems`, that are not one row an example.
        gathered.append(accelerator.gather_for_metrics((model(**batch).logits.float(), labels)))
    logits, labels = (torch.cat(parts).cpu() for parts in zip(*gathered, strict=True))
    if not logits.isfinite().all():
        raise FloatingPointError("The model predicts NaN or infinity.")
    return logits, labels


def evaluate_splits(
    accelerator: Accelerator, model: nn.Module, loaders: Mapping[str, Any], task: Task
) -> dict[str, Any]:
    """Evaluate a model on every validation split.

    Args:
        accelerator: The run's accelerator.
        model: The prepared model.
        loaders: The prepared `DataLoader` of each split.
        task: The task.

    Returns:
        `validation`: for each split what `evaluate_logits` gives; `score`: the mean over the splits of the mean of the
        metrics; `eval_seconds`.
    """
    start = time.perf_counter()
    validation = {}
    for name, loader in loaders.items():
        logits, labels = predict(accelerator, model, loader)
        expected = len(loader.dataset)
        if len(labels) != expected:
            raise RuntimeError(f"{len(labels)} instead of {expected} examples of {task.name}/{name} were evaluated.")
        validation[name] = evaluate_logits(logits, labels, task)
    mean_score = sum(score(metrics, task) for metrics in validation.values()) / len(validation)
    return {"validation": validation, "score": mean_score, "eval_seconds": time.perf_counter() - start}


def evaluate_logits(logits: torch.Tensor, labels: torch.Tensor, task: Task) -> dict[str, Any]:
    """Return a task's metrics, the mean `loss` and the number of `examples`.

    Of a classification there is the `confusion_matrix` too, a row for each label and a column for each prediction, and
    `notes` where a metric is undefined or all predictions are equal.

    Args:
        logits: Shape `(examples, labels)`, float32.
        labels: Shape `(examples,)`, int64, or float32 for a regression.
        task: The task.
    """
    if task.is_regression:
        # The last dimension only: a bare squeeze would also drop the batch of a single example.
        predictions = logits.squeeze(-1)
        loss = nn.functional.mse_loss(predictions, labels)
    else:
        predictions = logits.argmax(dim=-1)
        loss = nn.functional.cross_entropy(logits, labels)
    metrics = TaskMetrics(task)
    metrics.add_batch(predictions.numpy(), labels.numpy())
    evaluated: dict[str, Any] = {**metrics.compute(), "loss": loss.item(), "examples": len(labels)}
    is_constant = len(labels) > 1 and predictions.unique().numel() == 1
    if notes := [*(["All predictions are equal."] if is_constant else []), *metrics.notes]:
        evaluated["notes"] = notes
    if not task.is_regression:
        matrix = confusion_matrix(labels.numpy(), predictions.numpy(), labels=range(len(task.labels)))
        evaluated["confusion_matrix"] = matrix.tolist()
    return evaluated
