"""The masked-language-model head and the losses."""

import torch
import torch.nn.functional as F
from torch import nn

from .configuration_albert import LineageAlbertConfig
from .layers_albert import activation

IGNORED = -100  # a label that is not predicted


class LineageAlbertPredictionHead(nn.Module):
    """Scores of the vocabulary: down to the width of the embeddings, then the word table."""

    def __init__(self, config: LineageAlbertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)
        self.activation = activation(config.hidden_act)
        self.layer_norm = nn.LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(config.embedding_size, config.vocab_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))  # the decoder's; transformers ties and resizes both

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """`(..., hidden_size)` -> `(..., vocab_size)`."""
        return self.decoder(self.layer_norm(self.activation(self.dense(hidden_states))))


def prediction_loss(
    logits: torch.Tensor, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None
) -> torch.Tensor:
    """Cross-entropy in nats a predicted position, 0 where nothing is predicted.

    Args:
        logits: `(..., vocab_size)`.
        labels: `(...)` int64; -100 is not predicted.
        num_items_in_batch: What to divide the sum by, in place of the number of predicted positions; at least 1 is
            taken.
    """
    logits, targets = logits.flatten(0, -2).float(), labels.flatten().long()
    total = F.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")
    count = (labels != IGNORED).sum() if num_items_in_batch is None else torch.as_tensor(num_items_in_batch)
    return total / count.to(total.device).clamp(min=1)


def span_loss(start_logits: torch.Tensor, end_logits: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor):
    """Mean cross-entropy of the first and the last token of an answer.

    Positions behind the last token, of answers that were cut off, are not counted.
    """
    length = start_logits.shape[1]
    losses = []
    for logits, positions in ((start_logits, starts), (end_logits, ends)):
        positions = positions[:, 0] if positions.dim() > 1 else positions
        losses.append(prediction_loss(logits, torch.where(positions < length, positions, IGNORED)))
    return (losses[0] + losses[1]) / 2


__all__ = ["IGNORED", "LineageAlbertPredictionHead", "prediction_loss", "span_loss"]
