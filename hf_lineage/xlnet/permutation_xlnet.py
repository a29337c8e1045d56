"""Orders in which a text is predicted, and the masks that they make.

In a factorization order, each token is predicted from those that come before it in the order, wherever they stand in
the text (Yang et al. 2019, https://arxiv.org/abs/1906.08237, section 2.2).
"""

from collections.abc import Sequence

import torch


def ranks_of_order(order: Sequence[int] | torch.Tensor) -> torch.Tensor:
    """The place of each token in an order.

    Args:
        order: `(tokens,)` or `(batch, tokens)` positions, counted from 0, each once; the first is predicted first.

    Returns:
        int64 of the same shape; the rank of position `i` is the place of `i` in the order.

    Raises:
        ValueError: Unless it is a permutation of `0 .. tokens - 1`.
    """
    order = torch.as_tensor(order)
    if order.dtype not in (torch.int64, torch.int32) or order.dim() not in (1, 2):
        raise ValueError(
            f"an order must be integers of shape (tokens,) or (batch, tokens), got {order.dtype} {tuple(order.shape)}"
        )
    ranks = order.long().argsort(-1)
    expected = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    if not torch.equal(order.long().gather(-1, ranks), expected):
        raise ValueError(f"an order must hold each of 0..{order.shape[-1] - 1} once, got {order.tolist()}")
    return ranks


def perm_mask_of_ranks(ranks: torch.Tensor) -> torch.Tensor:
    """Who cannot see whom: a token sees those of a lower rank.

    Args:
        ranks: `(..., tokens)`; equal ranks do not see each other, and a token does not see itself (its content stream
            does, in the model).

    Returns:
        `(..., tokens, tokens)` float32; 1 at `[i, j]` if `i` cannot see `j`, as `perm_mask` has it.
    """
    return (ranks[..., :, None] <= ranks[..., None, :]).float()


def perm_mask_of_order(order: Sequence[int] | torch.Tensor) -> torch.Tensor:
    """`perm_mask` of a factorization order.

    The order 3-2-4-1 of the paper's Figure 1, counted from 0:

    ```python
    >>> 1 - perm_mask_of_order([2, 1, 3, 0])  # 1 = visible
    tensor([[0., 1., 1., 1.],
            [0., 0., 1., 0.],
            [0., 0., 0., 0.],
            [0., 1., 1., 0.]])
    ```

    Args:
        order: As in `ranks_of_order`.

    Returns:
        `(tokens, tokens)` or `(batch, tokens, tokens)` float32, 1 = cannot see.
    """
    return perm_mask_of_ranks(ranks_of_order(order))


def left_to_right(tokens: int) -> torch.Tensor:
    """The order of the text."""
    return torch.arange(tokens)


def random_orders(number: int, tokens: int, generator: torch.Generator | None = None) -> torch.Tensor:
    """`(number, tokens)` orders, each drawn uniformly."""
    return torch.rand(number, tokens, generator=generator).argsort(-1)


__all__ = ["left_to_right", "perm_mask_of_order", "perm_mask_of_ranks", "random_orders", "ranks_of_order"]
