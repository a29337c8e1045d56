"""What ELMo's models refuse to read, before any work is done on it."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch

from .configuration_elmo import ElmoConfig


def refuses_foreign_arguments(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a `forward` be called with arguments that ELMo has no use for, as long as they ask for nothing.

    PEFT hands `inputs_embeds=None` and `output_attentions=None` to every model.

    Raises:
        ValueError: If such an argument asks for something.
    """

    @wraps(forward)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.pop("inputs_embeds", None) is not None:
            raise ValueError("ELMo reads characters: give input_ids, there are no inputs_embeds")
        if kwargs.pop("output_attentions", None):
            raise ValueError("ELMo has no attention, so that output_attentions must be None or False")
        return forward(self, *args, **kwargs)

    return checked


def check_input_ids(input_ids: torch.Tensor, config: ElmoConfig) -> None:
    """Raises a `ValueError` unless the ids are what `ElmoModel` reads."""
    if not isinstance(input_ids, torch.Tensor) or input_ids.dim() != 3:
        given = tuple(input_ids.shape) if isinstance(input_ids, torch.Tensor) else type(input_ids).__name__
        raise ValueError(
            f"input_ids must be a tensor of 3 dimensions (batch, tokens, characters), got {given}; is the "
            "tokenizer this model's?"
        )
    if input_ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"input_ids must be int64 or int32, got {input_ids.dtype}")
    if input_ids.shape[-1] != config.token_row_size:
        word = " and a word" if config.word_vocab_size else ""
        raise ValueError(
            f"input_ids must have max_characters_per_token={config.max_characters_per_token} characters{word} a "
            f"token, got {input_ids.shape[-1]} (shape {tuple(input_ids.shape)})"
        )
    if torch.compiler.is_compiling():
        return  # what follows reads sizes and values that are not known yet
    if input_ids.numel() == 0:
        raise ValueError(f"input_ids must hold at least one row of at least one token, got {tuple(input_ids.shape)}")
    _check_range(input_ids[..., : config.max_characters_per_token], "char_vocab_size", config.char_vocab_size)
    if config.word_vocab_size:
        _check_range(input_ids[..., -1], "word_vocab_size", config.word_vocab_size)


def _check_range(ids: torch.Tensor, name: str, size: int) -> None:
    smallest, largest = (int(value) for value in torch.aminmax(ids))
    if smallest < 0 or largest >= size:
        raise ValueError(f"input_ids must be in [0, {name}={size}), got {smallest}..{largest}")


def check_token_mask(name: str, values: torch.Tensor | None, input_ids: torch.Tensor) -> None:
    """Raises a `ValueError` unless there is one value a token."""
    if values is not None:
        check_shape(name, values, input_ids.shape[:2], "one value a token")


def check_token_type_ids(token_type_ids: torch.Tensor | None, input_ids: torch.Tensor) -> None:
    """Raises a `ValueError` unless each token is of the first (0) or the second sentence (1)."""
    check_token_mask("token_type_ids", token_type_ids, input_ids)
    if token_type_ids is None or torch.compiler.is_compiling():
        return
    wrong = token_type_ids[(token_type_ids != 0) & (token_type_ids != 1)]
    if wrong.numel():
        raise ValueError(f"token_type_ids must be 0 or 1, got {wrong[0].item()}")


def check_states(states: torch.Tensor, shape: tuple[int, ...]) -> None:
    """Raises a `ValueError` unless states are floats of that shape."""
    check_shape("initial_states", states, shape, "(batch, layers, directions, output and cell)")
    if not states.is_floating_point():
        raise ValueError(f"initial_states must be floating point, got {states.dtype}")


def check_shape(name: str, values: torch.Tensor, shape: Sequence[int], what: str) -> None:
    """Raises a `ValueError` unless an argument is a tensor of that shape."""
    given = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
    if given != tuple(shape):
        raise ValueError(f"{name} must be a tensor of shape {tuple(shape)} ({what}), got {given}")


def check_classification_labels(labels: torch.Tensor, config: ElmoConfig, batch_size: int) -> None:
    """Raises a `ValueError` unless labels of sentences fit `num_labels` and `problem_type`."""
    if not isinstance(labels, torch.Tensor):
        raise ValueError(f"labels must be a tensor, got {type(labels).__name__}")
    problem = config.problem_type
    if problem is None:  # transformers' own rule, in `ForSequenceClassificationLoss`
        integers = labels.dtype in (torch.int64, torch.int32)
        single = "single_label_classification" if integers else "multi_label_classification"
        problem = "regression" if config.num_labels == 1 else single
    if problem == "single_label_classification":
        check_shape("labels", labels, (batch_size,), "one class a row")
        check_labels(labels, config.num_labels, "num_labels")
        return
    if problem == "regression" and config.num_labels == 1 and labels.dim() < 2:
        check_shape("labels", labels, (batch_size,), "one number a row")
    else:
        check_shape("labels", labels, (batch_size, config.num_labels), "num_labels numbers a row")
    if not labels.is_floating_point():
        raise ValueError(f"labels must be floating point for problem_type={problem!r}, got {labels.dtype}")


def check_positions(name: str, positions: torch.Tensor, batch_size: int) -> None:
    """Raises a `ValueError` unless there is one position a row, an integer of at least 0."""
    if isinstance(positions, torch.Tensor) and positions.dim() == 2 and positions.shape[1] == 1:
        positions = positions[:, 0]
    check_shape(name, positions, (batch_size,), "one position a row")
    if positions.is_floating_point():
        raise ValueError(f"{name} must be integers, got {positions.dtype}")
    if not torch.compiler.is_compiling() and int(positions.min()) < 0:
        raise ValueError(f"{name} must be 0 or more, got {int(positions.min())}")


def check_labels(labels: torch.Tensor, num_classes: int, what: str) -> None:
    """Raises a `ValueError` unless all labels are -100 or in `[0, num_classes)`."""
    if labels.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"labels must be int64 or int32, got {labels.dtype}")
    if torch.compiler.is_compiling():
        return
    wrong = labels[((labels < 0) & (labels != -100)) | (labels >= num_classes)]
    if wrong.numel():
        raise ValueError(f"labels must be -100 or in [0, {num_classes}) ({what}), got {int(wrong[0])}")


def check_no_kept_boundaries(config: ElmoConfig, name: str) -> None:
    """Raises a `ValueError` if the outputs would be longer than the inputs."""
    if config.keep_sentence_boundaries:
        raise ValueError(
            f"keep_sentence_boundaries=True is for ElmoModel; {name} needs one vector for each input token"
        )


__all__ = [
    "check_classification_labels",
    "check_input_ids",
    "check_labels",
    "check_no_kept_boundaries",
    "check_positions",
    "check_shape",
    "check_states",
    "check_token_mask",
    "check_token_type_ids",
    "refuses_foreign_arguments",
]
