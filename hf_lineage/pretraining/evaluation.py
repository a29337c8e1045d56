"""Evaluation on held-out text."""

from collections import Counter
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, send_to_device
from torch import nn
from tqdm import tqdm

from .batches import BatchStream
from .objective import Objective


def hides_progress(accelerator: Accelerator) -> bool | None:
    """Returns what tqdm calls `disable`: `True` in all processes but one; there `None`, a bar on terminals only."""
    return None if accelerator.is_main_process else True


def evaluate(
    accelerator: Accelerator, model: nn.Module, objective: Objective, streams: dict[str, BatchStream]
) -> dict[str, dict[str, float]]:
    """Evaluates a model on every example of every dataset once, with the same masks each time.

    Args:
        accelerator: The run's accelerator.
        model: The model itself, without what `accelerator.prepare` put around it: processes may have different numbers
            of batches, and must not wait for each other. Left in training mode.
        objective: Computes and names the metrics.
        streams: For each dataset this process's share.

    Returns:
        The metrics of each dataset, the same in every process.
    """
    model.eval()
    metrics = {}
    for name, stream in streams.items():
        stream.rewind()
        sums = _sum_batches(accelerator, model, objective, stream, name)
        total: Counter[str] = Counter()
        # Not an all-reduce of tensors: a process without batches does not know the names.
        for share in gather_object([sums]):
            total.update(share)
        if not total:
            raise ValueError("There is no example in the held-out text: it has too few documents, or only short ones")
        metrics[name] = objective.summarize(dict(total), name)
    model.train()
    return metrics


@torch.inference_mode()
def _sum_batches(
    accelerator: Accelerator, model: nn.Module, objective: Objective, stream: BatchStream, name: str
) -> dict[str, float]:
    sums: Counter[str] = Counter()
    carried: list[Any] = [None] * stream.num_parts
    for batch in tqdm(stream.one_pass(), desc="evaluation", leave=False, disable=hides_progress(accelerator)):
        inputs = send_to_device(batch.inputs, accelerator.device, non_blocking=True)
        values, carried[batch.part] = objective.evaluate(model, inputs, carried[batch.part], name)
        sums.update({key: float(value) for key, value in values.items()})
    return dict(sums)


__all__ = ["evaluate", "hides_progress"]
