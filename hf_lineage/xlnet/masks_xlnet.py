"""Who sees whom, from all the masks that a model is given."""

from collections.abc import Sequence

import torch


def padding_mask(
    attention_mask: torch.Tensor | None,
    input_mask: torch.Tensor | None,
    mems_mask: torch.Tensor | None,
    sizes: "Sizes",
) -> torch.Tensor | None:
    """`(batch, keys)` bool, true at tokens of the memory and the text that are no padding; `None` if none is.

    Raises:
        ValueError: If both masks are given, or one has the wrong shape.
    """
    if attention_mask is not None and input_mask is not None:
        raise ValueError("give attention_mask (0 = padding) or input_mask (1 = padding), not both")
    real = None
    if input_mask is not None:
        check_shape("input_mask", input_mask, [(sizes.batch, sizes.tokens)])
        real = input_mask == 0
    elif attention_mask is not None and attention_mask.dim() == 2:
        check_shape("attention_mask", attention_mask, [(sizes.batch, sizes.tokens), (sizes.batch, sizes.keys)])
        real = attention_mask != 0
    if mems_mask is not None:
        check_shape("mems_mask", mems_mask, [(sizes.batch, sizes.memory)])
    if mems_mask is None:
        memory = None if real is None else torch.ones_like(real[:, :1]).expand(-1, sizes.memory)
    else:
        memory = mems_mask != 0
    if real is None and memory is not None:
        real = torch.ones_like(memory[:, :1]).expand(-1, sizes.tokens)
    if real is None or memory is None or real.shape[1] == sizes.keys:
        return real
    return torch.cat([memory, real], 1)


class Sizes:
    """How many rows, tokens and tokens of memory there are."""

    def __init__(self, batch: int, tokens: int, memory: int):
        self.batch, self.tokens, self.memory = batch, tokens, memory

    @property
    def keys(self) -> int:
        """Tokens that can be seen."""
        return self.memory + self.tokens


def visible_keys(
    sizes: Sizes,
    real: torch.Tensor | None,
    attention_mask: torch.Tensor | None,
    perm_mask: torch.Tensor | None,
    causal: bool,
    same_length: bool,
    device: torch.device,
) -> torch.Tensor | None:
    """`(batch or 1, 1 or heads, tokens or 1, keys)` bool, true where the query stream at a token may look.

    Args:
        sizes: Of the batch.
        real: From `padding_mask`.
        attention_mask: One of three dimensions `(batch, tokens, tokens or keys)`, 0 = cannot see, or of four
            `(batch, 1 or heads, tokens, tokens or keys)`: the same, or if it is floating point, added to scores, so
            that anything below 0 cannot be seen. Two dimensions are in `real` already.
        perm_mask: `(batch, tokens, tokens or keys)`, 1 = cannot see; all of the memory is seen where it says nothing.
        causal: Whether nobody sees what comes later.
        same_length: Whether everybody sees equally many before.
        device: Where the mask is to be.

    Returns:
        The mask, or `None` if everything is seen.
    """
    parts = []
    if real is not None:
        parts.append(real[:, None, None])
    if attention_mask is not None and attention_mask.dim() > 2:
        parts.append(_with_memory(_seen(attention_mask, sizes), sizes))
    if perm_mask is not None:
        allowed = [(sizes.batch, sizes.tokens, keys) for keys in (sizes.tokens, sizes.keys)]
        check_shape("perm_mask", perm_mask, allowed)
        parts.append(_with_memory((perm_mask == 0)[:, None], sizes))
    if causal:
        distance = sizes.memory + torch.arange(sizes.tokens, device=device)[:, None]
        distance = distance - torch.arange(sizes.keys, device=device)
        seen = distance >= 0
        # as the original: a token looks back over the memory's length
        parts.append((seen & (distance <= sizes.memory) if same_length else seen)[None, None])
    if not parts:
        return None
    visible = parts[0]
    for part in parts[1:]:
        visible = visible & part
    return visible


def _seen(attention_mask: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    if attention_mask.dim() == 3:
        check_shape(
            "attention_mask", attention_mask, [(sizes.batch, sizes.tokens, k) for k in (sizes.tokens, sizes.keys)]
        )
        return (attention_mask != 0)[:, None]
    if attention_mask.dim() != 4 or attention_mask.shape[-1] not in (sizes.tokens, sizes.keys):
        raise ValueError(
            f"attention_mask must have 2, 3 or 4 dimensions and {sizes.tokens} or {sizes.keys} keys, "
            f"got {tuple(attention_mask.shape)}"
        )
    return attention_mask >= 0 if attention_mask.is_floating_point() else attention_mask != 0


def _with_memory(seen: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """The same with all of the memory seen, where a mask is of the text alone."""
    if seen.shape[-1] == sizes.keys:
        return seen
    return torch.cat([seen.new_ones(*seen.shape[:-1], sizes.memory), seen], -1)


def content_keys(visible: torch.Tensor | None, sizes: Sizes) -> torch.Tensor | None:
    """The same for the content stream, where a token sees itself in any case."""
    if visible is None:
        return None
    tokens = torch.arange(sizes.tokens, device=visible.device)
    itself = torch.arange(sizes.keys, device=visible.device) == (sizes.memory + tokens)[:, None]
    return visible | itself


def rows_of(values: torch.Tensor, positions: torch.Tensor, fill: bool) -> torch.Tensor:
    """The `(batch, heads, predicted, keys)` rows of a `(batch, heads, tokens, keys)` mask at some positions.

    Args:
        values: The mask; sizes of 1 are expanded.
        positions: `(batch, predicted)` int64; -1 has no row, and the number of tokens is the one after the last, which
            has the last one's row but for seeing the last as well.
        fill: What stands in a row that does not exist.
    """
    batch, predicted = positions.shape
    rows = positions.clamp(min=0, max=values.shape[2] - 1)
    index = rows[:, None, :, None].expand(batch, values.shape[1], predicted, values.shape[3])
    found = values.expand(batch, -1, -1, -1).gather(2, index)
    return torch.where((positions < 0)[:, None, :, None], fill, found)


def check_shape(name: str, values: torch.Tensor, allowed: Sequence[tuple[int, ...]]) -> None:
    """Raises a `ValueError` unless an argument is a tensor of one of some shapes."""
    given = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
    if given not in allowed:
        shapes = " or ".join(map(str, dict.fromkeys(allowed)))
        raise ValueError(f"{name} must be a tensor of shape {shapes}, got {given}")


def real_tokens(
    attention_mask: torch.Tensor | None, input_mask: torch.Tensor | None, tokens: int
) -> torch.Tensor | None:
    """`(batch, tokens)` bool, true where a token is no padding; `None` if no mask of two dimensions says so."""
    if input_mask is not None:
        return input_mask == 0
    if attention_mask is None or attention_mask.dim() != 2:
        return None
    return attention_mask[:, -tokens:] != 0


__all__ = ["Sizes", "check_shape", "content_keys", "padding_mask", "real_tokens", "rows_of", "visible_keys"]
