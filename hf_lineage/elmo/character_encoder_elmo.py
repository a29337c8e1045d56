"""ELMo's context-free word vectors: a convolutional network over the characters of each word.

Kim et al. 2015 (https://arxiv.org/abs/1508.06615), Jozefowicz et al. 2016 (https://arxiv.org/abs/1602.02410); where
the papers are silent, bilm-tf's `bilm/model.py`.
"""

import torch
from torch import nn

from .configuration_elmo import ElmoConfig
from .packing_elmo import PADDING


class ElmoHighway(nn.Module):
    """A highway layer, `y = g * relu(W x + b) + (1 - g) * x` with `g = sigmoid(V x + c)` (the originals' "carry")."""

    def __init__(self, size: int):
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.gate = nn.Linear(size, size)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Maps `(..., size)` to `(..., size)`."""
        gate = torch.sigmoid(self.gate(hidden_states))
        return gate * torch.relu(self.transform(hidden_states)) + (1 - gate) * hidden_states


class ElmoCharacterEncoder(nn.Module):
    """Context-free word vectors from characters: embedding, convolutions, maximum, highway layers, projection."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        size = config.num_char_filters
        self.embedding = nn.Embedding(config.char_vocab_size, config.char_embedding_size, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.char_embedding_size, number, kernel_size=width)
            for width, number in config.char_cnn_filters
        )
        self.activation = {"relu": torch.relu, "tanh": torch.tanh}[config.char_cnn_activation]
        self.highways = nn.ModuleList(ElmoHighway(size) for _ in range(config.num_highway_layers))
        # bilm-tf has no projection where it would not change the width
        needs_projection = size != config.projection_size
        self.projection = nn.Linear(size, config.projection_size) if needs_projection else nn.Identity()
        self.output_size = config.projection_size
        self.widest = max(width for width, _ in config.char_cnn_filters)

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """Encodes each distinct word once.

        Args:
            character_ids: `(..., characters)` int64.

        Returns:
            `(..., projection_size)` vectors, equal to those of `encode`.
        """
        if torch.compiler.is_compiling():
            return self.encode(character_ids)  # the number of distinct words depends on the data
        words, index = torch.unique(character_ids.flatten(0, -2), dim=0, return_inverse=True)
        vectors = self.encode(self._without_needless_padding(words))
        return nn.functional.embedding(index, vectors).unflatten(0, character_ids.shape[:-1])

    def encode(self, character_ids: torch.Tensor) -> torch.Tensor:
        """Encodes `(..., characters)` ids word by word: the plain form that `forward` is tested against."""
        embedded = self.embedding(character_ids.flatten(0, -2)).transpose(1, 2)
        maxima = [convolution(embedded).amax(-1) for convolution in self.convolutions]
        hidden_states = self.activation(torch.cat(maxima, -1))
        for highway in self.highways:
            hidden_states = highway(hidden_states)
        return self.projection(hidden_states).unflatten(0, character_ids.shape[:-1])

    def _without_needless_padding(self, words: torch.Tensor) -> torch.Tensor:
        """Cuts columns that are padding for every word.

        Padding takes part in the maximum, so one window of nothing but padding must stay for each filter width.
        """
        used = (words != PADDING).any(0).nonzero()
        longest = int(used[-1]) + 1 if len(used) else 0
        return words[:, : longest + self.widest]


__all__ = ["ElmoCharacterEncoder", "ElmoHighway"]
