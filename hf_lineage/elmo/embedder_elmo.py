"""Vectors of sentences as arrays, with the methods of AllenNLP's `ElmoEmbedder`."""

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from ..embedding.batching import batches_by_length, windows
from ..embedding.layers import check_layers, selected_layers
from ..embedding.reading import Sentence
from .configuration_elmo import ElmoConfig
from .conversion_elmo import convert_elmo_checkpoint
from .modeling_elmo import ElmoModel
from .tokenization_elmo import ElmoTokenizer
from .vocabulary_cache_elmo import VocabularyCache
from .word_vectors_elmo import WordVectors, WordVectorStatistics

StrPath = str | os.PathLike
_BOUNDARIES = 2
_BATCHES_PER_WINDOW = 16


class ElmoEmbedder:
    """Computes the vectors of tokenized sentences.

    Every sentence is read by itself, whatever `stateful` in the model's configuration says: its vectors do not depend
    on the sentences beside it or before it. `ElmoModel` with `stateful=True` has the original's carried states.

    Args:
        model: The model. It is put into evaluation mode, and its weights must not change (or `clear_cache` be called).
        tokenizer: Its tokenizer; `None` makes one, for a model that has no dictionaries.
        layers: `"all"` gives `(num_hidden_layers + 1, tokens, hidden_size)` arrays, context-free vectors (twice side
            by side) first; the others `(tokens, hidden_size)`: `"top"` the last layer, `"average"` the mean of all,
            `"mix"` the model's (first) scalar mix.
        device: Where to compute; `None` leaves the model where it is.
        max_batch_tokens: Words of a batch, sentence boundaries and padding included.
        cache_size: Number of words whose context-free vectors are remembered, those that were needed last.
            Remembering changes no vector, to the bit. A word takes `2 * hidden_size` bytes.
        vocabulary_cache: File of a vocabulary's context-free vectors (`hf-lineage elmo-cache`, or bilm-tf's token
            embedding file). Words that are not in it are read from their characters.
        vocab_file: The words of that file, where it does not hold them.

    Raises:
        ValueError: If an argument is out of range or does not fit the model.

    Example:

    ```python
    >>> from hf_lineage import ElmoEmbedder

    >>> embedder = ElmoEmbedder.from_pretrained("path/to/elmo")
    >>> embedder.embed_sentence(["A", "first", "sentence"]).shape
    (3, 3, 1024)
    ```
    """

    def __init__(
        self,
        model: ElmoModel,
        tokenizer: ElmoTokenizer | None = None,
        layers: str = "all",
        device: str | torch.device | None = None,
        max_batch_tokens: int = 2048,
        cache_size: int = 32768,
        vocabulary_cache: StrPath | None = None,
        vocab_file: StrPath | None = None,
    ):
        if not isinstance(model, ElmoModel):
            raise ValueError(f"model must be an ElmoModel, got {type(model).__name__}")
        tokenizer = tokenizer or ElmoTokenizer(max_characters_per_token=model.config.max_characters_per_token)
        _check_tokenizer(tokenizer, model.config)
        if max_batch_tokens < 1:
            raise ValueError(f"max_batch_tokens must be at least 1, got {max_batch_tokens}")
        if vocab_file is not None and vocabulary_cache is None:
            raise ValueError("vocab_file names the words of a vocabulary_cache: give that too")
        check_layers(layers)
        if layers == "mix":
            _check_mix(model)
        vocabulary = None
        if vocabulary_cache is not None:
            vocabulary = VocabularyCache(vocabulary_cache, vocab_file)
            vocabulary.check_model(model)
        self.model = model.to(device).eval() if device is not None else model.eval()
        self.tokenizer, self.layers, self.max_batch_tokens = tokenizer, layers, max_batch_tokens
        self.num_layers = model.config.num_hidden_layers + 1
        self.hidden_size = model.config.hidden_size
        self.word_vectors = WordVectors(model.character_encoder, tokenizer, cache_size, vocabulary)

    @classmethod
    def from_pretrained(cls, name_or_path: StrPath, dtype: torch.dtype | None = None, **arguments) -> "ElmoEmbedder":
        """Loads model and tokenizer from a folder or the Hub.

        Args:
            name_or_path: Folder or Hub name.
            dtype: What to compute in, such as `torch.bfloat16`; `None` for what the weights are saved in.
            arguments: As in the class.
        """
        model = ElmoModel.from_pretrained(name_or_path, dtype=dtype or "auto")
        return cls(model, ElmoTokenizer.from_pretrained(name_or_path), **arguments)

    @classmethod
    def from_original(cls, options_file: StrPath, weight_file: StrPath, **arguments) -> "ElmoEmbedder":
        """Reads a model in the original format, `options.json` and HDF5; further arguments as in the class."""
        return cls(convert_elmo_checkpoint(options_file, weight_file), **arguments)

    @property
    def cache_statistics(self) -> WordVectorStatistics:
        """How many words were remembered, and their share (`hit_rate`), since the start or `clear_cache`."""
        return self.word_vectors.statistics

    def clear_cache(self) -> None:
        """Forgets the remembered words."""
        self.word_vectors.clear()

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """Returns the float32 vectors of one tokenized sentence; shapes as `layers` says."""
        (vectors,) = self.embed_batch([sentence])
        return vectors

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Returns the vectors of tokenized sentences, an array each, in batches of at most `max_batch_tokens`."""
        sentences = [_checked_sentence(sentence) for sentence in batch]
        arrays = [self._empty() for _ in sentences]
        lengths = [len(sentence) + _BOUNDARIES if sentence else 0 for sentence in sentences]
        for places in batches_by_length(lengths, self.max_batch_tokens):
            for place, array in zip(places, self.encode([sentences[place] for place in places]), strict=True):
                arrays[place] = array
        return arrays

    def embed_sentences(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """Yields the vectors of tokenized sentences, in their order, while they are read.

        Sentences of similar length are computed together, of which a window of some batches is held.
        """
        stream = (Sentence("", _checked_sentence(sentence)) for sentence in sentences)
        for window in windows(stream, _BATCHES_PER_WINDOW * self.max_batch_tokens):
            yield from self.embed_batch([sentence.tokens for sentence in window])

    @torch.no_grad()
    def encode(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Returns the vectors of sentences, none of which is empty, in one batch."""
        begin, end = str(self.tokenizer.bos_token), str(self.tokenizer.eos_token)
        numbers: dict[str, int] = {}
        rows = [
            torch.tensor([numbers.setdefault(word, len(numbers)) for word in (begin, *sentence, end)])
            for sentence in batch
        ]
        table = self.word_vectors(list(numbers))
        lengths = torch.tensor([len(row) for row in rows], device=table.device)
        index = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(table.device)
        token_vectors = torch.nn.functional.embedding(index, table)
        config = self.model.config
        size = config.projection_size + config.lstm_hidden_size
        states = table.new_zeros(len(rows), config.num_hidden_layers, 2, size)
        encoded, _ = self.model.encoder(token_vectors, lengths, states)
        layers = [torch.cat([token_vectors, token_vectors], -1), *encoded]
        vectors = self.model.scalar_mixes[0](layers) if self.layers == "mix" else selected_layers(layers, self.layers)
        # a copy each, as a view would keep the whole batch in memory
        return [
            vectors[number, ..., 1 : length - 1, :].float().cpu().numpy().copy()
            for number, length in enumerate(map(len, rows))
        ]

    def _empty(self) -> np.ndarray:
        layers = (self.num_layers,) if self.layers == "all" else ()
        return np.zeros((*layers, 0, self.hidden_size), np.float32)


