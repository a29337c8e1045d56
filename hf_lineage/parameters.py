"""How many parameters a model has, and where."""

from collections.abc import Iterator

from torch import nn
from transformers import PreTrainedModel


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


__all__ = ["parameters_by_part"]
