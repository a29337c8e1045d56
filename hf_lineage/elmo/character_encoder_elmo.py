"""ELMo's context-free token vectors: a convolutional network over the characters of each word.

Kim et al. 2015 (https://arxiv.org/abs/1508.06615), Jozefowicz et al. 2016 (https://arxiv.org/abs/1602.02410); where
the papers are silent, bilm-tf's `bilm/model.py`. A table of word vectors beside or instead of the characters is as in
ELMoForManyLangs and in bilm-tf's token cache.
"""

import torch
from torch import nn

from .character_codes_elmo import PADDING
from .configuration_elmo import ElmoConfig


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
    """Context-free token vectors: characters (embedding, convolutions, maximum, highway layers), words, projection."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        self.characters = config.max_characters_per_token
        self.embedding: nn.Embedding | None = None
        self.word_embedding: nn.Embedding | None = None
        if config.char_embedding_size:
            size = config.num_char_filters
            self.embedding = nn.Embedding(config.char_vocab_size, config.char_embedding_size, padding_idx=0)
            self.convolutions = nn.ModuleList(
                nn.Conv1d(config.char_embedding_size, number, kernel_size=width)
                for width, number in config.char_cnn_filters
            )
            self.activation = {"relu": torch.relu, "tanh": torch.tanh}[config.char_cnn_activation]
            self.highways = nn.ModuleList(ElmoHighway(size) for _ in range(config.num_highway_layers))
            self.widest = max(width for width, _ in config.char_cnn_filters)
        if config.word_embedding_size:
            self.word_embedding = nn.Embedding(config.word_vocab_size, config.word_embedding_size, padding_idx=0)
        # bilm-tf has no projection where it would not change the width
        self.projection = (
            nn.Linear(config.token_feature_size, config.projection_size)
            if config.use_token_projection
            else nn.Identity()
        )
        self.output_size = config.projection_size

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """Encodes each distinct token once.

        Args:
            character_ids: `(..., token_row_size)` int64.

        Returns:
            `(..., projection_size)` vectors, equal to those of `encode`.
        """
        if torch.compiler.is_compiling():
            return self.encode(character_ids)  # the number of distinct words depends on the data
        rows = character_ids.flatten(0, -2)
        if self.embedding is None:
            rows = rows[:, self.characters :]  # characters that nothing reads need not be compared
        tokens, index = torch.unique(rows, dim=0, return_inverse=True)
        characters = tokens[:, : self.characters]
        if self.embedding is not None:
            characters = self._without_needless_padding(characters)
        vectors = self.encode_parts(characters, tokens[:, -1])
        return nn.functional.embedding(index, vectors).unflatten(0, character_ids.shape[:-1])

    def encode(self, character_ids: torch.Tensor) -> torch.Tensor:
        """Encodes `(..., token_row_size)` ids token by token: the plain form that `forward` is tested against."""
        rows = character_ids.flatten(0, -2)
        return self.encode_parts(rows[:, : self.characters], rows[:, -1]).unflatten(0, character_ids.shape[:-1])

    def encode_parts(self, character_ids: torch.Tensor, word_ids: torch.Tensor) -> torch.Tensor:
        """Encodes the two parts of tokens' rows, of which the model may read only one.

        Args:
            character_ids: `(tokens, characters)` int64, with or without the padding that changes nothing.
            word_ids: `(tokens,)` int64.

        Returns:
            `(tokens, projection_size)` vectors.
        """
        features = [] if self.word_embedding is None else [self.word_embedding(word_ids)]
        if self.embedding is not None:
            features.append(self._from_characters(character_ids))
        return self.projection(torch.cat(features, -1) if len(features) > 1 else features[0])

    def _from_characters(self, character_ids: torch.Tensor) -> torch.Tensor:
        """Features `(tokens, number of filters)` of `(tokens, characters)` ids."""
        assert self.embedding is not None
        embedded = self.embedding(character_ids).transpose(1, 2)
        maxima = [convolution(embedded).amax(-1) for convolution in self.convolutions]
        hidden_states = self.activation(torch.cat(maxima, -1))
        for highway in self.highways:
            hidden_states = highway(hidden_states)
        return hidden_states

    def _without_needless_padding(self, words: torch.Tensor) -> torch.Tensor:
        """Cuts columns that are padding for every word.

        Padding takes part in the maximum, so one window of nothing but padding must stay for each filter width.
        """
        used = (words != PADDING).any(0).nonzero()
        longest = int(used[-1]) + 1 if len(used) else 0
        return words[:, : longest + self.widest]


__all__ = ["ElmoCharacterEncoder", "ElmoHighway"]