def _check_tokenizer(tokenizer: ElmoTokenizer, config: ElmoConfig) -> None:
    characters = config.max_characters_per_token
    if not isinstance(tokenizer, ElmoTokenizer) or tokenizer.max_characters_per_token != characters:
        given = getattr(tokenizer, "max_characters_per_token", type(tokenizer).__name__)
        raise ValueError(f"tokenizer must be an ElmoTokenizer with rows of {characters} characters, got {given}")
    reads_dictionary = bool(config.char_embedding_size) and config.char_vocabulary == "dictionary"
    for what, is_read, numbers, size in (
        ("characters", reads_dictionary, tokenizer.input_characters, config.char_vocab_size),
        ("words", config.word_vocab_size > 0, tokenizer.input_words, config.word_vocab_size),
    ):
        if is_read and not numbers:
            raise ValueError(f"the model has a dictionary of {what}, so give its own tokenizer; this one has none")
        if is_read and max(numbers.values()) >= size:
            raise ValueError(
                f"the model has {size} rows for its dictionary of {what}, that of the tokenizer needs "
                f"{max(numbers.values()) + 1}"
            )
    if tokenizer.token_row_size != config.token_row_size:
        raise ValueError("the tokenizer has a dictionary of words, the model has none")
    if config.char_embedding_size and not reads_dictionary and tokenizer.input_characters:
        raise ValueError("the tokenizer has a dictionary of characters, the model reads bytes")


def _check_mix(model: ElmoModel) -> None:
    if not len(model.scalar_mixes):
        raise ValueError("layers='mix' needs a model with a scalar mix")
    if model.config.scalar_mix_layer_norm is not None:
        raise ValueError(
            f"layers='mix' with scalar_mix_layer_norm={model.config.scalar_mix_layer_norm!r} would make the vectors "
            "of a sentence depend on the others in its batch: take 'all', 'top' or 'average'"
        )


def _checked_sentence(sentence: Sequence[str]) -> list[str]:
    if isinstance(sentence, str) or not all(isinstance(word, str) for word in sentence):
        raise ValueError(f"a sentence must be a list of words, got {sentence!r}")
    return list(sentence)


__all__ = ["ElmoEmbedder"]
