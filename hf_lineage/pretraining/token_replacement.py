"""What stands in the place of a token that is to be predicted (Devlin et al. 2019, section 3.1)."""

import numpy as np
from transformers import PreTrainedTokenizerBase


class TokenReplacement:
    """Replaces tokens by the mask token, by random ones, or not at all.

    A random token is any of the vocabulary that was not added to it and is not special.

    Args:
        tokenizer (`PreTrainedTokenizerBase`): Any tokenizer with a mask token.
        mask_prob (`float`, defaults to 0.8): Share of the tokens that become the mask token.
        random_prob (`float`, defaults to 0.1): Share that becomes a random token.

    Raises:
        ValueError: If the shares are out of range, or all tokens are special.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, mask_prob: float = 0.8, random_prob: float = 0.1):
        if min(mask_prob, random_prob) < 0 or mask_prob + random_prob > 1 + 1e-9:
            raise ValueError(
                "mask_replace_prob and random_replace_prob must be at least 0 and at most 1 together, got "
                f"{mask_prob} and {random_prob}"
            )
        added = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
        self._random_tokens = np.array(sorted(set(tokenizer.get_vocab().values()) - added))
        if not len(self._random_tokens):
            raise ValueError("the tokenizer must have tokens that are not special, got none")
        self._mask_token_id = tokenizer.mask_token_id
        self._mask_prob, self._random_prob = mask_prob, random_prob

    def __call__(self, tokens: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """`(tokens,)` ids -> as many, drawn by the generator."""
        draw = generator.random(len(tokens))
        random = self._random_tokens[generator.integers(len(self._random_tokens), size=len(tokens))]
        replaced = np.where(draw < self._mask_prob + self._random_prob, random, tokens)
        return np.where(draw < self._mask_prob, self._mask_token_id, replaced)


__all__ = ["TokenReplacement"]
