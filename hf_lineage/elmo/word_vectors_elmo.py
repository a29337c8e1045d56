"""Context-free word vectors, each computed once as long as it is remembered."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from .character_codes_elmo import PADDING
from .character_encoder_elmo import ElmoCharacterEncoder
from .tokenization_elmo import CharacterIds, ElmoTokenizer

_BLOCK = {"cpu": 32}
_BLOCK_ELSEWHERE = 256
_LENGTH_STEP = 8
_PROBES = 4


class WordVectorFile(Protocol):
    """Vectors of a vocabulary that were computed before, in the file `path`."""

    path: Path

    def __contains__(self, word: str) -> bool: ...

    def vectors(self, words: Sequence[str]) -> torch.Tensor:
        """`(words, projection_size)` float32 vectors of words that are in it."""


@dataclass
class WordVectorStatistics:
    """Where the vectors of words came from, counted once for each distinct word of a batch.

    Args:
        vocabulary_hits: Words whose vectors were in the file of a vocabulary.
        cache_hits: Words whose vectors were remembered.
        misses: Words that were computed from their characters, or looked up in the model's own table.
    """

    vocabulary_hits: int = 0
    cache_hits: int = 0
    misses: int = 0

    @property
    def lookups(self) -> int:
        """All words that were asked for."""
        return self.vocabulary_hits + self.cache_hits + self.misses

    @property
    def hit_rate(self) -> float:
        """Share of the words that were not computed, 0 before the first one."""
        return (self.vocabulary_hits + self.cache_hits) / self.lookups if self.lookups else 0.0


class WordVectors:
    """Context-free vectors of words, from a vocabulary's file, from memory, or computed from characters.

    A word has the same vector to the bit wherever it comes from and whatever it is computed with, on one device and
    with one number of threads.

    Args:
        encoder: The character encoder. Its weights must not change, or `clear` must be called.
        tokenizer: Gives the characters of a word.
        cache_size: Number of words to remember, those that were needed last; 0 for none.
        vocabulary: Vectors that were computed before.

    Raises:
        ValueError: If `cache_size` is negative.
    """

    def __init__(
        self,
        encoder: ElmoCharacterEncoder,
        tokenizer: ElmoTokenizer,
        cache_size: int = 0,
        vocabulary: WordVectorFile | None = None,
    ):
        if cache_size < 0:
            raise ValueError(f"cache_size must be at least 0, got {cache_size}")
        self.encoder, self.vocabulary = WordEncoder(encoder, tokenizer), vocabulary
        self.cache_size = cache_size
        self.statistics = WordVectorStatistics()
        self._cache: OrderedDict[str, torch.Tensor] = OrderedDict()

    def __len__(self) -> int:
        """Number of words that are remembered."""
        return len(self._cache)

    def clear(self) -> None:
        """Forgets all words and counts anew."""
        self._cache.clear()
        self.statistics = WordVectorStatistics()

    @torch.no_grad()
    def __call__(self, words: Sequence[str]) -> torch.Tensor:
        """Returns `(words, projection_size)` vectors of distinct words, on the encoder's device."""
        found: dict[str, torch.Tensor] = {}
        known = [word for word in words if self.vocabulary is not None and word in self.vocabulary]
        if self.vocabulary is not None and known:
            weight = self.encoder.weight
            found.update(zip(known, self.vocabulary.vectors(known).to(weight.device, weight.dtype), strict=True))
        for word in words:
            if word not in found and word in self._cache:
                self._cache.move_to_end(word)
                found[word] = self._cache[word]
        missing = [word for word in words if word not in found]
        self.statistics.vocabulary_hits += len(known)
        self.statistics.cache_hits += len(found) - len(known)
        self.statistics.misses += len(missing)
        for word, vector in zip(missing, self.encoder(missing), strict=True):
            found[word] = vector
            self._remember(word, vector)
        return torch.stack([found[word] for word in words])

    def _remember(self, word: str, vector: torch.Tensor) -> None:
        if self.cache_size:
            # a row of a block of vectors would keep the whole block in memory
            self._cache[word] = vector.clone()
        if len(self._cache) > self.cache_size:
            self._cache.popitem(last=False)


