"""Which of an encoder's layers are wanted."""

from collections.abc import Sequence

import torch

LAYERS = ("all", "top", "average", "mix")


def check_layers(layers: str) -> None:
    """Checks the name of a choice of layers.

    Raises:
        ValueError: If it is none.
    """
    if layers not in LAYERS:
        raise ValueError(f"layers must be one of {', '.join(LAYERS)}, got {layers!r}")


def selected_layers(layers: Sequence[torch.Tensor], choice: str) -> torch.Tensor:
    """Returns of `(batch, tokens, hidden_size)` layers the top or their average, or all, `(batch, layers, ...)`."""
    if choice == "top":
        return layers[-1]
    stacked = torch.stack(tuple(layers), 1)
    return stacked if choice == "all" else stacked.mean(1)


__all__ = ["LAYERS", "check_layers", "selected_layers"]
