"""The weighted sum of a biLM's layers (Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 3.2)."""

from collections.abc import Sequence

import torch
from torch import nn

from .configuration_elmo import ElmoConfig
from .packing_elmo import PackedSequences


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
            layers = [
                ((layer.float() - mean) / deviation).to(layer.dtype)
                for layer, (mean, deviation) in zip(layers, statistics, strict=True)
            ]
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
    kept = mask[..., None].float()  # half precision could neither count the elements nor hold the epsilon
    statistics = []
    for layer in (layer.float() for layer in layers):
        count = (kept.sum() * layer.shape[-1]).clamp(min=1)
        mean = (layer * kept).sum() / count
        variance = (((layer - mean) * kept) ** 2).sum() / count
        statistics.append((mean, torch.sqrt(variance + epsilon)))
    return statistics


__all__ = ["ElmoScalarMix", "layer_statistics"]
