"""Attention with relative positions and relative segments.

Yang et al. 2019, "XLNet: Generalized Autoregressive Pretraining for Language Understanding"
(https://arxiv.org/abs/1906.08237), sections 2.4 and 2.5; the position term is Transformer-XL's (Dai et al. 2019,
https://arxiv.org/abs/1901.02860, section 3.3).

The score of query `i` for key `j` is

    scale * ((q_i + content_bias) k_j + (q_i + position_bias) R[p_i - p_j] + (q_i + segment_bias) s[seg_i != seg_j])

and a query that sees no key has the vector zero.

`relative_attention_reference` spells this out. `relative_attention` gives the same through
`scaled_dot_product_attention`, in blocks of queries: the positions that a block needs are a window of the table, and
where there are several blocks neither the scores nor the probabilities of all queries exist at once. The backward pass
computes them again then.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F

# Queries at once. A block's position scores are as wide as the keys and the block, so that small blocks compute little
# that no query needs; up to `WHOLE` queries that is less than what larger matrix products gain.
BLOCK = 64
WHOLE = 128


@dataclass(frozen=True)
class RelativeLayout:
    """Which keys each query sees, and how far away and in which segment they are.

    Queries stand at positions of a sequence of `tokens` tokens, which a memory of `keys - tokens` tokens precedes.

    Args:
        tokens: Length of the sequence.
        visible: `(batch, 1 or heads, queries, keys)` bool, true where a key is seen; `None` if all are.
        other_segment: `(batch, 1, queries, keys)` bool, true where a key is of another segment; `None` without
            segments.
        positions: `(batch, queries)` int64, where in the sequence each query stands; `None` if the queries are its
            tokens, one by one.
    """

    tokens: int
    visible: torch.Tensor | None = None
    other_segment: torch.Tensor | None = None
    positions: torch.Tensor | None = None

    @cached_property
    def hidden(self) -> torch.Tensor | None:
        """The opposite of `visible`."""
        return None if self.visible is None else ~self.visible

    @cached_property
    def blind(self) -> torch.Tensor | None:
        """`(batch, 1 or heads, queries, 1)` bool, true where a query sees no key; `None` if none is known to."""
        if self.visible is None:
            return None
        blind = ~self.visible.any(-1, keepdim=True)
        is_cheap_to_ask = blind.device.type == "cpu" and not torch.jit.is_tracing()
        return None if is_cheap_to_ask and not blind.any() else blind

    def rows(self, start: int, stop: int) -> "RelativeLayout":
        """The layout of the queries from `start` to `stop` alone."""
        return replace(
            self,
            visible=None if self.visible is None else self.visible[:, :, start:stop],
            other_segment=None if self.other_segment is None else self.other_segment[:, :, start:stop],
            positions=None if self.positions is None else self.positions[:, start:stop],
        )


@dataclass(frozen=True)
class RelativeInputs:
    """What the scores are computed from.

    Args:
        content_query: `(batch, heads, queries, head size)`, queries with the content bias.
        position_query: The same with the position bias.
        segment_scores: `(batch, heads, queries, 2)`, scores of the same and of another segment; `None` without
            segments.
        key, value: `(batch, heads, keys, head size)`.
        relative_key: `(1 or batch, heads, keys + tokens, head size)`; row `r` is of a key that is `keys - r` tokens
            before the query.
    """

    content_query: torch.Tensor
    position_query: torch.Tensor
    segment_scores: torch.Tensor | None
    key: torch.Tensor
    value: torch.Tensor
    relative_key: torch.Tensor


def relative_attention_reference(
    inputs: RelativeInputs, layout: RelativeLayout, dropout: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """The equations one by one.

    Returns:
        The `(batch, heads, queries, head size)` vectors and the `(batch, heads, queries, keys)` probabilities.
    """
    scale = inputs.content_query.shape[-1] ** -0.5
    scores = (inputs.content_query @ inputs.key.transpose(-1, -2) + relative_bias(inputs, layout)) * scale
    if layout.visible is not None:
        scores = scores.masked_fill(~layout.visible, torch.finfo(scores.dtype).min)
    probabilities = _softmax(scores)
    if layout.visible is not None:
        probabilities = probabilities * layout.visible.any(-1, keepdim=True)
    return F.dropout(probabilities, dropout) @ inputs.value, probabilities


def relative_bias(inputs: RelativeInputs, layout: RelativeLayout) -> torch.Tensor:
    """`(batch, heads, queries, keys)`, the position and the segment term, before the scale."""
    scores = inputs.position_query @ inputs.relative_key.transpose(-1, -2)
    keys = inputs.key.shape[2]
    if layout.positions is None:
        bias = _shifted(scores, keys)
    else:
        bias = scores.gather(-1, _window(layout.positions, layout.tokens, keys).expand(*scores.shape[:3], -1))
    if inputs.segment_scores is None or layout.other_segment is None:
        return bias
    same, other = inputs.segment_scores.split(1, -1)
    return bias + torch.where(layout.other_segment, other, same)


def _shifted(scores: torch.Tensor, keys: int) -> torch.Tensor:
    """Moves row `i` of `(batch, heads, tokens, keys + tokens)` scores `tokens - i` places left, by views alone."""
    batch, heads, tokens, relative = scores.shape
    flat = scores.reshape(batch, heads, tokens * relative)[..., tokens:]
    return flat.reshape(batch, heads, tokens, relative - 1)[..., :keys]


def _window(positions: torch.Tensor, tokens: int, keys: int) -> torch.Tensor:
    """`(batch, 1, queries, keys)` int64, the row of the relative keys for each query and key."""
    first = tokens - positions
    return (first[..., None] + torch.arange(keys, device=first.device))[:, None]


def relative_attention(inputs: RelativeInputs, layout: RelativeLayout, dropout: float = 0.0) -> torch.Tensor:
    """The `(batch, heads, queries, head size)` vectors of `relative_attention_reference`."""
    if torch.compiler.is_compiling():
        bias = relative_bias(inputs, layout) * _scale(inputs)
        if layout.visible is not None:
            bias = bias.masked_fill(~layout.visible, _lowest(bias.dtype))
        output = F.scaled_dot_product_attention(
            inputs.content_query, inputs.key, inputs.value, attn_mask=bias, dropout_p=dropout, scale=_scale(inputs)
        )
        return output if layout.visible is None else output.masked_fill(~layout.visible.any(-1, keepdim=True), 0)
    # one number of torch's generator stands for all that is dropped, so that the backward pass can draw it again
    seed = int(torch.randint(2**31, ())) if dropout else 0
    return _RelativeAttention.apply(*_fields(inputs), layout, dropout, seed)


def _fields(inputs: RelativeInputs) -> tuple[torch.Tensor | None, ...]:
    return (
        inputs.content_query,
        inputs.position_query,
        inputs.segment_scores,
        inputs.key,
        inputs.value,
        inputs.relative_key,
    )


def _scale(inputs: RelativeInputs) -> float:
    return inputs.content_query.shape[-1] ** -0.5


def _lowest(dtype: torch.dtype) -> float:
    # half the smallest number: the score of the content is added to it, and the sum must be finite
    return torch.finfo(dtype).min / 2


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    """In float32 where the scores are of half precision."""
    precise = torch.promote_types(scores.dtype, torch.float32)
    return scores.softmax(-1, dtype=precise).to(scores.dtype)


class _Block:
    """Some of the queries, with the window of relative keys that they need."""

    def __init__(self, inputs: RelativeInputs, layout: RelativeLayout, start: int, stop: int):
        self.rows = slice(start, stop)
        self.layout = layout.rows(start, stop)
        # once for all layers, which share the layout
        self.hidden = None if layout.hidden is None else layout.hidden[:, :, self.rows]
        self.blind = None if layout.blind is None else layout.blind[:, :, self.rows]
        self.keys = inputs.key.shape[2]
        self.scale = _scale(inputs)
        segments = inputs.segment_scores
        # keys + rows - 1 distances for consecutive tokens, all of them for queries anywhere
        if self.layout.positions is None:
            self.window = slice(layout.tokens - stop + 1, layout.tokens - start + self.keys)
            self.window_index = None
        else:
            self.window = slice(0, inputs.relative_key.shape[2])
            self.window_index = _window(self.layout.positions, layout.tokens, self.keys)
        self.inputs = RelativeInputs(
            inputs.content_query[:, :, self.rows],
            inputs.position_query[:, :, self.rows],
            None if segments is None else segments[:, :, self.rows],
            inputs.key,
            inputs.value,
            inputs.relative_key[:, :, self.window],
        )

    def bias(self) -> torch.Tensor:
        """The position and the segment term of these queries, scaled, and what hides the keys that are not seen.

        Less a number for each query, the score of its own segment, which the softmax does not notice.
        """
        scores = _products(self.inputs.position_query * self.scale, self.inputs.relative_key)
        if self.window_index is None:
            bias = self._in_place(scores)
        else:
            bias = scores.gather(-1, self.window_index.expand(*scores.shape[:3], -1))
        if self.inputs.segment_scores is not None and self.layout.other_segment is not None:
            same, other = (self.inputs.segment_scores * self.scale).split(1, -1)
            bias.addcmul_(self.layout.other_segment.to(bias.dtype), other - same)
        if self.hidden is not None:
            bias.masked_fill_(self.hidden, _lowest(bias.dtype))
        return bias

    def attend(self) -> torch.Tensor:
        """The vectors of these queries, without dropout."""
        inputs = self.inputs
        return self.without_blind(
            F.scaled_dot_product_attention(
                inputs.content_query, inputs.key, inputs.value, attn_mask=self.bias(), scale=self.scale
            )
        )

    def without_blind(self, vectors: torch.Tensor) -> torch.Tensor:
        """The same with zeros for queries that see nothing."""
        return vectors if self.blind is None else vectors.masked_fill(self.blind, 0)

    def probabilities(self) -> torch.Tensor:
        """Those of these queries, before dropout."""
        content = self.inputs.content_query @ self.inputs.key.transpose(-1, -2)
        return _softmax(content.mul_(self.scale).add_(self.bias()))

    def position_gradients(self, bias_gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The gradients of the position queries and of the window of relative keys, from that of the bias."""
        relative_key = self.inputs.relative_key
        shape = (*bias_gradient.shape[:3], relative_key.shape[2])
        gradient = bias_gradient.new_zeros(shape)
        if self.window_index is None:
            self._in_place(gradient).copy_(bias_gradient)
        else:
            gradient.scatter_(-1, self.window_index.expand_as(bias_gradient), bias_gradient)
        if len(relative_key) == len(gradient):
            return gradient @ relative_key, gradient.transpose(-1, -2) @ self.inputs.position_query
        by_head, queries = (_by_head(values) for values in (gradient, self.inputs.position_query))
        d_query = (by_head @ relative_key[0]).unflatten(1, (shape[0], shape[2])).transpose(0, 1)
        return d_query, (by_head.transpose(-1, -2) @ queries)[None]

    def _in_place(self, scores: torch.Tensor) -> torch.Tensor:
        """A view of consecutive queries' scores in which column `j` is key `j`."""
        batch, heads, rows, window = scores.shape
        strides = (*scores.stride()[:2], window - 1, 1)
        return scores.as_strided((batch, heads, rows, self.keys), strides, rows - 1)


