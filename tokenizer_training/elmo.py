"""The word vocabulary of ELMo's softmax; its characters are bytes and need no training."""

import gzip
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tqdm import tqdm

from hf_lineage import ElmoTokenizer
from hf_lineage.files import atomic_folder

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
    files: Sequence[Path],
    output: Path,
    vocab_size: int,
    text_split: str = "words",
    max_characters_per_token: int = 50,
    overwrite: bool = False,
) -> tuple[ElmoTokenizer, VocabularyReport]:
    """Counts the words of a text and saves a tokenizer with the most frequent ones as its word vocabulary.

    Words of equal frequency are sorted by their characters, so the result depends on the text alone.

    Args:
        files: Text files, UTF-8, one sentence a line, plain or `.gz`.
        output: Folder to write to.
        vocab_size: Words of the vocabulary, `<S>`, `</S>` and `<UNK>` included; fewer if the text has fewer.
        text_split: As in `ElmoTokenizer`.
        max_characters_per_token: As in `ElmoTokenizer`.
        overwrite: Whether a folder that exists may be replaced.

    Raises:
        ValueError: If a file is missing, is not UTF-8 or all are empty, or the vocabulary has no room for a word.
    """
    if vocab_size < 4:
        raise ValueError(f"vocab_size must be at least 4 (three special words and one more), got {vocab_size}")
    for file in files:
        if not Path(file).is_file():
            raise ValueError(f"no text file {file}")
    splitter = ElmoTokenizer(text_split=text_split, max_characters_per_token=max_characters_per_token)
    counter = Tokenizer(models.WordLevel(unk_token=splitter.unk_token))
    counter.pre_tokenizer = pre_tokenizers.Split(_SEPARATOR, "removed")
    special = [splitter.bos_token, splitter.eos_token, splitter.unk_token]
    trainer = trainers.WordLevelTrainer(vocab_size=vocab_size, special_tokens=special, show_progress=False)
    report = VocabularyReport()
    counter.train_from_iterator((_SEPARATOR.join(line) for line in _counted(files, splitter, report)), trainer)
    if not report.words:
        raise ValueError(f"no words in {', '.join(map(str, files))}")
    vocabulary = sorted(counter.get_vocab().items(), key=lambda item: item[1])
    with tempfile.TemporaryDirectory() as folder:
        vocab_file = Path(folder, "vocab.txt")
        vocab_file.write_text("".join(f"{word}\n" for word, _ in vocabulary), encoding="utf-8", newline="\n")
        tokenizer = ElmoTokenizer(vocab_file, text_split=text_split, max_characters_per_token=max_characters_per_token)
    for line in _lines(files, splitter, "coverage"):
        report.known += sum(word in tokenizer.word_vocabulary for word in line)
    with atomic_folder(output, overwrite) as temporary:
        tokenizer.save_pretrained(temporary)
    return tokenizer, report


def _counted(files: Sequence[Path], splitter: ElmoTokenizer, report: VocabularyReport) -> Iterator[list[str]]:
    for line in _lines(files, splitter, "count"):
        report.lines += 1
        report.words += len(line)
        yield line


def _lines(files: Iterable[Path], splitter: ElmoTokenizer, description: str) -> Iterator[list[str]]:
    """The words of each line that has any, but for the special words."""
    special = {splitter.bos_token, splitter.eos_token, splitter.unk_token}
    for file in files:
        with (gzip.open if Path(file).suffix == ".gz" else open)(file, "rb") as lines:
            for number, line in enumerate(tqdm(lines, desc=f"{description} {file}", unit=" lines", disable=None), 1):
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(f"{file}, line {number}: not UTF-8 at byte {error.start} of the line") from error
                words = [word for word in splitter.tokenize(text) if word not in special]
                if words:
                    yield words
