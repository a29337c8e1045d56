"""Batches without padding: every real token once, in one row."""

from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True)
class PackedSequences:
    """Where the tokens of a packed row stand in the padded batch that holds the same sequences.

    All but attention treats each token by itself, so it runs on the packed row; attention needs the tokens of each
    sequence apart, which `pad` and `split` give.

    Args:
        rows: `(tokens,)` int64, the sequence that a token belongs to.
        columns: `(tokens,)` int64, its place in it.
        batch_size: Number of sequences.
        length: Columns of the padded batch.
    """

    rows: torch.Tensor
    columns: torch.Tensor
    batch_size: int
    length: int

    @classmethod
    def from_mask(cls, attention_mask: torch.Tensor) -> "PackedSequences":
        """The tokens under a `(batch, tokens)` mask, each in the column where it stands."""
        rows, columns = attention_mask.nonzero(as_tuple=True)
        return cls(rows, columns, *attention_mask.shape)

    @classmethod
    def from_lengths(cls, lengths: torch.Tensor) -> "PackedSequences":
        """Sequences of `(batch,)` int64 lengths, one after the other in one row."""
        starts = lengths.cumsum(0) - lengths
        rows = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
        columns = torch.arange(len(rows), device=lengths.device) - starts[rows]
        return cls(rows, columns, len(lengths), int(lengths.max()))

    @property
    def mask(self) -> torch.Tensor:
        """`(batch_size, length)` bool, true where there is a token."""
        mask = torch.zeros(self.batch_size, self.length, dtype=torch.bool, device=self.rows.device)
        mask[self.rows, self.columns] = True
        return mask

    @property
    def lengths(self) -> torch.Tensor:
        """`(batch_size,)` int64, the number of tokens of each sequence; 0 for a row of padding."""
        return torch.bincount(self.rows, minlength=self.batch_size)

    @property
    def first_tokens(self) -> torch.Tensor:
        """`(batch_size,)` int64, the index in the packed row of each sequence's first token, of any if it has none."""
        return (self.lengths.cumsum(0) - self.lengths).clamp(max=max(len(self.rows) - 1, 0))

    def pack(self, values: torch.Tensor) -> torch.Tensor:
        """`(batch_size, length, ...)` -> `(1, tokens, ...)`."""
        return values[self.rows, self.columns][None]

    def split(self, values: torch.Tensor, kept: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """`(1, tokens, ...)` -> `(1, tokens of the sequence, ...)` of each sequence, without the rows of padding.

        With the `(kept,)` indices of some tokens, in rising order, the values are theirs, `(1, kept, ...)`.
        """
        if kept is None:
            return values.split(self._sizes, dim=1)
        counts = torch.bincount(self.rows[kept], minlength=self.batch_size)
        return values.split(counts[self.lengths > 0].tolist(), dim=1)

    @cached_property
    def _sizes(self) -> list[int]:
        return [length for length in self.lengths.tolist() if length]

    def pad(self, values: torch.Tensor) -> torch.Tensor:
        """`(1, tokens, ...)` -> `(batch_size, length, ...)`, zero where there is no token."""
        padded = values.new_zeros(self.batch_size, self.length, *values.shape[2:])
        return padded.index_put((self.rows, self.columns), values[0])


class KeptTokens:
    """The tokens whose vectors are needed after the last layer: those asked for, and each sequence's first.

    The first ones are kept for the pooler, and so that no sequence is without any.

    Args:
        output_mask: `(batch, tokens)` bool, true at the tokens asked for.
        starts: `(sequences,)` int64, the first tokens, counted row by row.
    """

    def __init__(self, output_mask: torch.Tensor, starts: torch.Tensor):
        asked = output_mask.flatten()
        needed = asked.index_fill(0, starts, True)
        self.indices = needed.nonzero().flatten()
        self._asked = asked[self.indices]
        self._starts = (needed.cumsum(0) - 1)[starts]

    def asked(self, kept: torch.Tensor) -> torch.Tensor:
        """`(1, kept, ...)` vectors -> those that were asked for, `(asked, ...)`."""
        return kept[0, self._asked]

    def starts(self, kept: torch.Tensor) -> torch.Tensor:
        """`(1, kept, ...)` vectors -> those of the first tokens, `(sequences, ...)`."""
        return kept[0, self._starts]


def sequence_lengths(cu_seq_lens: torch.Tensor, total: int) -> torch.Tensor:
    """The `(sequences,)` lengths between `(sequences + 1,)` boundaries.

    Raises:
        ValueError: Unless the boundaries rise from 0 to the number of tokens.
    """
    if not isinstance(cu_seq_lens, torch.Tensor) or cu_seq_lens.dim() != 1 or len(cu_seq_lens) < 2:
        given = tuple(cu_seq_lens.shape) if isinstance(cu_seq_lens, torch.Tensor) else type(cu_seq_lens).__name__
        raise ValueError(f"cu_seq_lens_q must be a tensor of sequences + 1 boundaries, got {given}")
    if cu_seq_lens.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"cu_seq_lens_q must be int32 or int64, got {cu_seq_lens.dtype}")
    lengths = cu_seq_lens.long().diff()
    if int(cu_seq_lens[0]) != 0 or int(cu_seq_lens[-1]) != total or int(lengths.min()) < 1:
        raise ValueError(f"cu_seq_lens_q must rise from 0 to the number of tokens {total}, got {cu_seq_lens.tolist()}")
    return lengths


