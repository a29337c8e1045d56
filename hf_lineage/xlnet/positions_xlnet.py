"""Sinusoids of distances between tokens."""

import torch


def relative_positions(
    tokens: int, keys: int, width: int, clamp_len: int, device: torch.device | None = None
) -> torch.Tensor:
    """The sinusoids of all distances between a token and what it may see.

    Args:
        tokens: Length of the text.
        keys: That and the memory's.
        width: Of a vector: `width / 2` sines, then as many cosines.
        clamp_len: Largest distance that is told apart; 0 or less for no bound.
        device: Where they are to be.

    Returns:
        `(keys + tokens, width)` float32; row `r` is of a key `keys - r` tokens before the query (Transformer-XL,
        appendix B; the first row is of no pair, it makes room for the shift).
    """
    distances = torch.arange(keys, -tokens, -1, device=device, dtype=torch.float32)
    if clamp_len > 0:
        distances = distances.clamp(-clamp_len, clamp_len)
    frequencies = 10000.0 ** -(torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)
    angles = distances[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], -1)


def directed(sinusoids: torch.Tensor, directions: torch.Tensor | None) -> torch.Tensor:
    """The sinusoids for each row of a batch.

    Args:
        sinusoids: `(distances, width)`.
        directions: `(batch,)`, 1 for text from left to right, -1 for text whose order is reversed, whose distances
            have the other sign; `None` if all is from left to right.

    Returns:
        `(1 or batch, distances, width)`.
    """
    if directions is None:
        return sinusoids[None]
    sines, cosines = sinusoids.chunk(2, -1)
    signs = directions.to(sinusoids.dtype)[:, None, None]
    return torch.cat([signs * sines, cosines.expand(len(directions), -1, -1)], -1)


__all__ = ["directed", "relative_positions"]
