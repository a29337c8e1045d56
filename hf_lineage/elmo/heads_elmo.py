"""How ELMo's token vectors become the vector of a sentence or a pair, and its class; losses of the models."""

import torch
from torch import nn

from .configuration_elmo import ElmoConfig


class ElmoClassificationHead(nn.Module):
    """One vector of a sentence or a pair, then a classifier.

    Args:
        config: The configuration.
        num_outputs: What it tells.
        feature_size: Width of a token's vector; `None` for `hidden_size`.
    """

    def __init__(self, config: ElmoConfig, num_outputs: int, feature_size: int | None = None):
        super().__init__()
        self.pooling = config.classifier_pooling
        self.separate = config.pair_encoding == "separate"
        size = (feature_size or config.hidden_size) * (4 if self.separate else 1)
        self.dropout = nn.Dropout(config.classifier_dropout)
        hidden_size = config.classifier_hidden_size
        self.dense = nn.Linear(size, hidden_size) if hidden_size else None
        self.out_proj = nn.Linear(hidden_size or size, num_outputs)

    def forward(
        self, hidden_states: torch.Tensor, mask: torch.Tensor, token_type_ids: torch.Tensor | None
    ) -> torch.Tensor:
        """Classifies `(batch, tokens, hidden_size)` vectors; the mask and the token types are `(batch, tokens)`."""
        mask = mask.bool()
        if self.separate:
            second = torch.zeros_like(mask) if token_type_ids is None else token_type_ids != 0
            u, v = self._pooled(hidden_states, mask & ~second), self._pooled(hidden_states, mask & second)
            features = torch.cat([u, v, (u - v).abs(), u * v], -1)
        else:
            features = self._pooled(hidden_states, mask)
        features = self.dropout(features)
        if self.dense is not None:
            features = self.dropout(torch.relu(self.dense(features)))
        return self.out_proj(features)

    def _pooled(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """One `(batch, hidden_size)` vector of the tokens under the mask, zero if there are none."""
        some = mask.any(1)[:, None]
        if self.pooling == "mean":
            pooled = (hidden_states * mask[..., None]).sum(1) / mask.sum(1).clamp(min=1)[:, None]
        elif self.pooling == "max":
            pooled = hidden_states.masked_fill(~mask[..., None], torch.finfo(hidden_states.dtype).min).amax(1)
        else:
            steps = torch.arange(mask.shape[1], device=mask.device)
            first = torch.where(mask, steps, mask.shape[1] - 1).amin(1)
            last = torch.where(mask, steps, 0).amax(1)
            rows = torch.arange(mask.shape[0], device=mask.device)
            ahead, back = hidden_states.chunk(2, -1)
            pooled = torch.cat([ahead[rows, last], back[rows, first]], -1)
        return torch.where(some, pooled, 0)


def mean_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over the labels that are not -100; 0 if there are none."""
    total = nn.functional.cross_entropy(
        logits.flatten(0, -2).float(), labels.flatten(), ignore_index=-100, reduction="sum"
    )
    return total / (labels != -100).sum().clamp(min=1)


def position_loss(logits: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of `(batch, tokens)` scores of places; those behind the text do not count."""
    positions = positions.reshape(-1)
    tokens = logits.shape[1]
    return mean_cross_entropy(logits, torch.where(positions < tokens, positions, -100))


__all__ = ["ElmoClassificationHead", "mean_cross_entropy", "position_loss"]
