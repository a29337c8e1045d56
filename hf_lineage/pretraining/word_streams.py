"""Text for word-level language models: windows of continuous streams, or sentence by sentence.

The streams are those of bilm-tf's `bilm/data.py` (Peters et al. 2018, https://arxiv.org/abs/1802.05365).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Features, IterableDataset, List, Value

from hf_lineage import ElmoTokenizer

from .block_stream import Block, block_stream
from .corpus import Corpus
from .row_stream import row_stream
from .span_masking import IGNORED

_STREAM_FEATURES = Features(
    {
        "forward_words": List(Value("string")),
        "forward_targets": List(Value("int32")),
        "backward_words": List(Value("string")),
        "backward_targets": List(Value("int32")),
        "epoch_seed": Value("int64"),
        "row": Value("int64"),
        "segment": Value("int64"),
    }
)
_NO_WINDOW: dict[str, Any] = {
    "forward_words": [],
    "forward_targets": [],
    "backward_words": [],
    "backward_targets": [],
}
_SENTENCE_FEATURES = Features(
    {"words": List(Value("string")), "labels": List(Value("int32")), "epoch_seed": Value("int64")}
)


def word_stream_dataset(
    corpus: Corpus,
    tokenizer: ElmoTokenizer,
    *,
    unroll_steps: int = 20,
    shuffle_sentences: bool = True,
    num_rows: int,
    seed: int = 0,
    num_shards: int = 64,
) -> IterableDataset:
    """Streams windows of continuous text, one stream for each direction, for models that carry their state.

    A row of a batch reads a block of the corpus as one stream of sentences, each between the boundaries, window by
    window; then another block. The forward direction reads `<S>` and the words of a sentence, and its labels are the
    words and `</S>`; the backward direction reads `</S>` and the words from the last to the first, and its labels are
    the words and `<S>`. So both have as many windows. The last window of a block may be shorter.

    Args:
        corpus (`Corpus`):
            The documents.
        tokenizer (`ElmoTokenizer`):
            With a word vocabulary, which gives the labels.
        unroll_steps (`int`, defaults to 20):
            Tokens of a window, over which gradients go back.
        shuffle_sentences (`bool`, defaults to `True`):
            Whether the sentences of a block are shuffled, for each direction by itself, as in the original. Otherwise
            they are read in order, by the backward direction from the last.
        num_rows (`int`):
            Rows of a batch; see `row_stream`, which gives the examples.
        seed (`int`, defaults to 0):
            At least 0.
        num_shards (`int`, defaults to 64):
            Parts that processes and workers may share.

    Returns:
        `datasets.IterableDataset` with the columns `forward_words`, `forward_targets` (ids in the word vocabulary),
        `backward_words`, `backward_targets`, and `epoch_seed`, `row` and `segment` of `row_stream`.

    Raises:
        ValueError: If an argument is out of range, or the tokenizer has no word vocabulary.
    """
    return row_stream(
        corpus,
        WordWindows(tokenizer, unroll_steps, shuffle_sentences),
        empty=_NO_WINDOW,
        features=_STREAM_FEATURES,
        seed=seed,
        num_shards=num_shards,
        num_rows=num_rows,
    )


def word_sentence_dataset(
    corpus: Corpus, tokenizer: ElmoTokenizer, *, max_length: int = 128, seed: int = 0, num_shards: int = 64
) -> IterableDataset:
    """Streams sentences by themselves, shuffled as `block_stream` does.

    Args:
        corpus (`Corpus`):
            The documents.
        tokenizer (`ElmoTokenizer`):
            With a word vocabulary, which gives the labels.
        max_length (`int`, defaults to 128):
            Longest sentence in tokens, its two boundaries included; longer ones are cut into several.
        seed (`int`, defaults to 0):
            At least 0.
        num_shards (`int`, defaults to 64):
            Parts that processes and workers may share.

    Returns:
        `datasets.IterableDataset` with the columns `words`, `labels` (ids in the word vocabulary) and `epoch_seed`.

    Raises:
        ValueError: If an argument is out of range, or the tokenizer has no word vocabulary.
    """
    maker = WordSentences(tokenizer, max_length)
    return block_stream(corpus, maker, features=_SENTENCE_FEATURES, seed=seed, num_shards=num_shards)


class WordWindows:
    """Makes the windows of a block; see `word_stream_dataset`.

    Args:
        tokenizer (`ElmoTokenizer`): The tokenizer.
        unroll_steps (`int`): Tokens of a window.
        shuffle_sentences (`bool`): Whether sentences are shuffled, for each direction by itself.
    """

    def __init__(self, tokenizer: ElmoTokenizer, unroll_steps: int, shuffle_sentences: bool):
        if unroll_steps < 1:
            raise ValueError(f"unroll_steps must be at least 1, got {unroll_steps}")
        _require_vocabulary(tokenizer)
        self.tokenizer, self.unroll_steps, self.shuffle_sentences = tokenizer, unroll_steps, shuffle_sentences

    def __call__(self, block: Block, generator: np.random.Generator) -> Iterator[dict[str, Any]]:
        """Gives the windows of a block, drawn by the generator."""
        sentences = _sentences(block, self.tokenizer)
        ahead, back = sentences, sentences[::-1]
        if self.shuffle_sentences:
            ahead, back = ([sentences[n] for n in generator.permutation(len(sentences))] for _ in range(2))
        begin = (str(self.tokenizer.bos_token), self.tokenizer.bos_token_id)
        end = (str(self.tokenizer.eos_token), self.tokenizer.eos_token_id)
        forward = _stream(ahead, begin, end)
        backward = _stream([Sentence(words[::-1], labels[::-1]) for words, labels in back], end, begin)
        for start in range(0, len(forward.words), self.unroll_steps):
            window = slice(start, start + self.unroll_steps)
            yield {
                "forward_words": forward.words[window],
                "forward_targets": forward.labels[window],
                "backward_words": backward.words[window],
                "backward_targets": backward.labels[window],
            }


class WordSentences:
    """Makes the sentences of a block; see `word_sentence_dataset`.

    Args:
        tokenizer (`ElmoTokenizer`): The tokenizer.
        max_length (`int`): Longest sentence, its boundaries included.
    """

    def __init__(self, tokenizer: ElmoTokenizer, max_length: int):
        if max_length < 3:
            raise ValueError(f"max_length must be at least 3, got {max_length}")
        _require_vocabulary(tokenizer)
        self.tokenizer, self.longest = tokenizer, max_length - 2

    def __call__(self, block: Block, generator: np.random.Generator) -> list[dict[str, Any]]:
        """Gives the sentences of a block."""
        return [
            {"words": words[start : start + self.longest], "labels": labels[start : start + self.longest]}
            for words, labels in _sentences(block, self.tokenizer)
            for start in range(0, len(words), self.longest)
        ]


class DataCollatorForWordStreams:
    """Makes the inputs of `ElmoForPreTraining` of windows of either direction, padded on the right.

    Args:
        tokenizer (`ElmoTokenizer`): The tokenizer.
    """

    def __init__(self, tokenizer: ElmoTokenizer):
        self.tokenizer = tokenizer

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Collates examples of `word_stream_dataset`."""
        names = ("forward_words", "backward_words")
        ahead, back = _character_ids(self.tokenizer, [[example[name] for example in examples] for name in names])
        return {
            "input_ids": ahead,
            "labels": _padded([example["forward_targets"] for example in examples], ahead.shape[1]),
            "backward_input_ids": back,
            "backward_targets": _padded([example["backward_targets"] for example in examples], back.shape[1]),
        }