def _by_head(values: torch.Tensor) -> torch.Tensor:
    """`(batch, heads, rows, width)` -> `(heads, batch * rows, width)`."""
    return values.transpose(0, 1).flatten(1, 2)


def _products(queries: torch.Tensor, relative_key: torch.Tensor) -> torch.Tensor:
    """`(batch, heads, rows, window)` products, in one matrix product a head where all rows have the same keys."""
    if len(relative_key) == len(queries):
        return queries @ relative_key.transpose(-1, -2)
    products = _by_head(queries) @ relative_key[0].transpose(-1, -2)
    return products.unflatten(1, (queries.shape[0], queries.shape[2])).transpose(0, 1)


class _RelativeAttention(torch.autograd.Function):
    """`relative_attention` block by block.

    The backward pass needs the probabilities: those of a single block are kept, those of several computed again.
    """

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> torch.Tensor:
        *fields, layout, dropout, seed = arguments
        inputs = RelativeInputs(*fields)
        blocks = _blocks(inputs, layout)
        generator = _generator(inputs.key.device, seed)
        kept_probabilities = blocks[0].probabilities() if len(blocks) == 1 and any(ctx.needs_input_grad) else None
        if len(blocks) == 1:
            output = _attended(blocks[0], kept_probabilities, dropout, generator)
        else:
            output = torch.empty_like(inputs.content_query)
            for block in blocks:
                output[:, :, block.rows] = _attended(block, None, dropout, generator)
        ctx.save_for_backward(*fields, output, kept_probabilities)
        ctx.layout, ctx.dropout, ctx.seed = layout, dropout, seed
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        *fields, output, kept_probabilities = ctx.saved_tensors
        inputs = RelativeInputs(*fields)
        d_content, d_position = torch.empty_like(fields[0]), torch.empty_like(fields[1])
        d_segments = None if fields[2] is None else torch.zeros_like(fields[2])
        d_key = d_value = None
        d_relative = torch.zeros_like(inputs.relative_key)
        generator = _generator(output.device, ctx.seed)
        for block in _blocks(inputs, ctx.layout):
            rows = block.rows
            gradient = block.without_blind(gradients[0][:, :, rows])
            probabilities = block.probabilities() if kept_probabilities is None else kept_probabilities
            kept = _kept(block, ctx.dropout, generator) if ctx.dropout else None
            dropped = probabilities if kept is None else probabilities * kept
            d_value = _sum(d_value, dropped.transpose(-1, -2) @ gradient)
            d_probabilities = gradient @ inputs.value.transpose(-1, -2)
            if kept is not None:
                d_probabilities *= kept
            # softmax: dS = P * (dP - sum(dP * P)), and the sum is the product of the output and its gradient
            d_probabilities -= (gradient * output[:, :, rows]).sum(-1, keepdim=True)
            d_scores = d_probabilities.mul_(probabilities).mul_(block.scale)
            d_content[:, :, rows] = d_scores @ inputs.key
            d_key = _sum(d_key, d_scores.transpose(-1, -2) @ block.inputs.content_query)
            if d_segments is not None and block.layout.other_segment is not None:
                other = (d_scores * block.layout.other_segment).sum(-1)
                # a row of dS sums to zero
                d_segments[:, :, rows] = torch.stack([-other, other], -1)
            d_position[:, :, rows], d_window = block.position_gradients(d_scores)
            d_relative[:, :, block.window] += d_window
        return d_content, d_position, d_segments, d_key, d_value, d_relative, None, None, None


