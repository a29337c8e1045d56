"""Log-probabilities of texts under an order of their tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .permutation_xlnet import left_to_right, perm_mask_of_ranks, random_orders, ranks_of_order

if TYPE_CHECKING:
    from .modeling_xlnet import LineageXLNetLMHeadModel

Order = str | Sequence[int] | torch.Tensor


@torch.no_grad()
def score_tokens(
    model: "LineageXLNetLMHeadModel",
    rows: Sequence[torch.Tensor],
    order: Order = "left_to_right",
    num_orders: int = 1,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """The log-probability of each row of tokens.

    Args:
        model: The language model, in evaluation mode.
        rows: `(tokens,)` ids each, of any length of at least 1.
        order: `"left_to_right"`; `"random"`, an order drawn for each row; or one order, a permutation of the tokens'
            places counted from 0, of which the first is predicted from nothing.
        num_orders: How many orders are drawn with `"random"`.
        generator: Source of the orders.

    Returns:
        `(rows, num_orders)` float32, nats; the sum over all tokens of a row.

    Raises:
        ValueError: If there are no rows, a row is empty, or the order does not fit.
    """
    if not rows or any(row.dim() != 1 or len(row) == 0 for row in rows):
        raise ValueError(f"rows must be tensors of at least one id, got {[tuple(row.shape) for row in rows]}")
    if num_orders < 1 or (num_orders > 1 and not _is(order, "random")):
        raise ValueError(f"num_orders must be at least 1, and 1 unless order='random', got {num_orders}")
    columns = [_score(model, rows, [_order_of(order, len(row), generator) for row in rows]) for _ in range(num_orders)]
    return torch.stack(columns, 1)


def _is(order: Order, name: str) -> bool:
    return isinstance(order, str) and order == name


def _order_of(order: Order, tokens: int, generator: torch.Generator | None) -> torch.Tensor:
    if _is(order, "random"):
        return random_orders(1, tokens, generator)[0]
    if _is(order, "left_to_right"):
        return left_to_right(tokens)
    if isinstance(order, str):
        raise ValueError(f"order must be 'left_to_right', 'random' or a permutation, got {order!r}")
    found = torch.as_tensor(order)
    if found.shape != (tokens,):
        raise ValueError(f"order has {tuple(found.shape)} places, the text has {tokens} tokens")
    return found


def _score(
    model: "LineageXLNetLMHeadModel", rows: Sequence[torch.Tensor], orders: Sequence[torch.Tensor]
) -> torch.Tensor:
    device, longest = model.device, max(map(len, rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    ranks = torch.full((len(rows), longest), longest)
    positions = torch.full((len(rows), longest), -1)
    for row, (tokens, order) in enumerate(zip(rows, orders, strict=True)):
        ids[row, : len(tokens)] = tokens
        ranks[row, : len(tokens)] = ranks_of_order(order)
        positions[row, : len(tokens)] = torch.arange(len(tokens))
    real = positions >= 0
    ids, ranks, positions, real = (values.to(device) for values in (ids, ranks, positions, real))
    logits = model(ids, attention_mask=real, perm_mask=perm_mask_of_ranks(ranks), target_mapping=positions).logits
    found = logits.float().log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    return (found * real).sum(1)


__all__ = ["Order", "score_tokens"]
