"""The layers of XLNet-style models."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer

from .attention_xlnet import RelativeInputs, RelativeLayout, relative_attention, relative_attention_reference
from .cache_xlnet import LineageXLNetCache
from .configuration_xlnet import LineageXLNetConfig
from .projection_xlnet import project


@dataclass(frozen=True)
class LayerContext:
    """What all layers of one forward pass share.

    Args:
        positions: `(1 or batch, keys + tokens, d_model)`, the sinusoids of the distances, `keys` tokens back first.
            With `caches_positions`, those that the cache asked for; `None` if it has them.
        content: What the tokens see.
        query: What the predicted positions see; `None` with one stream.
        cache: Projected keys and values of earlier tokens, to which this pass adds its own.
        caches_positions: Whether the cache keeps what the layers make of the positions.
        eager: Whether attention is computed by the reference implementation, which gives the probabilities.
    """

    positions: torch.Tensor | None
    content: RelativeLayout
    query: RelativeLayout | None = None
    cache: LineageXLNetCache | None = None
    caches_positions: bool = False
    eager: bool = False


class LineageXLNetRelativeAttention(nn.Module):
    """Relative attention with its residual and LayerNorm.

    The parameters have their names from the original: `r_w_bias`, `r_r_bias` and `r_s_bias` are added to the queries
    for the content, the position and the segment term, `seg_embed` are the vectors of the same and of another segment.
    """

    def __init__(self, config: LineageXLNetConfig, layer_index: int):
        super().__init__()
        self.layer_index = layer_index
        self.num_heads, self.head_size = config.n_head, config.d_model // config.n_head
        self.attention_dropout = config.dropout
        self.q, self.k, self.v, self.o, self.r = (
            nn.Linear(config.d_model, config.d_model, bias=False) for _ in range(5)
        )
        self.r_w_bias, self.r_r_bias, self.r_s_bias = (
            nn.Parameter(torch.zeros(self.num_heads, self.head_size)) for _ in range(3)
        )
        self.seg_embed = nn.Parameter(torch.zeros(2, self.num_heads, self.head_size))
        self.layer_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        content: torch.Tensor,
        query: torch.Tensor | None,
        memory: torch.Tensor | None,
        context: LayerContext,
        last: bool = False,
    ) -> tuple[torch.Tensor, list[int], tuple[torch.Tensor, ...]]:
        """Runs both streams.

        Args:
            content: `(batch, tokens, d_model)`, the content stream.
            query: `(batch, predicted, d_model)`, the query stream, or `None`.
            memory: `(batch, memory, d_model)`, the layer's input at earlier tokens, or `None`.
            context: What they see.
            last: Whether the content stream goes no further, so that only its keys and values are needed.

        Returns:
            The streams that ran, one behind the other; their lengths; and their probabilities, if they are eager.
        """
        seen = content if memory is None else torch.cat([memory, content], 1)
        key, value = self._heads(project(self.k, seen)), self._heads(project(self.v, seen))
        if context.cache is not None:
            key, value = context.cache.update(key, value, self.layer_index)
        relative_key = self._relative_key(context, key.shape[2])
        layouts, streams = [], []
        for stream, layout in ((None if last else content, context.content), (query, context.query)):
            if stream is not None and layout is not None:
                layouts.append(layout)
                streams.append(stream)
        # both at once, so that weights are read once: what generation spends its time on
        hidden_states = _joined(streams)
        lengths = [stream.shape[1] for stream in streams]
        vectors: list[torch.Tensor] = []
        probabilities: list[torch.Tensor] = []
        for heads, layout in zip(self._heads(project(self.q, hidden_states)).split(lengths, 2), layouts, strict=True):
            inputs = self._inputs(heads, layout, key, value, relative_key)
            vectors.append(self._attend(inputs, layout, context.eager, probabilities).transpose(1, 2).flatten(2))
        output = self.layer_norm(self.dropout(project(self.o, _joined(vectors))) + hidden_states)
        return output, lengths, tuple(probabilities)

    def _relative_key(self, context: LayerContext, keys: int) -> torch.Tensor:
        """`(1 or batch, heads, keys + tokens, head size)`."""
        if context.cache is None or not context.caches_positions:
            return self._heads(self.r(context.positions))
        return context.cache.relative_key(
            self.layer_index, context.content.tokens, keys, lambda: self._heads(self.r(context.positions))
        )

    def _inputs(
        self,
        heads: torch.Tensor,
        layout: RelativeLayout,
        key: torch.Tensor,
        value: torch.Tensor,
        relative_key: torch.Tensor,
    ) -> RelativeInputs:
        segment_scores = None
        if layout.other_segment is not None:
            segment_scores = (heads + self.r_s_bias[:, None]) @ self.seg_embed.permute(1, 2, 0)
        return RelativeInputs(
            heads + self.r_w_bias[:, None], heads + self.r_r_bias[:, None], segment_scores, key, value, relative_key
        )

    def _attend(
        self, inputs: RelativeInputs, layout: RelativeLayout, eager: bool, probabilities: list[torch.Tensor]
    ) -> torch.Tensor:
        dropout = self.attention_dropout if self.training else 0.0
        if not eager:
            return relative_attention(inputs, layout, dropout)
        vectors, found = relative_attention_reference(inputs, layout, dropout)
        probabilities.append(found)
        return vectors

    def _heads(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors.unflatten(-1, (self.num_heads, self.head_size)).transpose(1, 2)


class LineageXLNetFeedForward(nn.Module):
    """Two linear layers with their residual and LayerNorm."""

    def __init__(self, config: LineageXLNetConfig):
        super().__init__()
        self.layer_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.layer_1 = nn.Linear(config.d_model, config.d_inner)
        self.layer_2 = nn.Linear(config.d_inner, config.d_model)
        self.activation = activation(config.ff_activation)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Runs the block on `(batch, tokens, d_model)` vectors."""
        inner = self.dropout(self.activation(project(self.layer_1, hidden_states)))
        return self.layer_norm(self.dropout(project(self.layer_2, inner)) + hidden_states)


