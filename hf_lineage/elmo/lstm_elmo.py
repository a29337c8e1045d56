"""ELMo's LSTM layers and the two stacks of them.

Peters et al. 2018 (https://arxiv.org/abs/1802.05365), section 3.1; bilm-tf's `bilm/training.py` for what the paper
leaves open: where the skip connections, the bounds and the dropout are.
"""

from collections.abc import Callable

import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from .configuration_elmo import ElmoConfig
from .packed_linear_elmo import packed

# The input's part of the gates needs no recurrence, so that it is a large product for many steps. For all of them at
# once its result would be so large that what its memory costs is more than what is gained.
STEPS_AT_ONCE = 8


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
        # a sum over all steps, which half precision would round at each
        cell = cell.to(torch.promote_types(cell.dtype, torch.float32))
        steps = inputs.transpose(0, 1)
        outputs, cells = (self._scanned if _is_exporting() else self._unrolled)(steps, hidden.to(inputs.dtype), cell)
        final_state = torch.cat([_take_step(outputs, lengths), _take_step(cells, lengths)], -1)
        return outputs[:, 1:], final_state.to(state.dtype)

    def _unrolled(
        self, inputs: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs and cells `(sequences, 1 + length, ...)` from inputs `(length, sequences, ...)`, the start first.

        The plain form, which `_scanned` is tested against.
        """
        outputs, cells = [hidden], [cell]
        sequences, length = len(hidden), len(inputs)
        recurrent_linear = packed(self.recurrent_linear, sequences, length)
        projection = packed(self.projection, sequences, length)
        input_linear = packed(self.input_linear, STEPS_AT_ONCE * sequences, length // STEPS_AT_ONCE)
        for chunk in inputs.split(STEPS_AT_ONCE):
            # unbinding has a backward pass that is linear in the steps, that of indexing is quadratic
            for gates_of_step in input_linear(chunk).unbind(0):
                hidden, cell = self._step(recurrent_linear(hidden) + gates_of_step, cell, projection)
                outputs.append(hidden)
                cells.append(cell)
        return torch.stack(outputs, 1), torch.stack(cells, 1)

    def _scanned(
        self, inputs: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same as an operator over the steps, so that an exported graph takes any length."""
        from torch._higher_order_ops.scan import scan  # a prototype in torch, so only where it is needed

        def step(carry, gates_of_step):
            hidden, cell = carry
            carry = self._step(gates_of_step + self.recurrent_linear(hidden), cell, self.projection)
            return carry, tuple(value.clone() for value in carry)

        start = tuple(value.clone(memory_format=torch.contiguous_format) for value in (hidden, cell))
        _, (outputs, cells) = scan(step, start, self.input_linear(inputs))
        return (
            torch.cat([hidden[None], outputs]).transpose(0, 1),
            torch.cat([cell[None], cells]).transpose(0, 1),
        )

    def _step(
        self, gates: torch.Tensor, cell: torch.Tensor, projection: Callable[[torch.Tensor], torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        input_gate, forget_gate, candidate, output_gate = gates.to(cell.dtype).chunk(4, -1)
        cell = torch.sigmoid(forget_gate + self.forget_bias) * cell
        cell = _bounded(torch.addcmul(cell, torch.sigmoid(input_gate), torch.tanh(candidate)), self.cell_clip)
        weight = self.recurrent_linear.weight
        # of a layer that torch has quantized it is a method
        dtype = weight.dtype if isinstance(weight, torch.Tensor) else gates.dtype
        hidden = projection((torch.sigmoid(output_gate) * torch.tanh(cell)).to(dtype))
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
        read = token_vectors, _reorder(token_vectors, order)
        ahead, back, states = self.run_directions(read, (lengths, lengths), states)
        layers = [torch.cat([one, _reorder(other, order)], -1) for one, other in zip(ahead, back, strict=True)]
        return layers, states

    def run_directions(
        self,
        token_vectors: tuple[torch.Tensor, torch.Tensor],
        lengths: tuple[torch.Tensor, torch.Tensor],
        states: torch.Tensor,
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor]:
        """Runs each direction on sequences of its own, in the order in which it reads them.

        Args:
            token_vectors: Of the forward and of the backward direction, `(sequences, length, projection_size)`.
            lengths: `(sequences,)` int64 of each.
            states: As in `forward`.

        Returns:
            The output of each layer `(sequences, length, projection_size)`, forward and backward, and the states after
            the last step.
        """
        ahead, ahead_states = self._run(self.forward_layers, token_vectors[0], lengths[0], states[:, :, 0])
        back, back_states = self._run(self.backward_layers, token_vectors[1], lengths[1], states[:, :, 1])
        return ahead, back, torch.stack([ahead_states, back_states], 2)

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


__all__ = ["ElmoLstmEncoder", "ElmoLstmLayer"]
