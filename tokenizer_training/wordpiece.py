"""The WordPiece vocabulary of a BERT, trained by tokenizers in a way that gives the same result each time."""

from collections import Counter
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import BertTokenizer

from hf_lineage.files import atomic_folder

from .report import TokenizerReport, measure_tokenizer
from .text import LineSample, TextLines, TooLittleTextError
from .unigram import MEASURED_LINES

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_INSIDE = "##"
_CACHED_WORDS = 1 << 16
_MIN_FREQUENCY = 2  # a piece that joins others must be worth it more than once


def train_bert_tokenizer(
    text: TextLines,
    output: str | Path,
    vocab_size: int = 30_522,
    do_lower_case: bool = True,
    keep_accents: bool = False,
    character_coverage: float = 0.99995,
    overwrite: bool = False,
) -> tuple[BertTokenizer, TokenizerReport]:
    """Trains the WordPiece vocabulary of a text and saves a `BertTokenizer` of transformers.

    Ids 0 to 4 are `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]`, as an ALBERT-style configuration expects. Chinese
    characters are words of one character each. The same text gives the same files.

    Args:
        text: The text, of which two passes are made.
        output: Folder to write to.
        vocab_size: Number of entries, special ones included.
        do_lower_case: Whether letters become small.
        keep_accents: Whether accents stay.
        character_coverage: Share of the text's characters that the vocabulary knows; a word with another is unknown.
        overwrite: Whether a folder that exists may be replaced.

    Returns:
        The tokenizer, and what it makes of 10,000 lines drawn from the text.

    Raises:
        ValueError: If an argument is out of range, the text cannot be read, or it cannot fill so large a vocabulary or
            do with so small a one.
    """
    if not 0 < character_coverage <= 1:
        raise ValueError(f"character_coverage must be above 0 and at most 1, got {character_coverage}")
    normalizer = normalizers.BertNormalizer(lowercase=do_lower_case, strip_accents=not keep_accents)
    pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    @lru_cache(_CACHED_WORDS)
    def parts(word: str) -> tuple[str, str]:
        words = [part for part, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(word))]
        return "".join(words), "".join(part[1:] for part in words)

    with atomic_folder(output, overwrite) as folder:
        sample = LineSample(MEASURED_LINES, text.seed)
        counts: Counter[str] = Counter()
        inside: set[str] = set()
        for line in sample.watch(text.read("count characters")):
            for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(line)):
                counts.update(word)
                inside.update(word[1:])
        alphabet = _covering(counts, character_coverage)
        # The trainer numbers what it meets inside words in an order that differs from run to run, and which of two
        # equally frequent pairs it joins depends on the numbers. What is special has its number beforehand.
        first = [*SPECIAL_TOKENS, *(_INSIDE + character for character in alphabet if character in inside)]
        needed = len(first) + len(alphabet)
        if vocab_size < needed:
            raise ValueError(
                f"the characters of the text need a vocabulary of at least {needed}, not {vocab_size}: "
                f"choose a larger vocab_size or a lower character_coverage"
            )
        backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        backend.normalizer, backend.pre_tokenizer = normalizer, pre_tokenizer
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocab_size,
            min_frequency=_MIN_FREQUENCY,
            special_tokens=first,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            continuing_subword_prefix=_INSIDE,
            show_progress=False,
        )
        backend.train_from_iterator(text.read("count words"), trainer)
        vocab = backend.get_vocab()
        if len(vocab) < vocab_size:
            raise TooLittleTextError(len(vocab), vocab_size)
        tokenizer = BertTokenizer(
            vocab=dict(sorted(vocab.items(), key=lambda item: item[1])),
            do_lower_case=do_lower_case,
            strip_accents=not keep_accents,
            model_max_length=512,
        )
        tokenizer.save_pretrained(folder)
    return tokenizer, measure_tokenizer(tokenizer, sample.lines)


def _covering(counts: Counter[str], coverage: float) -> list[str]:
    """The most frequent characters that make up a share of all, sorted; of equals, the first in Unicode first."""
    total = counts.total()
    if not total:
        raise ValueError("the text has nothing but white space and control characters")
    kept, covered = [], 0
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if covered >= coverage * total:
            break
        kept.append(character)
        covered += count
    return sorted(kept)
