"""The word vocabulary of ELMo's softmax; its characters are bytes and need no training."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from hf_lineage import ElmoTokenizer
from hf_lineage.files import atomic_folder

from .text import TextLines

_SEPARATOR = "\n"  # lines are counted one by one, so no word holds it


@dataclass
class VocabularyReport:
    """What was read, and how much of it the vocabulary knows.

    Args:
        lines: Number of lines with at least one word.
        words: Number of words in them.
        known: How many of these are in the vocabulary.
    """

    lines: int = 0
    words: int = 0
    known: int = 0

    @property
    def coverage(self) -> float:
        """Share of the words that are in the vocabulary."""
        return self.known / self.words


def train_elmo_tokenizer(
    text: TextLines,
    output: str | Path,
    vocab_size: int,
    text_split: str = "words",
    max_characters_per_token: int = 50,
    overwrite: bool = False,
) -> tuple[ElmoTokenizer, VocabularyReport]:
    """Counts the words of a text and saves a tokenizer with the most frequent ones as its word vocabulary.

    Words of equal frequency are sorted by their characters, so the result depends on the text alone.

    Args:
        text: The text, one sentence a line, of which two passes are made.
        output: Folder to write to.
        vocab_size: Words of the vocabulary, `<S>`, `</S>` and `<UNK>` included; fewer if the text has fewer.
        text_split: As in `ElmoTokenizer`.
        max_characters_per_token: As in `ElmoTokenizer`.
        overwrite: Whether a folder that exists may be replaced.

    Raises:
        ValueError: If the text cannot be read or has no word, or the vocabulary has no room for one.
    """
    if vocab_size < 4:
        raise ValueError(f"vocab_size must be at least 4 (three special words and one more), got {vocab_size}")
    splitter = ElmoTokenizer(text_split=text_split, max_characters_per_token=max_characters_per_token)
    counter = Tokenizer(models.WordLevel(unk_token=splitter.unk_token))
    counter.pre_tokenizer = pre_tokenizers.Split(_SEPARATOR, "removed")
    special = [splitter.bos_token, splitter.eos_token, splitter.unk_token]
    trainer = trainers.WordLevelTrainer(vocab_size=vocab_size, special_tokens=special, show_progress=False)
    report = VocabularyReport()
    with atomic_folder(output, overwrite) as saved:
        counter.train_from_iterator((_SEPARATOR.join(line) for line in _counted(text, splitter, report)), trainer)
        if not report.words:
            raise ValueError(f"no words in {', '.join(map(str, text.files))}")
        vocabulary = sorted(counter.get_vocab().items(), key=lambda item: item[1])
        with tempfile.TemporaryDirectory() as folder:
            vocab_file = Path(folder, "vocab.txt")
            vocab_file.write_text("".join(f"{word}\n" for word, _ in vocabulary), encoding="utf-8", newline="\n")
            tokenizer = ElmoTokenizer(
                vocab_file, text_split=text_split, max_characters_per_token=max_characters_per_token
            )
        for line in _words(text, splitter, "coverage"):
            report.known += sum(word in tokenizer.word_vocabulary for word in line)
        tokenizer.save_pretrained(saved)
    return tokenizer, report


def _counted(text: TextLines, splitter: ElmoTokenizer, report: VocabularyReport) -> Iterator[list[str]]:
    for line in _words(text, splitter, "count"):
        report.lines += 1
        report.words += len(line)
        yield line


def _words(text: TextLines, splitter: ElmoTokenizer, description: str) -> Iterator[list[str]]:
    """The words of each line that has any, but for the special words."""
    special = {splitter.bos_token, splitter.eos_token, splitter.unk_token}
    for line in text.read(description):
        words = [word for word in splitter.tokenize(line) if word not in special]
        if words:
            yield words
