"""What a tokenizer cuts lines of text into: the places of its tokens, the same for every kind of tokenizer."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

from tqdm import tqdm

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

    from hf_lineage import ElmoTokenizer

_LINES_PER_BATCH = 1000
_BATCHES_AHEAD = 2
_WORD_START = "▁"

_T = TypeVar("_T")
_R = TypeVar("_R")


class Piece(NamedTuple):
    """A token's place in its line, white space around it left out, and whether the tokenizer knows what stands there.

    A token that stands for nothing but white space has no width.
    """

    start: int
    end: int
    is_known: bool


class Segments(NamedTuple):
    """A line, the ids of its tokens (rows of bytes, of ELMo) and their places."""

    line: str
    ids: list
    pieces: list[Piece]


_ToPieces = Callable[[str, Sequence[Any], Sequence[tuple[int, int]]], list[Piece]]


def segment(tokenizer: "PreTrainedTokenizerBase", lines: Sequence[str], description: str) -> Iterator[Segments]:
    """Cuts lines into tokens, special ones not added, with a progress bar.

    Args:
        tokenizer: A tokenizer with offsets: one of the `tokenizers` package, or ELMo's.
        lines: The text.
        description: What is being done, for the bar.

    Raises:
        ValueError: If the tokenizer has no offsets.
    """
    is_elmo = _is_elmo(tokenizer)
    if not (tokenizer.is_fast or is_elmo):
        raise ValueError(f"a tokenizer must tell the places of its tokens, which {type(tokenizer).__name__} does not")
    to_pieces = _words_of(tokenizer) if is_elmo else _pieces_of(tokenizer)
    batches = (list(lines[start : start + _LINES_PER_BATCH]) for start in range(0, len(lines), _LINES_PER_BATCH))

    def encode(batch: list[str]) -> "tuple[list[str], BatchEncoding]":
        encoded = tokenizer(
            batch,
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return batch, encoded

    with tqdm(desc=description, unit=" tokens", disable=None) as bar:
        for batch, encoded in _done_ahead(encode, batches):
            for line, ids, offsets in zip(batch, encoded["input_ids"], encoded["offset_mapping"], strict=True):
                yield Segments(line, ids, to_pieces(line, ids, offsets))
                bar.update(len(ids))


def _done_ahead(function: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """Results in the order of the items; while one is worked with, a few more, and no others, are made."""
    waiting: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            waiting.append(thread.submit(function, item))
            if len(waiting) > _BATCHES_AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def vocabulary_size(tokenizer: "PreTrainedTokenizerBase") -> int:
    """Entries of the vocabulary; of ELMo, words of the softmax."""
    return len(tokenizer.word_vocabulary) if _is_elmo(tokenizer) else len(tokenizer)


def _is_elmo(tokenizer: "PreTrainedTokenizerBase") -> "TypeGuard[ElmoTokenizer]":
    from hf_lineage import ElmoTokenizer

    return isinstance(tokenizer, ElmoTokenizer)


def _words_of(tokenizer: "ElmoTokenizer") -> _ToPieces:
    words = tokenizer.word_vocabulary

    def to_pieces(line: str, ids: Sequence[Any], offsets: Sequence[tuple[int, int]]) -> list[Piece]:
        return [Piece(start, end, not words or line[start:end] in words) for start, end in offsets]

    return to_pieces


def _pieces_of(tokenizer: "PreTrainedTokenizerBase") -> _ToPieces:
    # transformers looks each of these up anew
    unk_id, unk_token = tokenizer.unk_token_id, tokenizer.unk_token
    word_start = tokenizer.get_vocab().get(_WORD_START)

    def to_pieces(line: str, ids: Sequence[Any], offsets: Sequence[tuple[int, int]]) -> list[Piece]:
        pieces = []
        for token, (start, end) in zip(ids, offsets, strict=True):
            text = line[start:end]
            stripped = text.strip()
            if token == word_start and text != _WORD_START:
                # the place that transformers' classes give a lone one is that of the character behind it
                stripped, end = "", start
            elif len(stripped) < len(text):
                start += len(text) - len(text.lstrip())
                end = start + len(stripped)
            # the name of the unknown token in a text is known
            pieces.append(Piece(start, end, token != unk_id or stripped == unk_token))
        return pieces

    return to_pieces
