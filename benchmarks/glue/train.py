"""Fine-tuning of one model on one task with one seed, from the start or from where a killed run was."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.utils import set_seed
from accelerate.utils.memory import should_reduce_batch_size
from datasets import Dataset
from tqdm import tqdm
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.glue.arguments import Arguments, FineTuningArguments
from benchmarks.glue.checkpoints import RunFolder
from benchmarks.glue.costs import Costs, measure_costs
from benchmarks.glue.data import TaskData, TextCollator, evaluation_loader, limit_train
from benchmarks.glue.evaluation import evaluate_splits
from benchmarks.glue.models import (
    checked_max_length,
    count_parameters,
    load_model_and_tokenizer,
    load_tokenizer,
)
from benchmarks.glue.presets import PRESETS
from benchmarks.glue.tasks import Task
from benchmarks.glue.tracking import Tracking
from benchmarks.glue.training import Training
from benchmarks.glue.vocabularies import train_vocabulary
from benchmarks.peak_memory import forget_peak, peak_bytes

TOKENIZER_FOLDER = "tokenizer"


@dataclass(frozen=True)
class FineTuned:
    """What one run gave.

    Args:
        epochs: One record an epoch: its number, the optimizer steps so far, what `evaluate_splits` returned, the
            training loss and time. A single record of epoch 0 if the model was only evaluated.
        config: The model's configuration.
        parameters: Number of parameters, total, trainable and by part.
        max_length: Longest input in tokens.
        train_examples: Number of examples in an epoch, 0 if the model was only evaluated.
        costs: What an example costs.
        peak_memory_bytes: The most that a process held in training and evaluation, since the run began or went on.
        stopped_early: Whether it ended before the last epoch, for want of better scores.
        wall_seconds: All the time it took, over all attempts from checkpoint to checkpoint.
    """

    epochs: list[dict[str, Any]]
    config: PreTrainedConfig
    parameters: dict[str, Any]
    max_length: int
    train_examples: int
    costs: Costs
    peak_memory_bytes: int
    stopped_early: bool
    wall_seconds: float

    @property
    def best(self) -> dict[str, Any]:
        """The record of the highest score, the first of equals."""
        return max(self.epochs, key=lambda record: record["score"])

    @property
    def train_examples_per_second(self) -> float | None:
        """Examples trained on in a second, over all epochs and processes; `None` without training."""
        seconds = sum(record.get("train_seconds", 0.0) for record in self.epochs)
        return len(self.epochs) * self.train_examples / seconds if seconds else None

    @property
    def eval_examples_per_second(self) -> float:
        """Examples evaluated in a second, over all epochs, splits and processes."""
        examples = sum(split["examples"] for record in self.epochs for split in record["validation"].values())
        return examples / sum(record["eval_seconds"] for record in self.epochs)

    @property
    def train_flops(self) -> float:
        """Floating point operations of the whole training, padding and evaluation left out."""
        return self.costs.train_flops * self.train_examples * len(self.epochs) if self.train_examples else 0.0


def create_accelerator(arguments: FineTuningArguments) -> Accelerator:
    """Return the accelerator of a run: on the GPU (or its like) if there is one, on the CPU otherwise.

    Several processes on CPUs are started by `torchrun --nproc_per_node N`: `accelerate launch --cpu` starts only one.
    """
    return Accelerator(
        # Without `cpu=True`, processes that torchrun starts on a machine without a GPU would not know of each other.
        cpu=not torch.accelerator.is_available(),
        mixed_precision=arguments.mixed_precision,
        gradient_accumulation_steps=arguments.gradient_accumulation_steps,
        log_with=arguments.trackers or None,
        project_dir=arguments.output_dir,
        # Some models have weights that a classifier never uses, such as the mask embedding of XLNet.
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )


def fine_tune(accelerator: Accelerator, data: TaskData, arguments: Arguments, seed: int, folder: Path) -> FineTuned:
    """Train a model on a task with one seed and evaluate it after every epoch, or only evaluate it (0 epochs).

    A run that was killed goes on from its last whole checkpoint in `folder`; on one process it ends with the same
    weights and scores, bit for bit, as if it had not been.

    Args:
        accelerator: From `create_accelerator`.
        data: The task's examples.
        arguments: Which model, how it is trained and what is kept.
        seed: Seed of the new weights, the order of the examples and dropout.
        folder: Where checkpoints go, and the model to `model/`.

    Raises:
        ValueError: If the model cannot be loaded, has no trained head where it is only evaluated, or takes no inputs
            as long as they are to be.
        FloatingPointError: If the training loss or a prediction is not finite.
        MemoryError: If the device has too little memory; the message says what to change.
    """
    with _memory_advice(arguments):
        return _Run(accelerator, data, arguments, seed, folder).run()


class _Run:
    def __init__(
        self, accelerator: Accelerator, data: TaskData, arguments: Arguments, seed: int, folder: Path
    ) -> None:
        self.accelerator, self.data, self.arguments, self.seed = accelerator, data, arguments, seed
        self.task, self.settings = data.task, arguments.fine_tuning
        self.folder = RunFolder(accelerator, folder)
        self.start = time.perf_counter()
        self.epochs: list[dict[str, Any]] = []
        is_trained = self.settings.num_train_epochs > 0
        self.train = limit_train(data.train, arguments.data.max_train_samples) if is_trained else None
        # A grid may vary it.
        accelerator.gradient_accumulation_steps = self.settings.gradient_accumulation_steps
        set_seed(seed)
        with accelerator.main_process_first():
            self.model, self.tokenizer = self._load_model()
        self.collator = TextCollator(self.tokenizer, self.task, self._max_length())
        self.loaders = {
            name: accelerator.prepare(evaluation_loader(split, self.collator, self.settings))
            for name, split in data.validation.items()
        }

    def run(self) -> FineTuned:
        """Measure, train if that is asked for, and evaluate."""
        accelerator, model = self.accelerator, self.model.to(self.accelerator.device)
        config, parameters = model.config, count_parameters(model)
        costs = self._measure_costs(model)
        forget_peak(accelerator.device)
        if self.train is None:
            prepared = accelerator.prepare_model(model, evaluation_mode=True)
            self.epochs = [{"epoch": 0, "step": 0, **evaluate_splits(accelerator, prepared, self.loaders, self.task)}]
            _report(accelerator, self.task, self.seed, self.epochs[0], num_epochs=0)
        else:
            self._train(model, self.train)
        peak = torch.tensor(peak_bytes(accelerator.device), device=accelerator.device)
        fine_tuned = FineTuned(
            epochs=self.epochs,
            config=config,
            parameters=parameters,
            max_length=self.collator.max_length,
            train_examples=0 if self.train is None else len(self.train),
            costs=costs,
            peak_memory_bytes=int(accelerator.gather(peak).max()),
            stopped_early=self.train is not None and len(self.epochs) < self.settings.num_train_epochs,
            wall_seconds=time.perf_counter() - self.start,
        )
        accelerator.free_memory()
        return fine_tuned

    def _load_model(self) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        name = self.arguments.model.model_name_or_path
        tokenizer = None
        if self.arguments.model.tokenizer_name_or_path is not None:
            tokenizer = load_tokenizer(self.arguments.model.tokenizer_name_or_path)
        elif self.train is not None and name in PRESETS and (kind := PRESETS[name].vocabulary) is not None:
            folder = self.settings.task_dir(self.task.name) / TOKENIZER_FOLDER
            tokenizer = train_vocabulary(kind, PRESETS[name].vocab_size, self.task, self.train, folder)
        return load_model_and_tokenizer(
            name,
            self.task,
            trained_head=self.train is None,
            tokenizer=tokenizer,
            freeze_encoder=self.settings.freeze_encoder,
        )

    def _max_length(self) -> int:
        name = self.arguments.model.model_name_or_path
        return checked_max_length(self.arguments.data.max_length, self.tokenizer, self.model.config, name)

    def _measure_costs(self, model: PreTrainedModel) -> Costs:
        """Return what the main process measures while the others wait, so that they do not slow it down."""
        validation = next(iter(self.data.validation.values()))
        costs = Costs(0.0, 0.0, {})
        if self.accelerator.is_main_process:
            costs = measure_costs(
                self.accelerator, model, self.collator, validation, self.train, self.settings.freeze_encoder
            )
        self.accelerator.wait_for_everyone()
        return costs

    def _train(self, model: PreTrainedModel, train: Dataset) -> None:
        training = Training(self.accelerator, model, train, self.collator, self.settings, self.seed)
        self._go_on(training)
        run_name = self.folder.path.relative_to(self.settings.output_dir).as_posix()
        tracking = Tracking(self.accelerator, self.settings, run_name, self.arguments, self.seed, training.num_steps)

        def after_step() -> None:
            step = training.num_steps
            if step % self.settings.logging_steps == 0:
                tracking.log_step(training)
            # After the last step of an epoch comes its evaluation, and then a checkpoint anyway.
            if self.settings.save_steps and step % self.settings.save_steps == 0 and not training.is_at_epoch_end:
                self._save(training)

        while not self._is_finished():
            trained = training.run_epoch(after_step)
            evaluated = evaluate_splits(self.accelerator, training.model, self.loaders, self.task)
            record = {"epoch": len(self.epochs) + 1, "step": training.num_steps, **trained, **evaluated}
            self.epochs.append(record)
            _report(self.accelerator, self.task, self.seed, record, self.settings.num_train_epochs)
            tracking.log_epoch(record)
            if self.settings.save_model == "best" and self._best_epoch() == record["epoch"]:
                self.folder.save_model(training.model, self.tokenizer, record["epoch"])
            if not self._is_finished():
                self._save(training)
        if self.settings.save_model == "last":
            self.folder.save_model(training.model, self.tokenizer, len(self.epochs))
        self.folder.keep_model(None if self.settings.save_model == "none" else self._kept_epoch())
        tracking.close()
        training.progress.close()

    def _go_on(self, training: Training) -> None:
        state = self.folder.load()
        if state is not None:
            training.load_state_dict(state["training"])
            self.epochs = state["epochs"]
            self.start -= state["wall_seconds"]
            if self.accelerator.is_main_process:
                tqdm.write(f"{self.task.name} seed {self.seed}: goes on after step {training.num_steps}")

    def _save(self, training: Training) -> None:
        state = {
            "training": training.state_dict(),
            "epochs": self.epochs,
            "wall_seconds": time.perf_counter() - self.start,
        }
        self.folder.save(training.num_steps, state)

    def _best_epoch(self) -> int:
        return max(self.epochs, key=lambda record: record["score"])["epoch"]

    def _kept_epoch(self) -> int:
        return self._best_epoch() if self.settings.save_model == "best" else len(self.epochs)

    def _is_finished(self) -> bool:
        if len(self.epochs) >= self.settings.num_train_epochs:
            return True
        patience = self.settings.early_stopping_patience
        return patience is not None and bool(self.epochs) and len(self.epochs) - self._best_epoch() >= patience


@contextmanager
def _memory_advice(arguments: Arguments) -> Iterator[None]:
    """Raise what a device without enough memory raises as an error that says what to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and not should_reduce_batch_size(error):
            raise
        settings, data = arguments.fine_tuning, arguments.data
        raise MemoryError(
            f"Out of memory: {error} Try a smaller --per_device_train_batch_size than "
            f"{settings.per_device_train_batch_size} with more --gradient_accumulation_steps than "
            f"{settings.gradient_accumulation_steps} (the product is what counts for the result), a smaller "
            f"--per_device_eval_batch_size than {settings.per_device_eval_batch_size}, a shorter --max_length than "
            f"{data.max_length}, --mixed_precision bf16, or --freeze_encoder."
        ) from error


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
