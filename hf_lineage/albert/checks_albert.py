"""What the models refuse to read, before any work is done on it."""

import torch

from .configuration_albert import LineageAlbertConfig
from .heads_albert import IGNORED


def check_inputs(
    input_ids: torch.Tensor | None,
    inputs_embeds: torch.Tensor | None,
    config: LineageAlbertConfig,
) -> tuple[int, int]:
    """The number of rows and tokens.

    Raises:
        ValueError: Unless there is one kind of input, of a shape and range that the tables hold.
    """
    if (input_ids is None) == (inputs_embeds is None):
        raise ValueError("give exactly one of input_ids and inputs_embeds")
    name, values, dimensions = "input_ids", input_ids, "(batch, tokens)"
    if values is None:
        name, values, dimensions = "inputs_embeds", inputs_embeds, f"(batch, tokens, {config.embedding_size})"
    if not isinstance(values, torch.Tensor) or values.dim() != dimensions.count(",") + 1:
        given = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
        hint = "" if input_ids is None else "; is the tokenizer this model's?"
        raise ValueError(f"{name} must be a tensor {dimensions}, got {given}{hint}")
    if 0 in values.shape[:2]:
        raise ValueError(f"{name} must have at least one row and one token, got {tuple(values.shape)}")
    if inputs_embeds is not None and values.shape[-1] != config.embedding_size:
        raise ValueError(f"inputs_embeds must be {dimensions} (embedding_size), got {tuple(values.shape)}")
    if input_ids is not None:
        check_range(name, values, config.vocab_size, "vocab_size", "; is the tokenizer this model's?")
    return values.shape[0], values.shape[1]


def check_range(name: str, values: torch.Tensor, size: int, size_name: str, hint: str = "") -> None:
    """Raises a `ValueError` unless integers are in `[0, size)`; on a GPU they are not read, it would have to wait."""
    if values.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name} must be int64 or int32, got {values.dtype}")
    if torch.compiler.is_compiling() or values.device.type != "cpu" or values.numel() == 0:
        return
    smallest, largest = (int(value) for value in torch.aminmax(values))
    if smallest < 0 or largest >= size:
        raise ValueError(f"{name} must be in [0, {size_name}={size}), got {smallest}..{largest}{hint}")


def check_same_shape(name: str, values: torch.Tensor | None, shape: tuple[int, ...], what: str) -> None:
    """Raises a `ValueError` unless an argument is absent or a tensor of that shape."""
    if values is None:
        return
    given = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
    if given != tuple(shape):
        raise ValueError(f"{name} must be a tensor of shape {tuple(shape)} ({what}), got {given}")


def check_attention_mask(attention_mask: torch.Tensor | None, shape: tuple[int, int]) -> None:
    """Raises a `ValueError` unless a mask is absent, one value a token, or has four dimensions."""
    if attention_mask is not None and not (isinstance(attention_mask, torch.Tensor) and attention_mask.dim() == 4):
        check_same_shape("attention_mask", attention_mask, shape, "one value a token, or four dimensions")


def check_positions(name: str, positions: torch.Tensor, batch_size: int) -> None:
    """Raises a `ValueError` unless there is one position a row, an integer of at least 0."""
    if isinstance(positions, torch.Tensor) and positions.dim() == 2 and positions.shape[1] == 1:
        positions = positions[:, 0]
    check_same_shape(name, positions, (batch_size,), "one position a row")
    if positions.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name} must be int64 or int32, got {positions.dtype}")
    if torch.compiler.is_compiling() or positions.device.type != "cpu":
        return
    if int(positions.min()) < 0:
        raise ValueError(f"{name} must be 0 or more, got {int(positions.min())}")


def check_labels(name: str, labels: torch.Tensor, shape: tuple[int, ...], num_classes: int, what: str) -> None:
    """Raises a `ValueError` unless labels have that shape and are -100 or in `[0, num_classes)`."""
    check_same_shape(name, labels, shape, what)
    if labels.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name} must be int64 or int32, got {labels.dtype}")
    if torch.compiler.is_compiling() or labels.device.type != "cpu":
        return
    wrong = labels[((labels < 0) & (labels != IGNORED)) | (labels >= num_classes)]
    if wrong.numel():
        raise ValueError(f"{name} must be {IGNORED} or in [0, {num_classes}), got {int(wrong.flatten()[0])}")


__all__ = [
    "check_attention_mask",
    "check_inputs",
    "check_labels",
    "check_positions",
    "check_range",
    "check_same_shape",
]
