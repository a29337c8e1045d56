"""What generation keeps of the tokens so far."""

from collections.abc import Callable

import torch

# Tokens and distances for which room is made at once, so that not every step of generation copies all of them
ROOM = 64


class LineageXLNetCache:
    """Projected keys and values of every layer, and what is known of the tokens that they belong to.

    A token's keys and values enter when they will not change any more: a token sees the one after it, so the last
    token of a pass is computed again in the next.
    """

    # what transformers' generation asks of a cache
    is_compileable = False
    is_croppable = False

    def __init__(self) -> None:
        self._keys: list[_Rows] = []
        self._values: list[_Rows] = []
        self._relative_keys: dict[int, torch.Tensor] = {}
        self._farthest = self._ahead = 0
        self.mask: torch.Tensor | None = None
        self.token_type_ids: torch.Tensor | None = None
        self.memory_length = 0

    @property
    def keys(self) -> list[torch.Tensor]:
        """For each layer `(batch, heads, tokens, head size)`."""
        return [rows.held for rows in self._keys]

    @property
    def values(self) -> list[torch.Tensor]:
        """The same."""
        return [rows.held for rows in self._values]

    @property
    def num_text_tokens(self) -> int:
        """Number of tokens in the cache without those of a memory that preceded the text."""
        return self.get_seq_length() - self.memory_length

    def get_seq_length(self, layer_index: int = 0) -> int:
        """Number of tokens in the cache, those of a memory included."""
        return 0 if self.mask is None else self.mask.shape[1]

    def update(self, key: torch.Tensor, value: torch.Tensor, layer_index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Puts a layer's keys and values of all tokens but the last into the cache.

        Args:
            key: `(batch, heads, tokens, head size)`.
            value: The same.
            layer_index: Number of the layer.

        Returns:
            Those of the tokens in the cache and of all new ones.
        """
        if layer_index == len(self._keys):
            self._keys.append(_Rows(key[:, :, :0]))
            self._values.append(_Rows(value[:, :, :0]))
        return self._keys[layer_index].extended(key), self._values[layer_index].extended(value)

    def missing_distances(self, tokens: int, keys: int) -> tuple[int, int] | None:
        """Asks for positions, to be projected by all layers, unless the projections of earlier passes are enough.

        Args:
            tokens: Length of the text of this pass.
            keys: That and the tokens before.

        Returns:
            The two numbers of `relative_positions` that cover this pass and some to come; `None` if all are there.
        """
        if tokens <= self._ahead and keys <= self._farthest:
            return None
        self._relative_keys.clear()
        self._ahead, self._farthest = max(tokens, self._ahead), keys + ROOM
        return self._ahead, self._farthest

    def relative_key(
        self, layer_index: int, tokens: int, keys: int, project: Callable[[], torch.Tensor]
    ) -> torch.Tensor:
        """A layer's projected positions.

        Args:
            layer_index: Number of the layer.
            tokens: As in `missing_distances`.
            keys: The same.
            project: Makes the `(1, heads, distances, head size)` that `missing_distances` asked for.

        Returns:
            `(1, heads, keys + tokens, head size)`.
        """
        if layer_index not in self._relative_keys:
            self._relative_keys[layer_index] = project()
        first = self._farthest - keys
        return self._relative_keys[layer_index][:, :, first : first + keys + tokens]

    def see(self, mask: torch.Tensor, token_type_ids: torch.Tensor | None, memory_length: int) -> None:
        """Notes `(batch, tokens)` masks and segments of all tokens so far; the last is left out, as of its keys.

        Args:
            mask: True where a token is no padding.
            token_type_ids: Segments, or `None`.
            memory_length: How many tokens precede those of this pass.
        """
        if self.mask is None:
            self.memory_length = memory_length
        self.mask = mask[:, :-1]
        self.token_type_ids = None if token_type_ids is None else token_type_ids[:, :-1]

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Gives each row the past of row `beam_idx[row]`, as beam search asks for."""
        for rows in (*self._keys, *self._values):
            rows.reorder(beam_idx)
        if self.mask is not None:
            self.mask = self.mask.index_select(0, beam_idx.to(self.mask.device))
        if self.token_type_ids is not None:
            self.token_type_ids = self.token_type_ids.index_select(0, beam_idx.to(self.token_type_ids.device))


class _Rows:
    """A layer's keys or values, `(batch, heads, tokens, head size)`, with room for more tokens."""

    def __init__(self, first: torch.Tensor):
        self._all, self._length = first, 0

    @property
    def held(self) -> torch.Tensor:
        """Those of the tokens that will not change."""
        return self._all[:, :, : self._length]

    def extended(self, new: torch.Tensor) -> torch.Tensor:
        """Those and the new ones, of which all but the last are held from here on."""
        length = self._length + new.shape[2]
        if self._length == 0 or new.requires_grad:  # what backward passes need is not overwritten
            self._all = torch.cat([self.held, new], 2) if self._length else new
        else:
            if length > self._all.shape[2] or self._all.is_inference() != torch.is_inference_mode_enabled():
                room = new.new_empty(*new.shape[:2], length + ROOM, new.shape[3])
                room[:, :, : self._length] = self.held
                self._all = room
            self._all[:, :, self._length : length] = new
        self._length = length - 1
        return self._all[:, :, :length]

    def reorder(self, beam_idx: torch.Tensor) -> None:
        self._all = self._all.index_select(0, beam_idx.to(self._all.device))


__all__ = ["LineageXLNetCache"]
