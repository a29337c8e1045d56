"""Losses and scores for accelerate's trackers, while a run goes on."""

from pathlib import Path
from typing import Any

from accelerate import Accelerator

from benchmarks.glue.arguments import Arguments, FineTuningArguments
from benchmarks.glue.training import Training

PROJECT_NAME = "benchmarks.glue"


class Tracking:
    """One run in the trackers of `--report_to`; without any, nothing is done.

    TensorBoard's files go to `OUTPUT_DIR/trackers/<task>/<run>/`.

    Args:
        accelerator: The run's accelerator.
        settings: Which trackers.
        run_name: Name of the run.
        arguments: What is recorded as its configuration.
        seed: Its seed.
        first_step: Optimizer steps that are done already: what an earlier attempt reported beyond them is dropped,
            where the tracker can.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        settings: FineTuningArguments,
        run_name: str,
        arguments: Arguments,
        seed: int,
        first_step: int,
    ) -> None:
        self.accelerator, self.settings = accelerator, settings
        if settings.trackers:
            accelerator.project_configuration.logging_dir = str(Path(settings.output_dir, "trackers", run_name))
            given = {**arguments.as_dict(), "seed": seed}
            config = {name: value for name, value in given.items() if value is not None}
            options: dict[str, dict[str, Any]] = {"wandb": {"name": run_name}}
            if first_step:
                options["tensorboard"] = {"purge_step": first_step + 1}
            accelerator.init_trackers(PROJECT_NAME, config=config, init_kwargs=options)

    def log_step(self, training: Training) -> None:
        """Report the loss of the last steps and the learning rate; called by all processes."""
        if self.settings.trackers:
            loss = training.recent_loss(self.settings.logging_steps)
            values = {"train/loss": loss, "train/learning_rate": training.learning_rate}
            self.accelerator.log(values, step=training.num_steps)

    def log_epoch(self, record: dict[str, Any]) -> None:
        """Report what an epoch scored."""
        if not self.settings.trackers:
            return
        values = {"epoch": record["epoch"], "train/epoch_loss": record["train_loss"], "score": record["score"]}
        for split, metrics in record["validation"].items():
            values |= {f"{split}/{name}": value for name, value in metrics.items() if isinstance(value, float)}
        self.accelerator.log(values, step=record["step"])

    def close(self) -> None:
        """End the run in every tracker; the processes go on."""
        for tracker in self.accelerator.trackers:
            tracker.finish()
        self.accelerator.trackers = []
