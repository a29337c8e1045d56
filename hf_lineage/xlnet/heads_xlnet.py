"""What stands on the models: a sequence's vector, the ends of an answer, losses."""

import torch
import torch.nn.functional as F
from torch import nn

from .configuration_xlnet import LineageXLNetConfig

IGNORED = -100  # a label that is not predicted


class LineageXLNetSequenceSummary(nn.Module):
    """One vector of a sequence, from its last real token as `summary_type` has it."""

    def __init__(self, config: LineageXLNetConfig):
        super().__init__()
        self.summary_type = config.summary_type
        self.summary = nn.Linear(config.d_model, config.d_model) if config.summary_use_proj else nn.Identity()
        self.activation = nn.Tanh() if config.summary_activation == "tanh" else nn.Identity()
        self.last_dropout = nn.Dropout(config.summary_last_dropout)

    def forward(self, hidden_states: torch.Tensor, real: torch.Tensor | None) -> torch.Tensor:
        """`(batch, tokens, d_model)` and the `(batch, tokens)` bool mask of real tokens -> `(batch, d_model)`."""
        return self.last_dropout(self.activation(self.summary(self._pooled(hidden_states, real))))

    def _pooled(self, hidden_states: torch.Tensor, real: torch.Tensor | None) -> torch.Tensor:
        if real is None:
            return {
                "last": hidden_states[:, -1],
                "first": hidden_states[:, 0],
                "mean": hidden_states.mean(1),
            }[self.summary_type]
        if self.summary_type == "mean":
            return (hidden_states * real[..., None]).sum(1) / real.sum(1).clamp(min=1)[:, None]
        index = last_tokens(real) if self.summary_type == "last" else real.int().argmax(1)
        return hidden_states[torch.arange(real.shape[0], device=real.device), index]


class LineageXLNetNextSentence(nn.Module):
    """Score of the second passage following the first and of not following it, from the sequence's vector."""

    def __init__(self, config: LineageXLNetConfig):
        super().__init__()
        self.sequence_summary = LineageXLNetSequenceSummary(config)
        self.classifier = nn.Linear(config.d_model, 2)

    def forward(self, hidden_states: torch.Tensor, real: torch.Tensor | None) -> torch.Tensor:
        """`(batch, tokens, d_model)` and the `(batch, tokens)` bool mask of real tokens -> `(batch, 2)`."""
        return self.classifier(self.sequence_summary(hidden_states, real))


class LineageXLNetStartLogits(nn.Module):
    """Score of each token as the first of an answer."""

    def __init__(self, config: LineageXLNetConfig):
        super().__init__()
        self.dense = nn.Linear(config.d_model, 1)

    def forward(self, hidden_states: torch.Tensor, p_mask: torch.Tensor | None = None) -> torch.Tensor:
        """`(..., d_model)` -> `(...)`; tokens where `p_mask` is not 0 cannot be one."""
        return without(self.dense(hidden_states).squeeze(-1), p_mask)


class LineageXLNetEndLogits(nn.Module):
    """Score of each token as the last of an answer that starts at a given one."""

    def __init__(self, config: LineageXLNetConfig):
        super().__init__()
        self.dense_0 = nn.Linear(2 * config.d_model, config.d_model)
        self.layer_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.dense_1 = nn.Linear(config.d_model, 1)

    def forward(
        self, hidden_states: torch.Tensor, start_states: torch.Tensor, p_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Vectors of tokens and of the first token, both `(..., d_model)` -> `(...)`."""
        inner = torch.tanh(self.dense_0(torch.cat([hidden_states, start_states], -1)))
        return without(self.dense_1(self.layer_norm(inner)).squeeze(-1), p_mask)


class LineageXLNetAnswerClass(nn.Module):
    """Score of a question having no answer in the text."""

    def __init__(self, config: LineageXLNetConfig):
        super().__init__()
        self.dense_0 = nn.Linear(2 * config.d_model, config.d_model)
        self.dense_1 = nn.Linear(config.d_model, 1, bias=False)

    def forward(self, start_states: torch.Tensor, cls_states: torch.Tensor) -> torch.Tensor:
        """Vectors of the answer's start and of the sequence, both `(batch, d_model)` -> `(batch,)`."""
        return self.dense_1(torch.tanh(self.dense_0(torch.cat([start_states, cls_states], -1)))).squeeze(-1)


def last_tokens(real: torch.Tensor) -> torch.Tensor:
    """`(batch,)` int64, the last real token of each row of a `(batch, tokens)` mask; 0 where there is none."""
    columns = torch.arange(real.shape[1], device=real.device)
    return torch.where(real, columns, 0).amax(1)


def rows_at(hidden_states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """The `(batch, ..., d_model)` vectors at `(batch, ...)` positions."""
    rows = torch.arange(len(positions), device=positions.device).view(-1, *[1] * (positions.dim() - 1))
    return hidden_states[rows, positions]


def without(logits: torch.Tensor, p_mask: torch.Tensor | None) -> torch.Tensor:
    """The same with the smallest number where a mask is not 0."""
    if p_mask is None:
        return logits
    return logits.masked_fill(p_mask != 0, torch.finfo(logits.dtype).min)


def token_loss(
    logits: torch.Tensor, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None
) -> torch.Tensor:
    """Cross-entropy in nats a label, 0 where there is none.

    Args:
        logits: `(..., classes)`.
        labels: `(...)` int64; -100 is not counted.
        num_items_in_batch: What to divide the sum by, in place of the number of labels.
    """
    total = F.cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    if num_items_in_batch is None:
        return total / (labels != IGNORED).sum().clamp(min=1)
    return total / num_items_in_batch


def span_loss(logits: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of `(batch,)` positions; those behind the last token are of answers that were cut off."""
    return token_loss(logits, torch.where(positions < logits.shape[1], positions, IGNORED))


__all__ = [
    "IGNORED",
    "LineageXLNetAnswerClass",
    "LineageXLNetEndLogits",
    "LineageXLNetNextSentence",
    "LineageXLNetSequenceSummary",
    "LineageXLNetStartLogits",
    "last_tokens",
    "rows_at",
    "span_loss",
    "token_loss",
    "without",
]
