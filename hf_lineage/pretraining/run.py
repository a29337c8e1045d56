"""A pretraining run from its settings to the trained model: start or go on, report, evaluate, save, stop."""

import dataclasses
import datetime
import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, broadcast_object_list, set_seed
from tqdm import tqdm
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from ..commands import hide_secrets
from ..files import atomic_folder
from .arguments import FREE_SETTINGS, PretrainingArguments
from .batches import BatchStream
from .checkpoints import latest_checkpoint, remove_checkpoints, save_checkpoint
from .clock import Clock, Speed, Termination
from .evaluation import evaluate, hides_progress
from .metrics import RESULTS_FILE, Records, describe_machine, versions, write_results
from .objective import Objective, objective_class
from .optimization import learning_rate_factor
from .training import Training

_IDENTITY_FILE, _STATE_FILE = "run.json", "training_state.pt"

logger = logging.getLogger(__name__)


def create_accelerator(settings: PretrainingArguments) -> Accelerator:
    """Returns the accelerator of a run: on the GPU (or its like) if there is one, on the CPU otherwise.

    Raises:
        ValueError: If `accelerate launch` was told to cut the model into pieces, which checkpoints here do not know.
    """
    # Without `cpu=True`, processes that torchrun starts on a machine without a GPU would not know of each other.
    accelerator = Accelerator(cpu=not torch.accelerator.is_available(), mixed_precision=settings.mixed_precision)
    if accelerator.distributed_type in (
        DistributedType.FSDP,
        DistributedType.DEEPSPEED,
        DistributedType.MEGATRON_LM,
        DistributedType.XLA,
    ):
        raise ValueError(
            f"Each process must hold the whole model, as with torchrun, but accelerate is configured for "
            f"{accelerator.distributed_type.value}"
        )
    return accelerator


def pretrain(accelerator: Accelerator, settings: PretrainingArguments, own: Any) -> bool:
    """Trains a model, or goes on with a run that was interrupted.

    Args:
        accelerator: From `create_accelerator`.
        settings: The settings of every family.
        own: Those of this family.

    Returns:
        Whether the run is finished; if not, it was told to stop (SIGTERM) and has saved where it is.

    Raises:
        ValueError: If a setting is wrong, or is not that of the run that is to go on.
        FloatingPointError: If the loss is NaN or infinite.
    """
    return _Run(accelerator, settings, own).run()


