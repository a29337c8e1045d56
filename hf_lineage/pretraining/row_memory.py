"""What a model remembers of each row of its batches from one batch to the next."""

from collections.abc import Mapping
from typing import Any

import torch

Remembered = tuple[int, torch.Tensor, torch.Tensor]
_ADVICE = "the num_rows of the dataset must be the batch size of a process times the number of processes"


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

    def inputs(self, rows: torch.Tensor, segment_numbers: torch.Tensor, like: torch.Tensor) -> dict[str, Any]:
        """The arguments of the model that give it the memory of these rows.

        Args:
            rows: `(batch,)` int64, numbers of the rows.
            segment_numbers: `(batch,)` int64, which segment of its text each is; before 0 all is forgotten, and -1 has
                no text.
            like: Has the dtype and the device of the memory.

        Raises:
            ValueError: If a row is twice in the batch, or does not go on where it was.
        """
        numbers = rows.tolist()
        if len({*numbers}) != len(numbers):
            raise ValueError(f"rows of a batch must differ, got {numbers}: {_ADVICE}")
        nothing = like.new_zeros(self._shape), torch.zeros(self._shape[1], dtype=torch.bool, device=like.device)
        found = []
        for row, segment in zip(numbers, segment_numbers.tolist(), strict=True):
            known = self._rows.get(row) if segment > 0 else None
            if known is not None and segment != known[0] + 1:
                last = known[0]
                raise ValueError(f"row {row} goes on with segment {segment} after segment {last}: {_ADVICE}")
            found.append(nothing if known is None else known[1:])
        mems = torch.stack([memory for memory, _ in found], 1)
        mask = torch.stack([mask for _, mask in found])
        return {"mems": tuple(mems), "mems_mask": mask, "use_mems": True}

    def update(self, rows: torch.Tensor, segment_numbers: torch.Tensor, outputs: Any) -> None:
        """Keeps the `mems` and `mems_mask` of the model's outputs for the rows of the batch."""
        mems = torch.stack(outputs.mems, 1)
        for place, (row, segment) in enumerate(zip(rows.tolist(), segment_numbers.tolist(), strict=True)):
            if segment < 0:
                self._rows.pop(row, None)
            else:
                self._rows[row] = segment, mems[place].clone(), outputs.mems_mask[place].clone()

    def state_dict(self) -> dict[int, Remembered]:
        """Of each row its last segment, and the memory: `(n_layer, mem_len, d_model)` and the `(mem_len,)` mask."""
        return dict(self._rows)

    def load_state_dict(self, state: Mapping[int, Remembered]) -> None:
        """Remembers what another did.

        Raises:
            ValueError: If that is of another size.
        """
        for row, (_, memory, _) in state.items():
            if tuple(memory.shape) != self._shape:
                raise ValueError(f"row {row} has a memory of shape {tuple(memory.shape)}, the model {self._shape}")
        self._rows = dict(state)


__all__ = ["RowMemory"]