class DataCollatorForWordSentences:
    """Makes the inputs of `ElmoForPreTraining` of sentences; the model adds the boundaries.

    Args:
        tokenizer (`ElmoTokenizer`): The tokenizer.
    """

    def __init__(self, tokenizer: ElmoTokenizer):
        self.tokenizer = tokenizer

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Collates examples of `word_sentence_dataset`."""
        (ids,) = _character_ids(self.tokenizer, [[example["words"] for example in examples]])
        return {"input_ids": ids, "labels": _padded([example["labels"] for example in examples], ids.shape[1])}


class Sentence(NamedTuple):
    """Words, and what is predicted."""

    words: list[str]
    labels: list[int]


def _sentences(block: Block, tokenizer: ElmoTokenizer) -> list[Sentence]:
    """The sentences of a block that have words. The names of the boundaries in the text do not count."""
    boundaries = {tokenizer.bos_token, tokenizer.eos_token}
    sentences = []
    for document in block.documents:
        for segment in document.segments:
            words = [word for word in tokenizer.tokenize(segment) if word not in boundaries]
            if words:
                sentences.append(Sentence(words, tokenizer.convert_tokens_to_word_ids(words)))
    return sentences


def _stream(sentences: list[Sentence], first: tuple[str, int], last: tuple[str, int]) -> Sentence:
    """Sentences one after the other, each read from its first boundary on and predicted up to its last one."""
    words, labels = [], []
    for sentence in sentences:
        words += [first[0], *sentence.words]
        labels += [*sentence.labels, last[1]]
    return Sentence(words, labels)


def _character_ids(tokenizer: ElmoTokenizer, groups: list[list[list[str]]]) -> list[torch.Tensor]:
    """Ids `(rows, longest row, token_row_size)` of each group of rows of words, 0 for padding.

    Each distinct word is looked up once.
    """
    numbers: dict[str, int] = {}
    numbered = [
        [torch.tensor([numbers.setdefault(word, len(numbers) + 1) for word in row], dtype=torch.long) for row in rows]
        for rows in groups
    ]
    table = torch.zeros(len(numbers) + 1, tokenizer.token_row_size, dtype=torch.long)
    if numbers:
        encoded = tokenizer(
            list(numbers),
            is_split_into_words=True,
            add_special_tokens=False,
            return_token_type_ids=False,
            return_attention_mask=False,
            verbose=False,
        )
        table[1:] = torch.tensor(np.array(encoded["input_ids"]))
    return [table[_filled(rows, 0)] for rows in numbered]


def _padded(rows: list[list[int]], length: int) -> torch.Tensor:
    padded = _filled([torch.tensor(row, dtype=torch.long) for row in rows], IGNORED)
    return torch.nn.functional.pad(padded, (0, length - padded.shape[1]), value=IGNORED)


def _filled(rows: list[torch.Tensor], value: int) -> torch.Tensor:
    """Rows of one length, which is at least 1: the model wants a token."""
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
    return padded if padded.shape[1] else padded.new_full((len(rows), 1), value)


def _require_vocabulary(tokenizer: ElmoTokenizer) -> None:
    if not getattr(tokenizer, "word_vocabulary", None):
        raise ValueError(
            f"the tokenizer must be an ElmoTokenizer with a word vocabulary, got a {type(tokenizer).__name__} without"
        )


__all__ = [
    "DataCollatorForWordSentences",
    "DataCollatorForWordStreams",
    "WordSentences",
    "WordWindows",
    "word_sentence_dataset",
    "word_stream_dataset",
]
