"""What a model costs: floating point operations, and the time that a forward pass takes."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from datasets import Dataset
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from benchmarks.glue.data import TextCollator
from benchmarks.glue.models import set_train_mode
from hf_lineage.pretraining.checkpoints import random_state, set_random_state

COUNTED_EXAMPLES = 16
LATENCY_BATCH_SIZES = (1, 32)
LATENCY_REPEATS = 7


@dataclass(frozen=True)
class Costs:
    """What one example costs.

    Args:
        forward_flops: Floating point operations of a forward pass.
        train_flops: Those of a forward and a backward pass; 0 where nothing is trained.
        latency_seconds: Seconds of a forward pass divided by the examples in it, by batch size.
    """

    forward_flops: float
    train_flops: float
    latency_seconds: dict[int, float]


def measure_costs(
    accelerator: Accelerator,
    model: PreTrainedModel,
    collator: TextCollator,
    validation: Dataset,
    train: Dataset | None,
    freeze_encoder: bool = False,
) -> Costs:
    """Count and time a model that is on its device and not yet prepared. Weights and random generators do not change.

    Operations are those of matrix products, convolutions and attention as they are executed, two for a multiplication
    and addition: a shared layer counts each time it runs, characters where they are read. They are the mean over 16
    examples, one from each sixteenth of the split in order of length, each by itself and so without padding.

    Latency is the median of several forward passes on examples of medium length, after one to warm up; tokenization
    is not in it.

    Args:
        accelerator: The run's accelerator, for its precision.
        model: The model.
        collator: Makes the batches.
        validation: Examples whose forward passes are counted and timed.
        train: Examples whose training is counted, `None` if nothing is trained.
        freeze_encoder: As in `load_model_and_tokenizer`.
    """
    with _unchanged(accelerator, model):
        model.eval()
        with torch.no_grad():
            forward = _mean_flops(accelerator, model, collator, validation)
            latency = {size: _latency(accelerator, model, collator, validation, size) for size in LATENCY_BATCH_SIZES}
        trained = 0.0
        if train is not None:
            set_train_mode(model, freeze_encoder)
            trained = _mean_flops(accelerator, model, collator, train)
    return Costs(forward, trained, latency)


@contextmanager
def _unchanged(accelerator: Accelerator, model: PreTrainedModel) -> Iterator[None]:
    state = random_state(accelerator.device)
    try:
        yield
    finally:
        set_random_state(state, accelerator.device)
        model.zero_grad(set_to_none=True)


def _mean_flops(accelerator: Accelerator, model: PreTrainedModel, collator: TextCollator, split: Dataset) -> float:
    order = _by_length(collator, split)
    ranks = [(2 * index + 1) * len(order) // (2 * COUNTED_EXAMPLES) for index in range(COUNTED_EXAMPLES)]
    return statistics.fmean(_flops(accelerator, model, _batch(collator, split, [order[rank]])) for rank in ranks)


def _flops(accelerator: Accelerator, model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> int:
    batch = send_to_device(batch, accelerator.device)
    # Attention as two products: not every fused kernel is known to the counter.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        with accelerator.autocast():
            loss = model(**batch).loss
        if torch.is_grad_enabled():
            loss.backward()
    return counter.get_total_flops()


def _latency(
    accelerator: Accelerator, model: PreTrainedModel, collator: TextCollator, split: Dataset, batch_size: int
) -> float:
    order = _by_length(collator, split)
    first = max(0, (len(order) - batch_size) // 2)
    chosen = [order[(first + index) % len(order)] for index in range(batch_size)]
    batch = send_to_device(_batch(collator, split, chosen), accelerator.device)
    batch.pop("labels")
    seconds = []
    for _ in range(1 + LATENCY_REPEATS):
        _wait_for(accelerator.device)
        start = time.perf_counter()
        with accelerator.autocast():
            model(**batch)
        _wait_for(accelerator.device)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:]) / batch_size


def _wait_for(device: torch.device) -> None:
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)


def _by_length(collator: TextCollator, split: Dataset) -> list[int]:
    """Return the rows of a split from the one of the fewest characters to that of the most."""
    texts = zip(*(split[column][:] for column in collator.task.text_columns), strict=True)
    lengths = [sum(map(len, example)) for example in texts]
    return sorted(range(len(lengths)), key=lengths.__getitem__)


def _batch(collator: TextCollator, split: Dataset, rows: Sequence[int]) -> dict[str, Any]:
    return collator([split[row] for row in rows])
