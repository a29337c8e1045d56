"""The blocks that layers are made of."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import nn
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .configuration_albert import LineageAlbertConfig
from .packing_albert import PackedSequences

# Names of `ACT2FN` that torch computes in one kernel; transformers spells "gelu_new" out in eight
_FUSED_ACTIVATIONS = {
    "gelu": {},
    "gelu_python": {},
    "gelu_new": {"approximate": "tanh"},
    "gelu_pytorch_tanh": {"approximate": "tanh"},
}


# Tokens, in the mean, from which on a call for each sequence costs less than padding them all
_LONG_SEQUENCE = 16


def activation(name: str) -> nn.Module:
    """The activation of that name.

    Raises:
        ValueError: If there is none.
    """
    if name in _FUSED_ACTIVATIONS:
        return nn.GELU(**_FUSED_ACTIVATIONS[name])
    if name not in ACT2FN:
        raise ValueError(f"hidden_act must be one of {', '.join(sorted(ACT2FN))}, got {name!r}")
    return ACT2FN[name]


def eager_attention_forward(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **kwargs,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention spelled out (Vaswani et al. 2017, equation 1); the reference of the fused implementations.

    Args:
        module: The attention block.
        query, key, value: `(batch, heads, tokens, head size)`.
        attention_mask: Broadcastable to `(batch, heads, tokens, tokens)`: bool, true where a key is seen, or float,
            added to the scores.
        scaling: Factor on the scores.
        dropout: Dropout on the probabilities.

    Returns:
        The `(batch, tokens, heads, head size)` output and the `(batch, heads, tokens, tokens)` probabilities.
    """
    scores = query @ key.transpose(-1, -2) * scaling
    if attention_mask is not None:
        if attention_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attention_mask, torch.finfo(scores.dtype).min)
        else:
            scores = scores + attention_mask
    probabilities = F.dropout(scores.softmax(-1), dropout, module.training)
    return (probabilities @ value).transpose(1, 2).contiguous(), probabilities


class LineageAlbertEmbeddings(nn.Module):
    """Sum of word, position and segment vectors, normalized: `(batch, tokens, embedding_size)`."""

    def __init__(self, config: LineageAlbertConfig):
        super().__init__()
        size = config.embedding_size
        self.word_embeddings = nn.Embedding(config.vocab_size, size, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, size)
        self.layer_norm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        inputs_embeds: torch.Tensor | None,
        token_type_ids: torch.Tensor,
        position_ids: torch.Tensor,
    ) -> torch.Tensor:
        """Embeds `(batch, tokens)` ids, or `(batch, tokens, embedding_size)` word vectors in their place."""
        words = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        embeddings = words + self.token_type_embeddings(token_type_ids) + self.position_embeddings(position_ids)
        return self.dropout(self.layer_norm(embeddings))