class LineageXLNetLayer(GradientCheckpointingLayer):
    """Attention and feed-forward block, on both streams."""

    def __init__(self, config: LineageXLNetConfig, layer_index: int):
        super().__init__()
        self.rel_attn = LineageXLNetRelativeAttention(config, layer_index)
        self.ff = LineageXLNetFeedForward(config)

    def forward(
        self,
        content: torch.Tensor,
        query: torch.Tensor | None,
        memory: torch.Tensor | None,
        context: LayerContext,
        last: bool = False,
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, tuple[torch.Tensor, ...]]:
        """Runs the layer on the arguments of `LineageXLNetRelativeAttention`.

        Returns:
            The two streams, `None` where there is none, and the probabilities of those that ran, if they are eager.
        """
        hidden_states, lengths, probabilities = self.rel_attn(content, query, memory, context, last)
        streams = self.ff(hidden_states).split(lengths, 1)
        if query is None:
            return streams[0], None, probabilities
        return None if last else streams[0], streams[-1], probabilities


def _joined(streams: list[torch.Tensor]) -> torch.Tensor:
    return streams[0] if len(streams) == 1 else torch.cat(streams, 1)


def activation(name: str) -> nn.Module:
    """The activation of that name; the tanh approximation of gelu as one kernel.

    Raises:
        ValueError: If there is none.
    """
    if name not in ACT2FN:
        raise ValueError(f"ff_activation must be one of {', '.join(sorted(ACT2FN))}, got {name!r}")
    return nn.GELU(approximate="tanh") if name == "gelu_new" else ACT2FN[name]


__all__ = [
    "LayerContext",
    "LineageXLNetFeedForward",
    "LineageXLNetLayer",
    "LineageXLNetRelativeAttention",
    "activation",
]