def _attended(
    block: _Block, probabilities: torch.Tensor | None, dropout: float, generator: torch.Generator
) -> torch.Tensor:
    """The vectors of a block's queries, from its probabilities where there are any or dropout asks for them."""
    if probabilities is None and not dropout:
        return block.attend()
    probabilities = block.probabilities() if probabilities is None else probabilities
    dropped = probabilities * _kept(block, dropout, generator) if dropout else probabilities
    return block.without_blind(dropped @ block.inputs.value)


def _sum(total: torch.Tensor | None, part: torch.Tensor) -> torch.Tensor:
    return part if total is None else total.add_(part)


def _blocks(inputs: RelativeInputs, layout: RelativeLayout) -> list[_Block]:
    queries = inputs.content_query.shape[2]
    size = BLOCK if queries > WHOLE else WHOLE
    return [_Block(inputs, layout, start, min(start + size, queries)) for start in range(0, queries, size)]


def _generator(device: torch.device, seed: int) -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def _kept(block: _Block, dropout: float, generator: torch.Generator) -> torch.Tensor:
    """Zero where a probability is dropped, else what makes up for it."""
    query = block.inputs.content_query
    kept = torch.empty(*query.shape[:3], block.keys, device=query.device, dtype=query.dtype)
    return kept.bernoulli_(1 - dropout, generator=generator).div_(1 - dropout)


__all__ = [
    "RelativeInputs",
    "RelativeLayout",
    "relative_attention",
    "relative_attention_reference",
    "relative_bias",
]