class WordEncoder:
    """Computes context-free vectors, each independent of the words beside it to the bit.

    A product of matrices may round a row otherwise when there are more or fewer rows. So words are encoded in blocks
    of one size, cut to lengths that depend on the word alone. Some products, mostly small ones, round a row by its
    place as well. A trial shows these, and then each word is a block of its own.

    Args:
        encoder: The character encoder.
        tokenizer: Gives the row of a word; the names of the sentence boundaries stand for these.
    """

    def __init__(self, encoder: ElmoCharacterEncoder, tokenizer: ElmoTokenizer):
        self.encoder, self.tokenizer = encoder, tokenizer
        self._block_sizes: dict[int, int] = {}

    @property
    def weight(self) -> torch.Tensor:
        """One of the encoder's parameters, whose device and dtype the vectors have."""
        return next(self.encoder.parameters())

    @torch.no_grad()
    def __call__(self, words: Sequence[str]) -> torch.Tensor:
        """Returns `(words, projection_size)` vectors of any words, on the encoder's device."""
        weight = self.weight
        rows = [self.tokenizer._row(word) for word in words]
        vectors = weight.new_empty(len(words), self.encoder.output_size)
        for places, size, length in self._blocks(rows):
            ids = torch.full((size, self.tokenizer.token_row_size), PADDING)
            ids[: len(places)] = torch.tensor([rows[place] for place in places])
            encoded = self._encoded(ids, length)
            vectors[torch.tensor(places, device=weight.device)] = encoded[: len(places)]
        return vectors

    def _encoded(self, rows: torch.Tensor, length: int) -> torch.Tensor:
        """Encodes `(tokens, token_row_size)` rows by `length` of their characters and, if it is read, their word."""
        rows = rows.to(self.weight.device)
        return self.encoder.encode_parts(rows[:, :length], rows[:, -1])

    def _blocks(self, rows: Sequence[CharacterIds]) -> Iterator[tuple[list[int], int, int]]:
        """Places of rows, the size of their block, and how many characters of each are enough.

        Padding takes part in the encoder's maximum, so one window of nothing but padding stays for each filter width.
        """
        by_length: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            by_length.setdefault(self._enough(row), []).append(place)
        for length, places in sorted(by_length.items()):
            size = self._block_size(length)
            for start in range(0, len(places), size):
                yield places[start : start + size], size, length

    def _enough(self, row: CharacterIds) -> int:
        """How many characters of a row are enough, none where only its word is read."""
        if self.encoder.embedding is None:
            return 0
        characters = row[: self.encoder.characters]
        used = characters.index(PADDING) if PADDING in characters else len(characters)
        return min(-(-(used + self.encoder.widest) // _LENGTH_STEP) * _LENGTH_STEP, len(characters))

    def _block_size(self, length: int) -> int:
        if length not in self._block_sizes:
            size = _BLOCK.get(self.weight.device.type, _BLOCK_ELSEWHERE)
            generator = torch.Generator().manual_seed(length)
            is_even = True
            for _ in range(_PROBES):
                row = torch.randint(1, PADDING + 1, (1, self.tokenizer.token_row_size), generator=generator)
                encoded = self._encoded(row.expand(size, -1), length)
                is_even = is_even and bool((encoded == encoded[:1]).all())
            self._block_sizes[length] = size if is_even else 1
        return self._block_sizes[length]


def encoder_digest(encoder: ElmoCharacterEncoder) -> str:
    """Tells weights of character encoders apart: 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {tuple(weight.shape)}".encode())
        digest.update(weight.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


__all__ = ["WordEncoder", "WordVectorFile", "WordVectorStatistics", "WordVectors", "encoder_digest"]
