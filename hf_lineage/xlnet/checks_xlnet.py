"""What the models refuse to read, before any work is done on it."""

import torch


def check_input_ids(input_ids: torch.Tensor, vocab_size: int) -> None:
    """Raises a `ValueError` unless ids are `(batch, tokens)` integers in `[0, vocab_size)`.

    On a GPU and where the model is compiled they are not read: that would have to wait for them.
    """
    if not isinstance(input_ids, torch.Tensor) or input_ids.dim() != 2:
        given = tuple(input_ids.shape) if isinstance(input_ids, torch.Tensor) else type(input_ids).__name__
        raise ValueError(f"input_ids must be a tensor (batch, tokens), got {given}; is the tokenizer this model's?")
    if input_ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"input_ids must be int64 or int32, got {input_ids.dtype}")
    if torch.compiler.is_compiling() or input_ids.device.type != "cpu" or input_ids.numel() == 0:
        return
    smallest, largest = (int(value) for value in torch.aminmax(input_ids))
    if smallest < 0 or largest >= vocab_size:
        raise ValueError(
            f"input_ids must be in [0, vocab_size={vocab_size}), got {smallest}..{largest}; is the tokenizer this "
            "model's?"
        )


__all__ = ["check_input_ids"]
