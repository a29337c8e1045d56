"""Optimizer steps: a model in training, with everything that a checkpoint has to hold besides weights."""

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed
from datasets import Dataset
from tqdm import tqdm
from transformers import PreTrainedModel, get_scheduler

from benchmarks.glue.arguments import FineTuningArguments
from benchmarks.glue.data import TextCollator, train_loader
from benchmarks.glue.evaluation import hides_progress
from benchmarks.glue.models import set_train_mode
from benchmarks.glue.optimization import create_optimizer
from hf_lineage.pretraining.checkpoints import random_state, set_random_state


class Training:
    """A model in training: its batches, optimizer and learning rate.

    Args:
        accelerator: The run's accelerator.
        model: The model, on its device and not yet prepared.
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
        self.num_steps = 0
        self.loader = accelerator.prepare(train_loader(train, collator, settings, accelerator.num_processes, seed))
        self.step_sizes = self._count_step_sizes(len(train))
        num_steps = settings.num_train_epochs * len(self.step_sizes)
        optimizer = create_optimizer(model, settings)
        # The scheduler is not prepared: accelerate would step it once for each process.
        self.scheduler = get_scheduler(
            settings.lr_scheduler_type, optimizer, math.ceil(settings.warmup_ratio * num_steps), num_steps
        )
        if accelerator.state.deepspeed_plugin is not None:
            # DeepSpeed is not told the batch size by a loader that was prepared apart.
            config = accelerator.state.deepspeed_plugin.deepspeed_config
            config["train_micro_batch_size_per_gpu"] = settings.per_device_train_batch_size
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        # From here on processes draw different dropout masks.
        set_seed(seed, device_specific=True)
        # Of the epoch under way, in this process: for each step the sum of the losses and the number of examples.
        self._totals = torch.zeros(len(self.step_sizes), 2, device=accelerator.device)
        self._seconds = 0.0
        self._saved_random_state: dict[str, Any] | None = None
        description = f"{collator.task.name} seed {seed}"
        self.progress = tqdm(total=num_steps, desc=description, unit="step", disable=hides_progress(accelerator))

    @property
    def is_at_epoch_end(self) -> bool:
        """Whether no step of an epoch under way is done."""
        return self.num_steps % len(self.step_sizes) == 0

    @property
    def learning_rate(self) -> float:
        """The learning rate of the head at the next step."""
        return max(self.scheduler.get_last_lr())

    def _count_step_sizes(self, num_examples: int) -> list[int]:
        """Return how many examples each optimizer step of an epoch has in one process."""
        batch_size = self.settings.per_device_train_batch_size
        if self.accelerator.num_processes > 1:
            # accelerate fills the last batches up with examples from the beginning.
            num_examples = len(self.loader) * batch_size
        step = batch_size * self.settings.gradient_accumulation_steps
        return [min(step, num_examples - start) for start in range(0, num_examples, step)]

    def run_epoch(self, after_step: Callable[[], None]) -> dict[str, Any]:
        """Train on every example once, or on what is left of an epoch after `load_state_dict`.

        Args:
            after_step: Called after every optimizer step.

        Returns:
            `train_loss`, the mean over the examples, `train_step_losses`, that of each optimizer step, and
            `train_seconds`.
        """
        epoch, first_step = divmod(self.num_steps, len(self.step_sizes))
        first_batch = first_step * self.settings.gradient_accumulation_steps
        if first_step == 0:
            self._totals.zero_()
            self._seconds = 0.0
            self._restore_random_state()
        start = time.perf_counter() - self._seconds
        self.loader.set_epoch(epoch)
        loader = self.accelerator.skip_first_batches(self.loader, first_batch) if first_batch else self.loader
        set_train_mode(self.accelerator.unwrap_model(self.model), self.settings.freeze_encoder)
        for index, batch in enumerate(loader, start=first_batch):
            # To start a loader draws a number, which a run that was not interrupted drew at the epoch's begin.
            self._restore_random_state()
            step = index // self.settings.gradient_accumulation_steps
            self._totals[step] += self._run_batch(batch, self.step_sizes[step])
            if self.accelerator.sync_gradients:
                self.num_steps += 1
                self.progress.update()
                self._seconds = time.perf_counter() - start
                after_step()
        losses, counts = self.accelerator.reduce(self._totals, reduction="sum").unbind(1)
        loss = losses.sum().item()
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"The training loss is {loss} in epoch {epoch + 1}; try a lower --learning_rate, it is "
                f"{self.settings.learning_rate}."
            )
        return {
            "train_loss": loss / counts.sum().item(),
            "train_step_losses": (losses / counts).tolist(),
            "train_seconds": time.perf_counter() - start,
        }

    def recent_loss(self, steps: int) -> float:
        """Return the mean loss over the last steps of this epoch, at most so many; called by all processes."""
        end = (self.num_steps - 1) % len(self.step_sizes) + 1
        recent = self.accelerator.reduce(self._totals[max(0, end - steps) : end].sum(0), reduction="sum")
        return (recent[0] / recent[1]).item()

    def state_dict(self) -> dict[str, Any]:
        """Return all but what accelerate saves itself; called by all processes, complete in each."""
        own = {"random": random_state(self.accelerator.device), "totals": self._totals.cpu()}
        return {
            "num_steps": self.num_steps,
            "seconds": self._seconds,
            "scheduler": self.scheduler.state_dict(),
            "processes": gather_object([own]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to where `state_dict` was called; the random generators follow when the next epoch begins or goes on."""
        self.num_steps, self._seconds = state["num_steps"], state["seconds"]
        self.scheduler.load_state_dict(state["scheduler"])
        own = state["processes"][self.accelerator.process_index]
        self._totals = own["totals"].to(self.accelerator.device)
        self._saved_random_state = own["random"]
        self.progress.update(self.num_steps)

    def _restore_random_state(self) -> None:
        if self._saved_random_state is not None:
            set_random_state(self._saved_random_state, self.accelerator.device)
            self._saved_random_state = None

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
            if accelerator.sync_gradients and not accelerator.optimizer_step_was_skipped:
                self.scheduler.step()
            self.optimizer.zero_grad()
        return torch.stack([loss.detach().float() * batch_size, torch.tensor(float(batch_size), device=loss.device)])
