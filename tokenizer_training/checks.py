"""Checks of what a user asks of a vocabulary, the same for every family."""

from collections.abc import Sequence


class TooLittleTextError(ValueError):
    """Raised where a text cannot fill a vocabulary.

    Args:
        largest: The number of entries that it is enough for.
        vocab_size: The number that was asked for.
    """

    def __init__(self, largest: int, vocab_size: int) -> None:
        super().__init__(
            f"the text is enough for a vocabulary of {largest}, not of {vocab_size}: "
            f"choose vocab_size {largest} or less, or give more text"
        )
        self.largest = largest


def check_symbols(option: str, symbols: Sequence[str], own: Sequence[str], alphabet: Sequence[str] = ()) -> None:
    """Checks that symbols are all different, none is a special token of the family, and each can stand in a text.

    Args:
        option: Name of the option, for messages.
        symbols: What the user gave.
        own: The family's special tokens.
        alphabet: Single characters that the vocabulary needs for text.

    Raises:
        ValueError: If not.
    """
    repeated = sorted({symbol for symbol in symbols if symbols.count(symbol) > 1})
    if repeated:
        raise ValueError(f"{option} has {repeated[0]!r} more than once")
    special = [symbol for symbol in symbols if symbol in own]
    if special:
        raise ValueError(f"{option} has {special[0]!r}, which is a special token")
    needed = [symbol for symbol in symbols if symbol in alphabet]
    if needed:
        raise ValueError(f"{option} has {needed[0]!r}, which the vocabulary needs for text")
    blank = [symbol for symbol in symbols if not symbol or symbol != symbol.strip()]
    if blank:
        raise ValueError(f"{option} has {blank[0]!r}: white space must not begin or end it, and it must not be empty")


def check_vocab_size(vocab_size: int, needed: int, what: str) -> None:
    """Checks that a vocabulary has room for what it must hold.

    Raises:
        ValueError: If not.
    """
    if vocab_size < needed:
        raise ValueError(f"vocab_size must be at least {needed}, {what}; got {vocab_size}")


def check_filled(found: int, vocab_size: int) -> None:
    """Checks that the text has filled the vocabulary.

    Raises:
        TooLittleTextError: If not.
    """
    if found < vocab_size:
        raise TooLittleTextError(found, vocab_size)
