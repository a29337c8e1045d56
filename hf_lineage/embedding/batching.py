"""Batches of sentences of similar length, from a stream of which only a window is held."""

from collections.abc import Iterable, Iterator, Sequence

from .reading import Sentence

_MAX_SENTENCES = 1 << 15  # so that blank lines fill a window too


def windows(sentences: Iterable[Sentence], max_tokens: int) -> Iterator[list[Sentence]]:
    """Cuts a stream into pieces, each of which ends with the first sentence that fills it.

    Args:
        sentences: The stream.
        max_tokens: Words that fill a window.
    """
    window: list[Sentence] = []
    tokens = 0
    for sentence in sentences:
        window.append(sentence)
        tokens += len(sentence.tokens)
        if tokens >= max_tokens or len(window) == _MAX_SENTENCES:
            yield window
            window, tokens = [], 0
    if window:
        yield window


def batches_by_length(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Groups sentences of similar length, the longest first, so that what does not fit into memory shows at once.

    Args:
        lengths: Number of words of each sentence.
        max_tokens: Largest product of a batch's sentences and its longest sentence's words, padding included. A longer
            sentence is a batch of its own.

    Returns:
        Places in `lengths`, each once, but for sentences without words, which need no computation.

    Raises:
        ValueError: If `max_tokens` is below 1.
    """
    if max_tokens < 1:
        raise ValueError(f"a batch must hold at least 1 token, got {max_tokens}")
    batches: list[list[int]] = []
    room = 0
    for place in sorted((place for place, length in enumerate(lengths) if length), key=lambda place: -lengths[place]):
        if not room:
            batches.append([])
            room = max(max_tokens // lengths[place], 1)
        batches[-1].append(place)
        room -= 1
    return batches


__all__ = ["batches_by_length", "windows"]