def lengths_from_positions(position_ids: torch.Tensor) -> torch.Tensor:
    """The lengths of the sequences in one row of position ids; a position of 0 starts a sequence."""
    starts = (position_ids.flatten() == 0).nonzero().flatten()
    if len(starts) == 0 or int(starts[0]) != 0:
        starts = torch.cat([starts.new_zeros(1), starts])
    return torch.cat([starts, starts.new_tensor([position_ids.numel()])]).diff()


def packed_row(
    shape: tuple[int, int],
    attention_mask: torch.Tensor | None,
    position_ids: torch.Tensor | None,
    cu_seq_lens: torch.Tensor | None,
) -> PackedSequences | None:
    """The sequences of a row that was given packed, `None` for an ordinary batch."""
    if cu_seq_lens is not None and is_exporting():
        raise ValueError("torch.export needs padded batches: no cu_seq_lens_q, and padding_free=False")
    if cu_seq_lens is not None:
        if shape[0] != 1 or attention_mask is not None:
            given = f"batch of {shape[0]}" + ("" if attention_mask is None else " and an attention_mask")
            raise ValueError(f"cu_seq_lens_q goes with a batch of one packed row and no attention_mask, got a {given}")
        return PackedSequences.from_lengths(sequence_lengths(cu_seq_lens, shape[1]))
    if shape[0] != 1 or attention_mask is not None or position_ids is None or is_exporting():
        return None
    lengths = lengths_from_positions(position_ids)
    return PackedSequences.from_lengths(lengths) if len(lengths) > 1 else None


def first_real_tokens(attention_mask: torch.Tensor | None) -> torch.Tensor | None:
    """`(batch,)` int64, the column of each row's first real token; `None` without a two-dimensional mask."""
    if attention_mask is None or attention_mask.dim() != 2:
        return None
    return ((attention_mask != 0).cumsum(1) == 0).sum(1).clamp(max=attention_mask.shape[1] - 1)


def is_exporting() -> bool:
    """Whether `torch.export` is at work, which cannot follow packed rows."""
    return getattr(torch.compiler, "is_exporting", lambda: False)()


__all__ = [
    "KeptTokens",
    "PackedSequences",
    "first_real_tokens",
    "is_exporting",
    "lengths_from_positions",
    "packed_row",
    "sequence_lengths",
]
