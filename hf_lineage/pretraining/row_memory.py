"""What a model remembers of each row of its batches from one batch to the next."""

from collections.abc import Mapping
from typing import Any

import torch

Remembered = tuple[torch.Tensor, torch.Tensor]


class RowMemory:
    """The memory of an XLNet-style model, kept by row.

    Rows have numbers of their own, so that batches may be smaller, come from several workers in turn, or leave rows
    out: each row finds what it left. A memory is always `mem_len` tokens long, what is not filled yet is masked.

    Args:
        config: Of the model; its `mem_len` says how much is remembered.

    Raises:
        ValueError: If `mem_len` is 0 or `None`, which would keep everything.
    """

    def __init__(self, config: Any):
        if not config.mem_len:
            raise ValueError(f"mem_len must be at least 1 for a memory of rows, got {config.mem_len!r}")
        self._shape = (config.n_layer, config.mem_len, config.d_model)
        self._rows: dict[int, Remembered] = {}

    def inputs(self, rows: torch.Tensor, starts: torch.Tensor, like: torch.Tensor) -> dict[str, Any]:
        """The arguments of the model that give it the memory of these rows.

        Args:
            rows: `(batch,)` int64, numbers of the rows.
            starts: `(batch,)` bool, true where what was before is to be forgotten.
            like: Has the dtype and the device of the memory.

        Raises:
            ValueError: If a row is twice in the batch.
        """
        numbers = rows.tolist()
        if len({*numbers}) != len(numbers):
            raise ValueError(
                f"rows of a batch must differ, got {numbers}: its size must be the num_rows of the dataset"
            )
        for number, is_start in zip(numbers, starts.tolist(), strict=True):
            if is_start:
                self._rows.pop(number, None)
        nothing = like.new_zeros(self._shape), torch.zeros(self._shape[1], dtype=torch.bool, device=like.device)
        found = [self._rows.get(number, nothing) for number in numbers]
        mems = torch.stack([memory for memory, _ in found], 1)
        mask = torch.stack([mask for _, mask in found])
        return {"mems": tuple(mems), "mems_mask": mask, "use_mems": True}

    def update(self, rows: torch.Tensor, outputs: Any) -> None:
        """Keeps the `mems` and `mems_mask` of the model's outputs for the rows of the batch."""
        mems = torch.stack(outputs.mems, 1)
        for place, number in enumerate(rows.tolist()):
            self._rows[number] = mems[place].clone(), outputs.mems_mask[place].clone()

    def state_dict(self) -> dict[int, Remembered]:
        """The memory of each row: `(n_layer, mem_len, d_model)` and the `(mem_len,)` mask."""
        return dict(self._rows)

    def load_state_dict(self, state: Mapping[int, Remembered]) -> None:
        """Remembers what another did.

        Raises:
            ValueError: If that is of another size.
        """
        for number, (memory, _) in state.items():
            if tuple(memory.shape) != self._shape:
                raise ValueError(f"row {number} has a memory of shape {tuple(memory.shape)}, the model {self._shape}")
        self._rows = {number: (memory, mask) for number, (memory, mask) in state.items()}


__all__ = ["RowMemory"]