class LineageAlbertAttention(nn.Module):
    """Multi-head self-attention with its residual and LayerNorm."""

    is_causal = False

    def __init__(self, config: LineageAlbertConfig):
        super().__init__()
        self.config = config
        self.head_size = config.hidden_size // config.num_attention_heads
        self.scaling = self.head_size**-0.5
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.pre_norm = config.layer_norm_position == "pre"

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None,
        packed: PackedSequences | None = None,
        output_attentions: bool = False,
        kept: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Runs the block on `(batch, tokens, hidden_size)` vectors.

        Args:
            hidden_states: The vectors; of a packed row, `(1, tokens, hidden_size)`.
            attention_mask: The mask, in the form that the attention implementation reads.
            packed: Where the tokens of a packed row stand in the padded batch.
            output_attentions: Whether to compute the probabilities, which only the eager implementation does.
            kept: `(kept,)` int64, in rising order, the tokens, counted row by row, whose output is needed, at least
                one of each sequence; the output is then `(1, kept, hidden_size)`.

        Returns:
            The vectors and, if asked for, the `(batch, heads, tokens, tokens)` probabilities.
        """
        inputs = self.layer_norm(hidden_states) if self.pre_norm else hidden_states
        probabilities = None
        implementation = "eager" if output_attentions else self.config._attn_implementation
        if packed is not None and takes_one_by_one(packed, inputs, implementation):
            context = self._attend_one_by_one(inputs, packed, kept)
        else:
            vectors = [linear(inputs) for linear in (self.query, self.key, self.value)]
            if packed is not None:
                vectors = [*map(packed.pad, vectors)]
            context, probabilities = self._attend(vectors, attention_mask, implementation)
            context = _kept(context if packed is None else packed.pack(context), kept)
        hidden_states = _kept(hidden_states, kept)
        output = hidden_states + self.dropout(self.dense(context))
        return output if self.pre_norm else self.layer_norm(output), probabilities if output_attentions else None

    def _attend(
        self, vectors: Iterable[torch.Tensor], attention_mask: torch.Tensor | None, implementation: str
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Query, key and value vectors of `(batch, tokens, hidden_size)` -> as much, and the probabilities."""
        attention = ALL_ATTENTION_FUNCTIONS.get_interface(implementation, eager_attention_forward)
        context, probabilities = attention(
            self,
            *(values.unflatten(-1, (-1, self.head_size)).transpose(1, 2) for values in vectors),
            attention_mask,
            dropout=self.config.attention_probs_dropout_prob if self.training else 0.0,
            scaling=self.scaling,
        )
        return context.flatten(2), probabilities

    def _attend_one_by_one(
        self, inputs: torch.Tensor, packed: PackedSequences, kept: torch.Tensor | None
    ) -> torch.Tensor:
        """A call for each sequence of a packed row, with the queries of the kept tokens only."""
        queries = packed.split(self.query(_kept(inputs, kept)), kept)
        keys, values = (packed.split(linear(inputs)) for linear in (self.key, self.value))
        sequences = zip(queries, keys, values, strict=True)
        return torch.cat([self._attend(sequence, None, "sdpa")[0] for sequence in sequences], dim=1)


def takes_one_by_one(packed: PackedSequences | None, hidden_states: torch.Tensor, implementation: str) -> bool:
    """Whether the sequences of a packed row are attended to in as many calls, rather than padded in one.

    That spares the padding and its mask, and costs a call each: on a CPU it pays for all but short sequences. What is
    compiled or traced would hold the lengths of one batch.

    Args:
        packed: The sequences; `None` for a batch that is not packed, which is never taken so.
        hidden_states: Vectors on the device of the model.
        implementation: The attention implementation.
    """
    is_recorded = torch.compiler.is_compiling() or torch.jit.is_tracing()
    if packed is None or is_recorded or hidden_states.device.type != "cpu" or implementation != "sdpa":
        return False
    return len(packed.rows) >= _LONG_SEQUENCE * packed.batch_size


def _kept(vectors: torch.Tensor, kept: torch.Tensor | None) -> torch.Tensor:
    """`(batch, tokens, size)` -> `(1, kept, size)`, or all as they are if nothing is said of what is kept."""
    return vectors if kept is None else vectors.flatten(0, 1)[kept][None]


class LineageAlbertFeedForward(nn.Module):
    """Two linear layers with their residual and LayerNorm."""

    def __init__(self, config: LineageAlbertConfig):
        super().__init__()
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = activation(config.hidden_act)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size)
        self.layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.pre_norm = config.layer_norm_position == "pre"

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Runs the block on `(batch, tokens, hidden_size)` vectors."""
        inputs = self.layer_norm(hidden_states) if self.pre_norm else hidden_states
        output = self.down_proj(self.activation(self.up_proj(inputs)))
        # The order of the sum is transformers', so that equal weights give equal bits
        output = self.dropout(output) + hidden_states
        return output if self.pre_norm else self.layer_norm(output)


class LineageAlbertLayer(GradientCheckpointingLayer):
    """One layer: an attention block, then a feed-forward block.

    It has no weights of its own. The blocks, which other layers may use too, are the model's and come as arguments, so
    that each is stored once.
    """

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_block: LineageAlbertAttention,
        ffn_block: LineageAlbertFeedForward,
        attention_mask: torch.Tensor | None,
        packed: PackedSequences | None,
        output_attentions: bool,
        kept: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Runs the two blocks; arguments and result are those of `LineageAlbertAttention`."""
        hidden_states, probabilities = attention_block(hidden_states, attention_mask, packed, output_attentions, kept)
        return ffn_block(hidden_states), probabilities


__all__ = [
    "LineageAlbertAttention",
    "LineageAlbertEmbeddings",
    "LineageAlbertFeedForward",
    "LineageAlbertLayer",
    "activation",
    "eager_attention_forward",
    "takes_one_by_one",
]
