"""Tokenizers of models that are built from scratch: trained on a task's own training text."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from benchmarks.glue.presets import VocabularyKind
from benchmarks.glue.tasks import Task
from tokenizer_training.byte_bpe import train_gpt_tokenizer
from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer, train_xlnet_tokenizer
from tokenizer_training.wordpiece import train_bert_tokenizer

# A vocabulary of some thousands is settled long before; all of QQP would take minutes.
MAX_LINES = 100_000
_SMALLEST_VOCABULARY = 32


def train_vocabulary(
    kind: VocabularyKind, vocab_size: int, task: Task, train: Dataset, folder: Path
) -> PreTrainedTokenizerBase:
    """Train a tokenizer on the texts of a training split and save it; the same texts give the same one.

    The texts of the first columns come first; of more than 100,000 so many are drawn. Small sets cannot fill a large
    vocabulary: it is made a quarter smaller until they can.

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
            file.write_text("".join(f"{line}\n" for line in _lines(task, train)), encoding="utf-8")
            _train(kind, vocab_size, TextLines([file], sample_limit=MAX_LINES, held_out=0), folder)
    return AutoTokenizer.from_pretrained(folder)


def _lines(task: Task, train: Dataset) -> Iterable[str]:
    """Every text on a line of its own."""
    return (" ".join(text.split()) for column in task.text_columns for text in train[column][:])


def _train(kind: VocabularyKind, vocab_size: int, text: TextLines, folder: Path) -> None:
    trainers: dict[str, Callable[..., Any]] = {
        "albert": train_albert_tokenizer,
        "xlnet": train_xlnet_tokenizer,
        "bert": train_bert_tokenizer,
        "gpt2": train_gpt_tokenizer,
    }
    while True:
        try:
            trainers[kind](text, folder, vocab_size)
        except ValueError:
            vocab_size = 3 * vocab_size // 4
            if vocab_size < _SMALLEST_VOCABULARY:
                raise
        else:
            return
