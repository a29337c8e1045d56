"""`Trainer` for models that remember the batch before."""

import os
from typing import Any

import torch
from torch import nn
from transformers import Trainer, TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import EvalLoopOutput

from ..files import atomic_file
from .row_memory import RowMemory


class MemoryTrainer(Trainer):
    """A `Trainer` that gives each row of a batch what the model remembers of it.

    It takes batches that have `rows` and `segment_numbers`, such as `segment_dataset` and
    `DataCollatorForPermutationLM` make, with `per_device_train_batch_size` times the number of processes as the
    dataset's `num_rows`; that of an `eval_dataset` is `per_device_eval_batch_size` times that number. Evaluation has a
    memory of its own, which begins empty; `eval_loss` is the mean over batches, as `Trainer` has it, not over tokens.
    `remove_unused_columns` is set to `False`: the collator needs columns that the model does not.

    Checkpoints hold the memory. As `Trainer` finds its place in a stream only within the first pass, a run goes on
    from checkpoints of that pass alone; `python -m hf_lineage.pretraining` goes on from any.

    Args:
        *args, **kwargs: As `Trainer`.

    Raises:
        ValueError: If the model's `mem_len` is 0 or `None`, or its `reuse_len` is not that of the collator.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.args.remove_unused_columns = False
        if self.args.label_names is None:
            # the labels of every head would be asked for, and without one of them no loss be computed
            self.label_names = ["labels"]
        reuse_len = getattr(self.data_collator, "reuse_len", self.model.config.reuse_len)
        if (reuse_len or None) != (self.model.config.reuse_len or None):
            raise ValueError(
                f"the model remembers reuse_len={self.model.config.reuse_len} tokens of a segment, but the collator "
                f"makes segments of which {reuse_len} are to be remembered: the others would be predicted again"
            )
        self.memory = RowMemory(self.model.config)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """As in `Trainer`, with the memory of the rows before and after."""
        inputs = dict(inputs)
        place = inputs.pop("rows"), inputs.pop("segment_numbers")
        inputs.update(self.memory.inputs(*place, like=next(model.parameters())))
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        self.memory.update(*place, outputs)
        return (loss, outputs) if return_outputs else loss

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> EvalLoopOutput:
        """As in `Trainer`, with a memory of its own."""
        memory, self.memory = self.memory, RowMemory(self.model.config)
        try:
            return super().evaluation_loop(*args, **kwargs)
        finally:
            self.memory = memory

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        folder = os.path.join(self._get_output_dir(trial=trial), f"checkpoint-{self.state.global_step}")
        with atomic_file(os.path.join(folder, self._memory_file)) as temporary:
            torch.save(self.memory.state_dict(), temporary)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        state = TrainerState.load_from_json(os.path.join(resume_from_checkpoint, TRAINER_STATE_NAME))
        if state.epoch is not None and state.epoch >= 1:
            raise ValueError(
                f"{resume_from_checkpoint} is of pass {int(state.epoch) + 1} over the text, but Trainer goes on from "
                "the first pass alone; python -m hf_lineage.pretraining goes on from any"
            )
        path = os.path.join(resume_from_checkpoint, self._memory_file)
        if not os.path.exists(path):
            raise ValueError(f"{path} is missing: the checkpoint is of another number of processes, or has no memory")
        self.memory.load_state_dict(torch.load(path, map_location=self.args.device, weights_only=True))

    @property
    def _memory_file(self) -> str:
        return f"memory_{self.args.process_index}.pt"


__all__ = ["MemoryTrainer"]
