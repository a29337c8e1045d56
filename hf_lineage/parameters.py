"""What a model consists of: its parameters by part, and the blocks that its layers share."""

from collections.abc import Iterator
from itertools import groupby

import torch
import transformers
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel


def network_without_weights(config: PreTrainedConfig) -> PreTrainedModel:
    """Returns the model that a configuration was saved with, or its base model, with sizes and without numbers."""
    import hf_lineage

    (name,) = (config.architectures or [])[:1] or [None]
    found = [getattr(module, name) for module in (hf_lineage, transformers) if name and hasattr(module, name)]
    model_class = found[0] if found else transformers.MODEL_MAPPING[type(config)]
    with torch.device("meta"):
        return model_class._from_config(config)


def layer_runs(config: PreTrainedConfig) -> list[tuple[str, int, int]]:
    """Returns which layers use which blocks: runs of layers (`"0-2"`), their attention and feed-forward block.

    Of a model whose layers cannot share blocks there are none.
    """
    runs = []
    for (attention, ffn), run in groupby(enumerate(getattr(config, "layer_blocks", ())), key=lambda item: item[1]):
        layers = [layer for layer, _ in run]
        name = str(layers[0]) if len(layers) == 1 else f"{layers[0]}-{layers[-1]}"
        runs.append((name, attention, ffn))
    return runs


def parameters_by_part(network: PreTrainedModel) -> dict[str, int]:
    """Returns the number of parameters of each part of a model, the parts of its base model among them.

    Parameters that several parts share count in the first of them; parts without any of their own are left out.
    """
    seen: set[int] = set()
    counts: dict[str, int] = {}
    for name, parameters in _parts(network):
        own = {id(parameter): parameter.numel() for parameter in parameters if id(parameter) not in seen}
        seen.update(own)
        if own:
            counts[name] = counts.get(name, 0) + sum(own.values())
    return counts


def _parts(network: nn.Module, base: nn.Module | None = None) -> Iterator[tuple[str, list[nn.Parameter]]]:
    base = getattr(network, "base_model", None) if base is None else base
    for name, part in network.named_children():
        if part is base:
            yield from _parts(part, base)
        else:
            yield name, list(part.parameters())
    for name, parameter in network.named_parameters(recurse=False):
        yield name, [parameter]


__all__ = ["layer_runs", "network_without_weights", "parameters_by_part"]