class _Run:
    def __init__(self, accelerator: Accelerator, settings: PretrainingArguments, own: Any) -> None:
        self.accelerator, self.settings, self.own = accelerator, settings, own
        if settings.full_determinism:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True)
        self.tokenizer = _load_tokenizer(settings.tokenizer_name_or_path)
        self.objective: Objective = objective_class(settings.family)(settings, own, self.tokenizer)
        self.num_shards = accelerator.num_processes * max(1, settings.dataloader_num_workers)
        train_dataset = self.objective.train_dataset(self.num_shards)
        self.stream = self._stream(train_dataset, settings.per_device_train_batch_size)
        self.validation = {
            name: self._stream(dataset, settings.per_device_eval_batch_size)
            for name, dataset in self.objective.validation_datasets(self.num_shards).items()
        }
        self.identity = self._describe_run()
        self.folder = Path(settings.output_dir)
        self.checkpoints = self.folder / "checkpoints"
        self.clock = Clock()

    def run(self) -> bool:
        checkpoint = self._find_checkpoint()
        self.training, num_parameters = self._prepare(checkpoint)
        step = self.training.num_steps
        self.records = Records(self.folder, step) if self.accelerator.is_main_process else None
        if checkpoint is None:
            logger.info("Training a model with %s parameters", f"{num_parameters:,}")
            self._evaluate()
        elif self._progress() >= 1 and (self.folder / RESULTS_FILE).exists():
            logger.info("The run in %s is finished: %d steps", self.folder, step)
            return True
        else:
            logger.info("Going on from step %d, %s", step, checkpoint)
        try:
            with Termination() as termination:
                is_finished = self._train(termination)
        finally:
            self.training.close()
        if is_finished:
            self._finish(num_parameters)
        return is_finished

    def _stream(self, dataset: Any, batch_size: int) -> BatchStream:
        return BatchStream(
            dataset,
            self.objective.collator(),
            batch_size,
            self.settings.dataloader_num_workers,
            self.accelerator.process_index,
            self.accelerator.num_processes,
            pin_memory=self.accelerator.device.type == "cuda",
        )

    def _describe_run(self) -> dict[str, Any]:
        """Returns what must be the same when a run goes on."""
        vocabulary = json.dumps(sorted(self.objective.vocabulary().items()))
        arguments = {**dataclasses.asdict(self.settings), **dataclasses.asdict(self.own)}
        return {
            "settings": hide_secrets({name: value for name, value in arguments.items() if name not in FREE_SETTINGS}),
            "number of processes": self.accelerator.num_processes,
            "precision": self.accelerator.mixed_precision,
            "sizes of the training files": self.objective.file_sizes(),
            "vocabulary": hashlib.sha256(vocabulary.encode()).hexdigest(),
        }

    def _find_checkpoint(self) -> Path | None:
        """Returns the checkpoint to go on from, the same in every process, after a look at its settings."""
        found: list[Any] = [None]
        if self.accelerator.is_main_process:
            # Every process is to stop if this one does.
            try:
                found = [self._open_output_folder()]
            except ValueError as error:
                found = [error]
        (checkpoint,) = broadcast_object_list(found)
        if isinstance(checkpoint, ValueError):
            raise checkpoint
        return checkpoint

    def _open_output_folder(self) -> Path | None:
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        if self.settings.overwrite_output_dir:
            (self.folder / RESULTS_FILE).unlink(missing_ok=True)
            remove_checkpoints(self.checkpoints)
        checkpoint = latest_checkpoint(self.checkpoints)
        if checkpoint is None and (self.folder / RESULTS_FILE).exists():
            raise ValueError(
                f"{self.folder} holds the results of a run, but no checkpoint of it: give another --output_dir, or "
                "--overwrite_output_dir"
            )
        if checkpoint is not None:
            saved = json.loads((checkpoint / _IDENTITY_FILE).read_text(encoding="utf-8"))
            _require_same_run(saved, self.identity, self.folder)
            changed = {name: version for name, version in versions().items() if saved["versions"].get(name) != version}
            if changed:
                logger.warning("Not bit for bit the same, perhaps: the run began with other versions than %s", changed)
        return checkpoint

    def _prepare(self, checkpoint: Path | None) -> tuple[Training, int]:
        set_seed(self.settings.seed)
        with self.accelerator.local_main_process_first():
            model = self.objective.create_model() if checkpoint is None else self.objective.load_model(str(checkpoint))
        num_parameters = model.num_parameters()
        training = Training(self.accelerator, self.objective, model, self.stream, self.settings)
        # From here on processes draw different dropout masks.
        set_seed(self.settings.seed, device_specific=True)
        if checkpoint is not None:
            state = torch.load(checkpoint / _STATE_FILE, map_location="cpu", weights_only=True)
            training.load_state_dict(state["training"])
            self.clock.load_state_dict(state["clock"])
        return training, num_parameters

    def _progress(self) -> float:
        """Returns how much of the training is done, from 0 to 1, the same in every process."""
        if self.settings.max_steps is not None:
            return min(1.0, self.training.num_steps / self.settings.max_steps)
        assert self.settings.max_minutes is not None
        seconds = self.clock.wall_seconds if self.accelerator.is_main_process else 0.0
        return min(1.0, sum(self.training.sum_over_processes([seconds])) / (60 * self.settings.max_minutes))

    def _train(self, termination: Termination) -> bool:
        """Takes steps until the end, or until told to stop; returns whether it came to the end."""
        training, settings = self.training, self.settings
        speed = Speed(self.clock, self._num_tokens())
        progress = self._progress()
        with tqdm(
            total=settings.max_steps,
            initial=training.num_steps,
            desc="pretraining",
            unit="step",
            disable=hides_progress(self.accelerator),
        ) as bar:
            while progress < 1:
                with self.clock.training():
                    training.step(learning_rate_factor(progress, settings.warmup_ratio, settings.lr_scheduler_type))
                bar.update()
                step, progress = training.num_steps, self._progress()
                is_last = progress >= 1
                if is_last or step % settings.logging_steps == 0:
                    self._report(speed)
                if is_last or (settings.eval_steps and step % settings.eval_steps == 0):
                    self._evaluate()
                is_stopped = any(training.sum_over_processes([float(termination.is_requested)]))
                if is_last or is_stopped or step % settings.save_steps == 0:
                    self._save_checkpoint()
                if is_stopped and not is_last:
                    logger.warning("Told to stop: saved at step %d", step)
                    return False
        return True

    def _num_tokens(self) -> float:
        """Returns the number of tokens trained on, in all processes."""
        return self.training.sum_over_processes([float(self.training.num_tokens)])[0]

    def _report(self, speed: Speed) -> None:
        with self.clock.training():  # waits for the device, which is still at work on the steps
            losses = self.training.pop_report()
        tokens = self._num_tokens()
        record = {
            "step": self.training.num_steps,
            "epoch": self.stream.epoch,
            **losses,
            "learning_rate": self.training.optimizer.param_groups[0]["lr"],
            "tokens": round(tokens),
            "tokens_per_second": speed.measure(tokens),
            "wall_seconds": self.clock.wall_seconds,
        }
        if self.records is None:
            return
        self.records.add(record)
        logger.info(
            "step %d: %s, learning rate %.3g, %s tokens/s, ETA %s",
            record["step"],
            _describe_metrics(losses),
            record["learning_rate"],
            f"{record['tokens_per_second']:,.0f}",
            datetime.timedelta(seconds=round(self._seconds_left())),
        )

    def _seconds_left(self) -> float:
        if self.settings.max_minutes is not None:
            return max(0.0, 60 * self.settings.max_minutes - self.clock.wall_seconds)
        assert self.settings.max_steps is not None
        step = self.training.num_steps
        return self.clock.wall_seconds / step * (self.settings.max_steps - step)

    def _evaluate(self) -> None:
        if not self.validation:
            return
        metrics = evaluate(self.accelerator, self.training.unwrapped_model, self.objective, self.validation)
        if self.records is None:
            return
        step = self.training.num_steps
        self.records.add({"step": step, "validation": metrics})
        for name, values in metrics.items():
            logger.info("step %d, held out (%s): %s", step, name, _describe_metrics(values))

    def _save_checkpoint(self) -> None:
        state = {"training": self.training.state_dict(), "clock": self.clock.state_dict()}
        if self.accelerator.is_main_process:
            step, limit = self.training.num_steps, self.settings.save_total_limit
            save_checkpoint(self.checkpoints, step, lambda folder: self._write_checkpoint(folder, state), limit)
        self.accelerator.wait_for_everyone()

    def _write_checkpoint(self, folder: Path, state: dict[str, Any]) -> None:
        self._write_model(folder)
        torch.save(state, folder / _STATE_FILE)
        identity = json.dumps({**self.identity, "versions": versions()}, indent=2)
        (folder / _IDENTITY_FILE).write_text(f"{identity}\n", encoding="utf-8")

    def _write_model(self, folder: Path) -> None:
        self.training.unwrapped_model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _finish(self, num_parameters: int) -> None:
        tokens = self._num_tokens()
        if self.records is None:
            return
        with atomic_folder(self.folder / "model", overwrite=True) as folder:
            self._write_model(folder)
        evaluations = self.records.with_key("validation")
        results = {
            "family": self.settings.family,
            "seed": self.settings.seed,
            "parameters": num_parameters,
            "steps": self.training.num_steps,
            "tokens": round(tokens),
            "tokens_per_second": tokens / self.clock.train_seconds,
            "train_seconds": self.clock.train_seconds,
            "wall_seconds": self.clock.wall_seconds,
            "validation": {"first": evaluations[0], "last": evaluations[-1]} if evaluations else None,
            "records": self.records.records,
            "arguments": {**dataclasses.asdict(self.settings), **dataclasses.asdict(self.own)},
            "model_config": json.loads(self.training.unwrapped_model.config.to_json_string(use_diff=False)),
            "versions": versions(),
            "machine": describe_machine(self.accelerator),
        }
        write_results(self.folder, results)
        logger.info(
            "Finished: %d steps, %s tokens, %s tokens/s; the model is in %s",
            results["steps"],
            f"{results['tokens']:,}",
            f"{results['tokens_per_second']:,.0f}",
            self.folder / "model",
        )


def _load_tokenizer(path: str) -> PreTrainedTokenizerBase:
    try:
        return AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"--tokenizer_name_or_path: cannot load a tokenizer from {path}: {error}") from error


def _describe_metrics(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:{'.0f' if name.endswith('count') else '.4f'}}" for name, value in values.items())


def _require_same_run(saved: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """Raises a `ValueError` that names the first thing in which a run would not be the one that it goes on with."""
    then_settings, now_settings = saved["settings"], now["settings"]
    then = {**saved, **{f"--{name}": value for name, value in then_settings.items()}}
    present = {**now, **{f"--{name}": value for name, value in now_settings.items()}}
    for name in sorted({*then, *present} - {"settings", "versions"}):
        if then.get(name) != present.get(name):
            raise ValueError(
                f"The run in {folder} cannot go on, for its {name} was {_short(then.get(name))} and is now "
                f"{_short(present.get(name))}: restore it, give another --output_dir, or start anew with "
                "--overwrite_output_dir"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


__all__ = ["create_accelerator", "pretrain"]
