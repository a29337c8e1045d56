"""Tokenizers of models that are built from scratch: trained on a task's own training text."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import AutoTokenizer, GPT2Tokenizer, PreTrainedTokenizerBase

from benchmarks.glue.presets import VocabularyKind
from benchmarks.glue.tasks import Task
from hf_lineage.files import atomic_folder
from tokenizer_training.checks import TooLittleTextError
from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer, train_xlnet_tokenizer
from tokenizer_training.wordpiece import train_bert_tokenizer

# A vocabulary of some thousands is settled long before; all of QQP would take minutes.
MAX_LINES = 100_000
_SMALLEST_VOCABULARY = 32
_UNIGRAM_KINDS = ("albert", "xlnet")


def train_vocabulary(
    kind: VocabularyKind, vocab_size: int, task: Task, train: Dataset, folder: Path
) -> PreTrainedTokenizerBase:
    """Train a tokenizer on the texts of a training split and save it; the same texts give the same one.

    The texts of the first columns come first; of more than 100,000 so many are drawn. Small sets cannot fill a large
    vocabulary: it is then as large as they can fill, and unigram pieces are given every word once more.

    Args:
        kind: Whose pieces: `"albert"` and `"xlnet"` unigram, `"bert"` WordPiece, `"gpt2"` pairs of bytes.
        vocab_size: Number of entries, special ones included.
        task: Whose text columns are read.
        train: The examples that the model is trained on.
        folder: Where the tokenizer goes. One that is there already is loaded instead.

    Raises:
        ValueError: If the text is too little for the smallest vocabulary.
    """
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as temporary:
            file = Path(temporary, "text.txt")
            lines = list(_lines(task, train))
            _write(file, lines)
            try:
                _train(kind, vocab_size, file, folder)
            except TooLittleTextError:
                if kind in _UNIGRAM_KINDS:
                    _write(file, lines + _words(lines))
                _train_smaller(kind, vocab_size, file, folder)
    return AutoTokenizer.from_pretrained(folder)


def _lines(task: Task, train: Dataset) -> Iterable[str]:
    """Every text on a line of its own."""
    return (" ".join(text.split()) for column in task.text_columns for text in train[column][:])


def _words(lines: Iterable[str]) -> list[str]:
    """Return every word with a comma behind it.

    The unigram trainer takes as candidates what occurs in two different words. Where no other word begins with it and
    spaces are around punctuation marks, a word would be cut into letters, however frequent it is.
    """
    return [f"{word}," for word in sorted({word for line in lines for word in line.split()})]


def _write(file: Path, lines: Iterable[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _train_smaller(kind: VocabularyKind, vocab_size: int, file: Path, folder: Path) -> None:
    """Train the largest vocabulary that the text is enough for, of at most so many entries."""
    while True:
        try:
            return _train(kind, vocab_size, file, folder)
        except TooLittleTextError as error:
            vocab_size = error.largest
            if vocab_size < _SMALLEST_VOCABULARY:
                raise


def _train(kind: VocabularyKind, vocab_size: int, file: Path, folder: Path) -> None:
    trainers: dict[str, Callable[..., Any]] = {
        "albert": train_albert_tokenizer,
        "xlnet": train_xlnet_tokenizer,
        "bert": train_bert_tokenizer,
        "gpt2": _train_gpt2_tokenizer,
    }
    trainers[kind](TextLines([file], sample_limit=MAX_LINES, held_out=0), folder, vocab_size)


def _train_gpt2_tokenizer(text: TextLines, output: Path, vocab_size: int) -> None:
    tokenizer = GPT2Tokenizer().train_new_from_iterator(text.read("count words"), vocab_size, show_progress=False)
    with atomic_folder(output) as folder:
        tokenizer.save_pretrained(folder)
