"""What generation keeps of the tokens so far."""

from collections.abc import Callable

import torch


class LineageXLNetCache:
    """Projected keys and values of every layer, and what is known of the tokens that they belong to.

    A token's keys and values enter when they will not change any more: a token sees the one after it, so the last
    token of a pass is computed again in the next.
    """

    # what transformers' generation asks of a cache
    is_compileable = False
    is_croppable = False

    def __init__(self) -> None:
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []
        self._relative: dict[int, tuple[torch.Tensor, int]] = {}
        self.mask: torch.Tensor | None = None
        self.token_type_ids: torch.Tensor | None = None
        self.memory_length = 0

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
        if layer_index < len(self.keys):
            key = torch.cat([self.keys[layer_index], key], 2)
            value = torch.cat([self.values[layer_index], value], 2)
        else:
            self.keys.append(key)
            self.values.append(value)
        self.keys[layer_index], self.values[layer_index] = key[:, :, :-1], value[:, :, :-1]
        return key, value

    def update_relative(
        self,
        positions: torch.Tensor,
        tokens: int,
        layer_index: int,
        project: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """A layer's projected positions, of which only distances are computed that were not there before.

        Args:
            positions: `(1 or batch, keys + tokens, d_model)`, the sinusoids of the distances from `keys` down.
            tokens: How many of the keys are of this pass.
            layer_index: Number of the layer.
            project: Makes `(1 or batch, heads, distances, head size)` of `(1 or batch, distances, d_model)`.
        """
        keys = positions.shape[1] - tokens
        known, known_tokens = self._relative.get(layer_index, (None, 0))
        if known is None or known_tokens < tokens or len(positions) > 1:
            found = project(positions)
        else:
            farther = max(0, keys - (known.shape[2] - known_tokens))
            nearer = known[:, :, known.shape[2] - known_tokens - (keys - farther) :][:, :, : keys - farther + tokens]
            found = torch.cat([project(positions[:, :farther]), nearer], 2) if farther else nearer
        self._relative[layer_index] = found, tokens
        return found

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
        self.keys = [key.index_select(0, beam_idx.to(key.device)) for key in self.keys]
        self.values = [value.index_select(0, beam_idx.to(value.device)) for value in self.values]
        if self.mask is not None:
            self.mask = self.mask.index_select(0, beam_idx.to(self.mask.device))
        if self.token_type_ids is not None:
            self.token_type_ids = self.token_type_ids.index_select(0, beam_idx.to(self.token_type_ids.device))


__all__ = ["LineageXLNetCache"]
