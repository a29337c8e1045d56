"""Optimizer steps: a model in training, with everything that a checkpoint has to hold."""

import math
from contextlib import nullcontext
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, send_to_device
from transformers import PreTrainedModel

from .arguments import PretrainingArguments
from .batches import Batch, BatchStream
from .checkpoints import random_state, set_random_state
from .objective import Objective
from .optimization import create_optimizer, set_learning_rate


class Training:
    """A model in training: its batches, its optimizer, and what is carried from batch to batch.

    Over all batches of a step, in all processes, each loss is the mean over its terms, so that the gradient does not
    depend on how a step's examples are cut into batches.

    Args:
        accelerator: The run's accelerator.
        objective: The family's losses.
        model: The model, not yet prepared.
        stream: This process's batches.
        settings: Optimizer and sizes.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        objective: Objective,
        model: PreTrainedModel,
        stream: BatchStream,
        settings: PretrainingArguments,
    ) -> None:
        self.accelerator, self.objective, self.stream, self.settings = accelerator, objective, stream, settings
        model = model.to(accelerator.device).train()
        optimizer = create_optimizer(
            settings.optimizer,
            objective.parameter_groups(model),
            settings.learning_rate,
            (settings.adam_beta1, settings.adam_beta2),
            settings.adam_epsilon,
            settings.adagrad_accumulator,
        )
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        self.num_steps = 0
        self.num_tokens = 0  # of this process
        self.grad_norm: torch.Tensor | None = None  # of the last step
        # Of this process since the last report: the sum of each loss over its terms, and their number.
        self._sums: dict[str, torch.Tensor] = {}
        self._terms: dict[str, float] = {}
        self._carried: list[Any] = [None] * stream.num_parts
        self._batches = iter(stream)
        # What processes agree on is on the CPU, so that no step waits for the device.
        self._group = torch.distributed.new_group(backend="gloo") if accelerator.num_processes > 1 else None

    @property
    def unwrapped_model(self) -> PreTrainedModel:
        """The model itself."""
        return self.accelerator.unwrap_model(self.model)

    def step(self, learning_rate_factor: float) -> None:
        """Takes the next batches and updates the weights once.

        Args:
            learning_rate_factor: Share of the peak learning rate.
        """
        batches = [next(self._batches) for _ in range(self.settings.gradient_accumulation_steps)]
        counts = [self.objective.counts(batch.inputs) for batch in batches]
        names = list(counts[0])
        totals = self.sum_over_processes([float(sum(count[name] for count in counts)) for name in names])
        # Gradients are averaged over processes.
        scales = {
            name: self.accelerator.num_processes / max(total, 1) for name, total in zip(names, totals, strict=True)
        }
        for batch, count in zip(batches, counts, strict=True):
            is_last = batch is batches[-1]
            with nullcontext() if is_last else self.accelerator.no_sync(self.model):
                self._run_batch(batch, {name: float(count[name]) for name in names}, scales)
        if self.settings.max_grad_norm:
            self.grad_norm = self.accelerator.clip_grad_norm_(self.model.parameters(), self.settings.max_grad_norm)
        set_learning_rate(self.optimizer, learning_rate_factor)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.num_steps += 1

    def close(self) -> None:
        """Ends the workers and closes the files that batches are read from."""
        self._batches.close()

    def pop_report(self) -> dict[str, float]:
        """Returns the mean of each loss over the steps since the last report, `loss`, their total, and `grad_norm`.

        Raises:
            FloatingPointError: If a loss is NaN or infinite.
        """
        names = list(self._sums)
        sums = self.sum_over_processes([self._sums[name].item() for name in names])
        terms = self.sum_over_processes([self._terms[name] for name in names])
        self._sums, self._terms = {}, {}
        losses = {name: total / max(count, 1) for name, total, count in zip(names, sums, terms, strict=True)}
        if not all(math.isfinite(loss) for loss in losses.values()):
            raise FloatingPointError(
                f"The loss is not finite at step {self.num_steps}: {losses}; try a lower --learning_rate, it is "
                f"{self.settings.learning_rate}"
            )
        report = {"loss": self.objective.total(losses), **losses}
        if self.grad_norm is not None and self.grad_norm.isfinite():  # with fp16 a step may be skipped
            report["grad_norm"] = self.grad_norm.item()
        return report

    def sum_over_processes(self, values: list[float]) -> list[float]:
        """Returns the sums over all processes of numbers that each has."""
        if self._group is None:
            return values
        tensor = torch.tensor(values, dtype=torch.float64)
        torch.distributed.all_reduce(tensor, group=self._group)
        return tensor.tolist()

    def state_dict(self) -> dict[str, Any]:
        """Returns all but the weights; called by all processes, complete in the main one."""
        own = {
            "random": random_state(self.accelerator.device),
            "stream": self.stream.state_dict(),
            "carried": send_to_device(self._carried, "cpu"),
            "num_tokens": self.num_tokens,
            "sums": send_to_device(self._sums, "cpu"),
            "terms": dict(self._terms),
        }
        scaler = self.accelerator.scaler
        return {
            "num_steps": self.num_steps,
            "optimizer": self.optimizer.state_dict(),
            "scaler": None if scaler is None else scaler.state_dict(),
            "processes": gather_object([own]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where `state_dict` was called, the random generators of this process included."""
        self.num_steps = state["num_steps"]
        self.optimizer.load_state_dict(state["optimizer"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        own = state["processes"][self.accelerator.process_index]
        self.stream.load_state_dict(own["stream"])
        self._batches = iter(self.stream)
        self._carried = send_to_device(own["carried"], self.accelerator.device)
        self.num_tokens = own["num_tokens"]
        self._sums, self._terms = send_to_device(own["sums"], self.accelerator.device), own["terms"]
        set_random_state(own["random"], self.accelerator.device)

    def _run_batch(self, batch: Batch, counts: dict[str, float], scales: dict[str, float]) -> None:
        if batch.starts:
            self._carried[batch.part] = None
        self.num_tokens += int(self.objective.num_tokens(batch.inputs))
        inputs = send_to_device(batch.inputs, self.accelerator.device, non_blocking=True)
        losses, self._carried[batch.part] = self.objective.losses(self.model, inputs, self._carried[batch.part])
        shares = {name: losses[name] * (counts[name] * scales[name]) for name in counts}
        self.accelerator.backward(self.objective.total(shares))
        for name, loss in losses.items():
            # Added on the device: to read a number would be to wait for it.
            self._sums[name] = self._sums.get(name, 0.0) + loss.detach().float() * counts[name]
            self._terms[name] = self._terms.get(name, 0.0) + counts[name]


__all__ = ["Training"]
