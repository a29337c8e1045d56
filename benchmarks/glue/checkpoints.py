"""The folder of one run: checkpoints to go on from, and the model that is kept."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import nn
from transformers import PreTrainedTokenizerBase

from benchmarks.glue.models import save_model_and_tokenizer
from hf_lineage.pretraining.checkpoints import latest_checkpoint, remove_checkpoints, save_checkpoint

KEPT_CHECKPOINTS = 2
_STATE_FILE = "run_state.pt"
_MODEL_PREFIX = "model-epoch-"


class RunFolder:
    """Where a run keeps what it needs to go on, and what it leaves behind.

    Checkpoints are written whole or not at all and carry the checksums of their files; one that is damaged is passed
    over for the one before it. Models of the best epochs stand beside them until the run ends, and the best of them
    then becomes `model/`.

    Args:
        accelerator: The run's accelerator.
        path: The folder.
    """

    def __init__(self, accelerator: Accelerator, path: Path) -> None:
        self.accelerator, self.path = accelerator, path
        self.checkpoints = path / "checkpoints"

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a checkpoint with the prepared model and optimizer; called by all processes.

        Args:
            step: Number of optimizer steps that are done.
            state: What else the run needs, of types that `torch.load` reads with `weights_only=True`.
        """

        def fill(folder: Path) -> None:
            broadcast_object_list([str(folder)])
            self._fill(folder, state)

        if self.accelerator.is_main_process:
            save_checkpoint(self.checkpoints, step, fill, KEPT_CHECKPOINTS)
        else:
            received = [""]
            broadcast_object_list(received)
            self._fill(Path(received[0]), state)
        self.accelerator.wait_for_everyone()

    def _fill(self, folder: Path, state: dict[str, Any]) -> None:
        self.accelerator.save_state(str(folder))
        if self.accelerator.is_main_process:
            torch.save(state, folder / _STATE_FILE)
        self.accelerator.wait_for_everyone()

    def load(self) -> dict[str, Any] | None:
        """Load the newest whole checkpoint into the prepared model and optimizer, and return the rest of it.

        Raises:
            ValueError: If there are checkpoints, but none is whole.
        """
        found: list[Any] = [None]
        if self.accelerator.is_main_process:
            # Every process is to stop if this one does.
            try:
                found = [latest_checkpoint(self.checkpoints)]
            except ValueError as error:
                found = [error]
        (checkpoint,) = broadcast_object_list(found)
        if isinstance(checkpoint, ValueError):
            raise checkpoint
        if checkpoint is None:
            return None
        self.accelerator.load_state(str(checkpoint))
        return torch.load(checkpoint / _STATE_FILE, map_location="cpu", weights_only=True)

    def save_model(self, model: nn.Module, tokenizer: PreTrainedTokenizerBase, epoch: int) -> None:
        """Save a prepared model as that of an epoch; those that no kept checkpoint calls the best are removed."""
        save_model_and_tokenizer(self.accelerator, model, tokenizer, self._model_of(epoch))
        if self.accelerator.is_main_process:
            for other in self._models()[: -KEPT_CHECKPOINTS - 1]:
                shutil.rmtree(other)

    def keep_model(self, epoch: int | None) -> None:
        """Give the model of an epoch its final name, `model/`; `None` keeps none."""
        if self.accelerator.is_main_process:
            final = self.path / "model"
            if epoch is not None and self._model_of(epoch).is_dir():
                shutil.rmtree(final, ignore_errors=True)
                os.replace(self._model_of(epoch), final)
        self.accelerator.wait_for_everyone()

    def finish(self) -> None:
        """Remove what only a run that goes on needs; called when its results are written."""
        if self.accelerator.is_main_process:
            remove_checkpoints(self.checkpoints)
            shutil.rmtree(self.checkpoints, ignore_errors=True)
        self.accelerator.wait_for_everyone()

    def _model_of(self, epoch: int) -> Path:
        return self.checkpoints / f"{_MODEL_PREFIX}{epoch:04d}"

    def _models(self) -> list[Path]:
        """Return the models of epochs, the oldest first."""
        named = re.compile(rf"{_MODEL_PREFIX}\d+")
        return sorted(path for path in self.checkpoints.iterdir() if named.fullmatch(path.name))
