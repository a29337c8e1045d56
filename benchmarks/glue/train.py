"""Fine-tuning of one model on one task, as an explicit loop over accelerate."""

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.utils import set_seed
from datasets import Dataset
from torch import nn
from tqdm import tqdm
from transformers import PreTrainedConfig, PreTrainedModel, get_scheduler

from benchmarks.glue.arguments import Arguments, FineTuningArguments
from benchmarks.glue.data import TaskData, TextCollator, evaluation_loader, limit_train, train_loader
from benchmarks.glue.evaluation import evaluate_splits, hides_progress
from benchmarks.glue.models import (
    count_parameters,
    effective_max_length,
    load_model_and_tokenizer,
    save_model_and_tokenizer,
)
from benchmarks.glue.tasks import Task

_FUSED_ADAMW_DEVICES = ("cpu", "cuda", "mps", "xpu")


@dataclass(frozen=True)
class FineTuned:
    """What one run gave.

    Args:
        epochs: One record an epoch: its number, what `evaluate_splits` returned, the training loss and time. A single
            record of epoch 0 if the model was only evaluated.
        config: The model's configuration.
        parameters: Number of parameters, total and trainable.
        max_length: Longest input in tokens, after the model's own bound.
        train_examples: Number of examples in an epoch, 0 if the model was only evaluated.
    """

    epochs: list[dict[str, Any]]
    config: PreTrainedConfig
    parameters: dict[str, int]
    max_length: int
    train_examples: int

    @property
    def best(self) -> dict[str, Any]:
        """The record of the highest score, the first of equals."""
        return max(self.epochs, key=lambda record: record["score"])

    @property
    def train_examples_per_second(self) -> float | None:
        """Examples trained on in a second, over all epochs and processes; `None` without training."""
        seconds = sum(record.get("train_seconds", 0.0) for record in self.epochs)
        return len(self.epochs) * self.train_examples / seconds if seconds else None


def create_accelerator(arguments: FineTuningArguments) -> Accelerator:
    """Return the accelerator of a run: on the GPU (or its like) if there is one, on the CPU otherwise.

    Several processes on CPUs are started by `torchrun --nproc_per_node N`: `accelerate launch --cpu` starts only one.
    """
    return Accelerator(
        # Without `cpu=True`, processes that torchrun starts on a machine without a GPU would not know of each other.
        cpu=not torch.accelerator.is_available(),
        mixed_precision=arguments.mixed_precision,
        gradient_accumulation_steps=arguments.gradient_accumulation_steps,
        # Some models have weights that a classifier never uses, such as the mask embedding of XLNet.
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )


def fine_tune(accelerator: Accelerator, data: TaskData, arguments: Arguments, seed: int) -> FineTuned:
    """Train a model on a task with one seed and evaluate it after every epoch, or only evaluate it (0 epochs).

    Args:
        accelerator: From `create_accelerator`.
        data: The task's examples.
        arguments: Which model, how it is trained, what is kept and where.
        seed: Seed of the new weights, the order of the examples and dropout.

    Raises:
        ValueError: If the model cannot be loaded, or has no trained head where it is only evaluated.
        FloatingPointError: If the training loss or a prediction is not finite.
    """
    task, settings = data.task, arguments.fine_tuning
    set_seed(seed)
    with accelerator.local_main_process_first():
        model, tokenizer = load_model_and_tokenizer(
            arguments.model.model_name_or_path, task, trained_head=settings.num_train_epochs == 0
        )
    config, parameters = model.config, count_parameters(model)
    collator = TextCollator(tokenizer, task, effective_max_length(arguments.data.max_length, tokenizer, config))
    loaders = {
        name: accelerator.prepare(evaluation_loader(split, collator, settings))
        for name, split in data.validation.items()
    }
    if settings.num_train_epochs == 0:
        model = accelerator.prepare_model(model, evaluation_mode=True)
        epochs = [{"epoch": 0, **evaluate_splits(accelerator, model, loaders, task)}]
        _report(accelerator, task, seed, epochs[0], num_epochs=0)
        accelerator.free_memory()
        return FineTuned(epochs, config, parameters, collator.max_length, train_examples=0)

    train = limit_train(data.train, arguments.data.max_train_samples)
    training = _Training(accelerator, model, train, collator, settings, seed)
    epochs = []
    for epoch in range(1, settings.num_train_epochs + 1):
        trained = training.run_epoch(epoch)
        best_score = max((record["score"] for record in epochs), default=-math.inf)
        epochs.append({"epoch": epoch, **trained, **evaluate_splits(accelerator, training.model, loaders, task)})
        _report(accelerator, task, seed, epochs[-1], settings.num_train_epochs)
        is_best, is_last = epochs[-1]["score"] > best_score, epoch == settings.num_train_epochs
        if (settings.save_model == "best" and is_best) or (settings.save_model == "last" and is_last):
            save_model_and_tokenizer(
                accelerator, training.model, tokenizer, settings.run_dir(task.name, seed) / "model"
            )
    training.progress.close()
    accelerator.free_memory()
    return FineTuned(epochs, config, parameters, collator.max_length, len(train))


