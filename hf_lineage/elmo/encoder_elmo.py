"""The parts of ELMo's bidirectional language model: character CNN, LSTM stacks, scalar mix.

Equations: Peters et al. 2018 (https://arxiv.org/abs/1802.05365), section 3; Jozefowicz et al. 2016
(https://arxiv.org/abs/1602.02410) for the character CNN; where the papers are silent, bilm-tf's `bilm/training.py` and
`bilm/model.py`.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from transformers.modeling_layers import GradientCheckpointingLayer

from .configuration_elmo import ElmoConfig
from .packing_elmo import PADDING, PackedSequences


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


class ElmoLstmLayer(GradientCheckpointingLayer):
    """One layer of one direction: an LSTM with a projected output, both the cell and the output bounded.

    The weights of the gates stand in the order input, forget, candidate, output.
    """

    def __init__(self, config: ElmoConfig):
        super().__init__()
        size, projection_size = config.lstm_hidden_size, config.projection_size
        self.input_linear = nn.Linear(projection_size, 4 * size)
        self.recurrent_linear = nn.Linear(projection_size, 4 * size, bias=False)
        self.projection = nn.Linear(size, projection_size, bias=False) if config.use_lstm_projection else nn.Identity()
        self.forget_bias = config.forget_bias
        self.cell_clip = config.cell_clip
        # TensorFlow's cell bounds the output only where it projects it
        self.proj_clip = config.proj_clip if config.use_lstm_projection else None

    def forward(
        self, inputs: torch.Tensor, state: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Reads a batch of sequences.

        Args:
            inputs: `(sequences, length, projection_size)`.
            state: `(sequences, projection_size + lstm_hidden_size)`, output and cell before the first step.
            lengths: `(sequences,)` int64.

        Returns:
            The outputs `(sequences, length, projection_size)`, meaningless behind a sequence's end, and the state
            after each sequence's own last step.
        """
        hidden, cell = state.split([inputs.shape[-1], state.shape[-1] - inputs.shape[-1]], -1)
        # the input's part of the gates needs no recurrence: one large product for all steps
        gates = self.input_linear(inputs.transpose(0, 1))
        outputs, cells = (self._scanned if _is_exporting() else self._unrolled)(gates, hidden, cell)
        state = torch.cat([_take_step(outputs, lengths), _take_step(cells, lengths)], -1)
        return outputs[:, 1:], state

    def _unrolled(
        self, gates: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs and cells `(sequences, 1 + length, ...)` from gates `(length, sequences, ...)`, the start first."""
        outputs, cells = [hidden], [cell]
        for gates_of_step in gates.unbind(0):  # its backward pass is linear in the steps, that of indexing quadratic
            hidden, cell = self._step(gates_of_step, hidden, cell)
            outputs.append(hidden)
            cells.append(cell)
        return torch.stack(outputs, 1), torch.stack(cells, 1)

    def _scanned(
        self, gates: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same as an operator over the steps, so that an exported graph takes any length."""

        def step(carry, gates_of_step):
            carry = self._step(gates_of_step, *carry)
            return carry, tuple(value.clone() for value in carry)

        start = tuple(value.clone(memory_format=torch.contiguous_format) for value in (hidden, cell))
        _, (outputs, cells) = scan(step, start, gates)
        return (
            torch.cat([hidden[None], outputs]).transpose(0, 1),
            torch.cat([cell[None], cells]).transpose(0, 1),
        )

    def _step(
        self, gates: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        gates = gates + self.recurrent_linear(hidden)
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4, -1)
        cell = torch.sigmoid(forget_gate + self.forget_bias) * cell
        cell = _bounded(cell + torch.sigmoid(input_gate) * torch.tanh(candidate), self.cell_clip)
        hidden = self.projection(torch.sigmoid(output_gate) * torch.tanh(cell))
        return _bounded(hidden, self.proj_clip), cell


class ElmoLstmEncoder(nn.Module):
    """Two stacks of LSTM layers, one a direction. They share nothing and meet only in the concatenated output."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        self.use_skip_connections = config.use_skip_connections
        self.dropout = nn.Dropout(config.lstm_dropout)
        self.forward_layers = nn.ModuleList(ElmoLstmLayer(config) for _ in range(config.num_hidden_layers))
        self.backward_layers = nn.ModuleList(ElmoLstmLayer(config) for _ in range(config.num_hidden_layers))

    def forward(
        self, token_vectors: torch.Tensor, lengths: torch.Tensor, states: torch.Tensor
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Runs both directions.

        Args:
            token_vectors: `(sequences, length, projection_size)`.
            lengths: `(sequences,)` int64.
            states: `(sequences, layers, 2, projection_size + lstm_hidden_size)`, output and cell before the first
                step, the forward direction first. The backward direction's first step is at a sequence's end.

        Returns:
            The output of each layer, `(sequences, length, 2 * projection_size)`, and the states after the last step.
        """
        order = _reading_order(lengths, token_vectors.shape[1])
        ahead, ahead_states = self._run(self.forward_layers, token_vectors, lengths, states[:, :, 0])
        back, back_states = self._run(self.backward_layers, _reorder(token_vectors, order), lengths, states[:, :, 1])
        layers = [torch.cat([one, _reorder(other, order)], -1) for one, other in zip(ahead, back, strict=True)]
        return layers, torch.stack([ahead_states, back_states], 2)

    def _run(
        self, stack: nn.ModuleList, inputs: torch.Tensor, lengths: torch.Tensor, states: torch.Tensor
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Runs one direction on `(sequences, layers, projection_size + lstm_hidden_size)` states."""
        layers, final_states = [], []
        for number, layer in enumerate(stack):
            # The residual adds the dropped-out input, as bilm-tf's DropoutWrapper is outside its ResidualWrapper, and
            # it stays outside the recurrence.
            inputs = self.dropout(inputs)
            outputs, state = layer(inputs, states[:, number], lengths)
            inputs = outputs + inputs if self.use_skip_connections and number > 0 else outputs
            layers.append(inputs)
            final_states.append(state)
        return layers, torch.stack(final_states, 1)


class ElmoScalarMix(nn.Module):
    """`gamma * sum_k softmax(weights)_k * layer_k`, Peters et al. 2018, equation 1."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        weights, gamma = torch.zeros(config.num_hidden_layers + 1), torch.ones(1)
        if config.scalar_mix_parameters is None:
            self.weights, self.gamma = nn.Parameter(weights), nn.Parameter(gamma)
        else:
            self.register_buffer("weights", weights)
            self.register_buffer("gamma", gamma)

    def forward(
        self, layers: Sequence[torch.Tensor], statistics: list[tuple[torch.Tensor, torch.Tensor]] | None = None
    ) -> torch.Tensor:
        """Mixes the layers, after normalizing each by its mean and standard deviation if `statistics` are given."""
        if statistics is not None:
            layers = [(layer - mean) / deviation for layer, (mean, deviation) in zip(layers, statistics, strict=True)]
        weights = torch.softmax(self.weights, 0).to(layers[0].dtype)
        mixed = sum(weight * layer for weight, layer in zip(weights.unbind(0), layers, strict=True))
        return self.gamma.to(layers[0].dtype) * mixed


def layer_statistics(
    layers: list[torch.Tensor], packed: PackedSequences, convention: str
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Mean and standard deviation of each layer, over all real elements of the batch, as in both originals.

    AllenNLP (`allennlp/modules/scalar_mix.py`) mixes before it removes the sentence boundaries, so they count; bilm-tf
    (`bilm/elmo.py`) removes them first. Their epsilons differ too.

    Args:
        layers: `(sequences, length, hidden_size)` tensors.
        packed: The sequences that they were computed from.
        convention: `"allennlp"` or `"bilm"`.
    """
    if convention == "allennlp":
        mask, epsilon = packed.mask, 1e-13
    else:
        mask, epsilon = packed.mask & ~packed.is_boundary, 1e-12
    kept = mask[..., None].to(layers[0].dtype)
    statistics = []
    for layer in layers:
        count = (kept.sum() * layer.shape[-1]).clamp(min=1)
        mean = (layer * kept).sum() / count
        variance = (((layer - mean) * kept) ** 2).sum() / count
        statistics.append((mean, torch.sqrt(variance + epsilon)))
    return statistics


def _is_exporting() -> bool:
    """Whether `torch.export` is tracing; before torch 2.7, which cannot tell, the steps are unrolled there too."""
    return hasattr(torch.compiler, "is_exporting") and torch.compiler.is_exporting()


def _bounded(values: torch.Tensor, bound: float | None) -> torch.Tensor:
    return values.clamp(-bound, bound) if bound else values


def _take_step(steps: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Takes step `lengths[i]` of each row of `(sequences, steps, width)`."""
    return steps.gather(1, lengths[:, None, None].expand(-1, 1, steps.shape[-1])).squeeze(1)


def _reading_order(lengths: torch.Tensor, length: int) -> torch.Tensor:
    """`(sequences, length)` indices that reverse each sequence within its own length; their own inverse."""
    steps = torch.arange(length, device=lengths.device).expand(lengths.shape[0], -1)
    return torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)


def _reorder(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    return values.gather(1, order[..., None].expand(-1, -1, values.shape[-1]))


__all__ = [
    "ElmoCharacterEncoder",
    "ElmoHighway",
    "ElmoLstmEncoder",
    "ElmoLstmLayer",
    "ElmoScalarMix",
    "layer_statistics",
]
