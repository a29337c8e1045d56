"""The word vocabulary of ELMo's softmax; its characters are bytes and need no training."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from hf_lineage import ElmoTokenizer
from hf_lineage.elmo.tokenization_elmo import numbered
from hf_lineage.files import atomic_folder

from .checks import check_filled, check_vocab_size
from .report import TokenizerReport, save_report
from .text import TextLines

PUBLISHED_SIZE = 793_471  # of the 1 Billion Word Benchmark's vocabulary, which the published models have

_SEPARATOR = "\n"  # lines are counted one by one, so no word holds it


def train_elmo_tokenizer(
    text: TextLines,
    output: str | Path,
    vocab_size: int | None = None,
    text_split: str = "words",
    max_characters_per_token: int = 50,
    overwrite: bool = False,
    word_input: bool = False,
) -> tuple[ElmoTokenizer, TokenizerReport]:
    """Counts the words of a text and saves a tokenizer with the most frequent ones as its word vocabulary.

    Words of equal frequency are sorted by their characters, so the result depends on the text alone.

    Args:
        text: The text, one sentence a line.
        output: Folder to write to.
        vocab_size: Words of the vocabulary, `<S>`, `</S>` and `<UNK>` included; `None` for as many as the text has,
            but no more than the 793,471 of the published models.
        text_split: As in `ElmoTokenizer`.
        max_characters_per_token: As in `ElmoTokenizer`.
        overwrite: Whether a folder that exists may be replaced.
        word_input: Whether the words are also those of the input, for models that read words (`word_vocab_size`).

    Returns:
        The tokenizer, and what it makes of the lines that the text keeps out of training; a token is a word there.

    Raises:
        ValueError: If the text cannot be read, has no word or not so many, or the vocabulary has no room for one.
    """
    if vocab_size is not None:
        check_vocab_size(vocab_size, 4, "three special words and one more")
    splitter = ElmoTokenizer(text_split=text_split, max_characters_per_token=max_characters_per_token)
    counter = Tokenizer(models.WordLevel(unk_token=splitter.unk_token))
    counter.pre_tokenizer = pre_tokenizers.Split(_SEPARATOR, "removed")
    special = [splitter.bos_token, splitter.eos_token, splitter.unk_token]
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocab_size or PUBLISHED_SIZE, special_tokens=special, show_progress=False
    )
    with atomic_folder(output, overwrite) as saved:
        counter.train_from_iterator(map(_SEPARATOR.join, _words(text, splitter)), trainer)
        vocabulary = sorted(counter.get_vocab().items(), key=lambda item: item[1])
        if len(vocabulary) == len(special):
            raise ValueError(f"no words in {text}")
        check_filled(len(vocabulary), vocab_size or len(vocabulary))
        with tempfile.TemporaryDirectory() as folder:
            vocab_file = Path(folder, "vocab.txt")
            vocab_file.write_text("".join(f"{word}\n" for word, _ in vocabulary), encoding="utf-8", newline="\n")
            word_vocab_file = None
            if word_input:
                word_vocab_file = Path(folder, "word_vocab.json")
                numbers = numbered(word for word, _ in vocabulary)
                word_vocab_file.write_text(json.dumps(numbers), encoding="utf-8")
            tokenizer = ElmoTokenizer(
                vocab_file,
                word_vocab_file=word_vocab_file,
                text_split=text_split,
                max_characters_per_token=max_characters_per_token,
            )
        tokenizer.save_pretrained(saved)
        report = save_report(tokenizer, text, saved)
    return tokenizer, report


def _words(text: TextLines, splitter: ElmoTokenizer) -> Iterator[list[str]]:
    """The words of each line that has any, but for the special words."""
    special = {splitter.bos_token, splitter.eos_token, splitter.unk_token}
    for line in text.read("count"):
        words = [word for word in splitter.tokenize(line) if word not in special]
        if words:
            yield words