class _Training:
    """A model in training: its batches, optimizer and learning rate.

    Args:
        accelerator: The run's accelerator.
        model: The model, not yet prepared.
        train: The examples.
        collator: Makes the batches.
        settings: Batch sizes, optimizer and scheduler.
        seed: Seed of the order and of dropout.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        model: PreTrainedModel,
        train: Dataset,
        collator: TextCollator,
        settings: FineTuningArguments,
        seed: int,
    ) -> None:
        self.accelerator, self.settings = accelerator, settings
        self.loader = accelerator.prepare(train_loader(train, collator, settings, accelerator.num_processes, seed))
        self.step_sizes = self._count_step_sizes(len(train))
        num_steps = settings.num_train_epochs * len(self.step_sizes)
        optimizer = _create_optimizer(model.to(accelerator.device), settings)
        # The scheduler is not prepared: accelerate would step it once for each process.
        self.scheduler = get_scheduler(
            settings.lr_scheduler_type, optimizer, math.ceil(settings.warmup_ratio * num_steps), num_steps
        )
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        # From here on processes draw different dropout masks.
        set_seed(seed, device_specific=True)
        description = f"{collator.task.name} seed {seed}"
        self.progress = tqdm(total=num_steps, desc=description, unit="step", disable=hides_progress(accelerator))

    def _count_step_sizes(self, num_examples: int) -> list[int]:
        """Return how many examples each optimizer step of an epoch has in one process."""
        batch_size = self.settings.per_device_train_batch_size
        if self.accelerator.num_processes > 1:
            # accelerate fills the last batches up with examples from the beginning.
            num_examples = len(self.loader) * batch_size
        step = batch_size * self.settings.gradient_accumulation_steps
        return [min(step, num_examples - start) for start in range(0, num_examples, step)]

    def run_epoch(self, epoch: int) -> dict[str, Any]:
        """Train on every example once.

        Args:
            epoch: Number of the epoch, from 1.

        Returns:
            `train_loss`, the mean over the examples, `train_step_losses`, that of each optimizer step, and
            `train_seconds`.
        """
        start = time.perf_counter()
        self.loader.set_epoch(epoch - 1)
        self.model.train()
        # For each optimizer step the sum of the losses, and the number of examples.
        totals = torch.zeros(len(self.step_sizes), 2, device=self.accelerator.device)
        for index, batch in enumerate(self.loader):
            step = index // self.settings.gradient_accumulation_steps
            totals[step] += self._run_batch(batch, self.step_sizes[step])
        totals = self.accelerator.reduce(totals, reduction="sum")
        loss, count = totals.sum(0).tolist()
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"The training loss is {loss} in epoch {epoch}; try a lower --learning_rate, it is "
                f"{self.settings.learning_rate}."
            )
        return {
            "train_loss": loss / count,
            "train_step_losses": (totals[:, 0] / totals[:, 1]).tolist(),
            "train_seconds": time.perf_counter() - start,
        }

    def _run_batch(self, batch: dict[str, torch.Tensor], step_size: int) -> torch.Tensor:
        """Add a batch to the gradient, step if it ends a step, and return its summed loss and its size."""
        accelerator, settings = self.accelerator, self.settings
        with accelerator.accumulate(self.model):
            loss, batch_size = self.model(**batch).loss, len(batch["labels"])
            # A batch counts in its step by its share of the examples, also where the last batch or step is not full;
            # accelerate only divides by the number of batches of a full step, which is undone here.
            accelerator.backward(loss * (settings.gradient_accumulation_steps * batch_size / step_size))
            if accelerator.sync_gradients and settings.max_grad_norm:
                accelerator.clip_grad_norm_(self.model.parameters(), settings.max_grad_norm)
            self.optimizer.step()
            if accelerator.sync_gradients:
                self.progress.update()
                if not accelerator.optimizer_step_was_skipped:
                    self.scheduler.step()
            self.optimizer.zero_grad()
        return torch.stack([loss.detach().float() * batch_size, torch.tensor(float(batch_size), device=loss.device)])


def _create_optimizer(model: nn.Module, settings: FineTuningArguments) -> torch.optim.AdamW:
    """Return AdamW without decay on biases, the gains of norms and other vectors."""
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (others if parameter.ndim < 2 or name.endswith("bias") else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    device = next(model.parameters()).device
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=device.type in _FUSED_ADAMW_DEVICES)


def _report(accelerator: Accelerator, task: Task, seed: int, record: dict[str, Any], num_epochs: int) -> None:
    """Print one line about an epoch."""
    if not accelerator.is_main_process:
        return
    parts = [f"train loss {record['train_loss']:.4f}"] if num_epochs else []
    for split, metrics in record["validation"].items():
        parts.append(f"{split} " + ", ".join(f"{name} {metrics[name]:.4f}" for name in (*task.metrics, "loss")))
    seconds = record.get("train_seconds", 0.0) + record["eval_seconds"]
    head = f"epoch {record['epoch']}/{num_epochs}" if num_epochs else "evaluation"
    tqdm.write(f"{task.name} seed {seed} {head}: {'; '.join(parts)}; {seconds:.1f} s")
