"""Models that read words from a table: how their entries are numbered, and bilm-tf's token embeddings.

A token cache (bilm-tf's `dump_token_embeddings`, AllenNLP's cached vocabulary) holds the context-free vector of every
word of a vocabulary, which then takes the place of the characters. Models that bilm-tf trained on words have the same
dataset among their weights.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from ..hdf5 import own_dataset
from .character_codes_elmo import BEGIN_OF_SENTENCE, END_OF_SENTENCE
from .configuration_elmo import ElmoConfig
from .conversion_elmo import (
    check_readable,
    checked_config,
    dataset_names,
    lstm_fields_from_options,
    model_of_weights,
    read_json,
    read_weights,
)
from .modeling_elmo import ElmoModel
from .tokenization_elmo import RESERVED, ElmoTokenizer, numbered

StrPath = str | os.PathLike
EMBEDDING = "embedding"
SMALLEST_TABLE = max(RESERVED) + 1


def arranged(
    vocabulary: dict[str, int], table: torch.Tensor, entries: Iterable[str], special: dict[int, int]
) -> tuple[dict[str, int], torch.Tensor]:
    """Numbers the entries of a vocabulary as `ElmoTokenizer` does, around padding and the special characters.

    Args:
        vocabulary: The number of each entry in the original.
        table: `(numbers, width)`, their vectors there.
        entries: Those that a tokenizer looks up.
        special: Number of a special character or word here -> its number in the original.

    Returns:
        The number of each entry, and the vectors in the order of the numbers, 0 where there is none.
    """
    numbers = numbered(entries)
    result = table.new_zeros(max([SMALLEST_TABLE, *(number + 1 for number in numbers.values())]), table.shape[1])
    here = [*numbers.values(), *special]
    result[here] = table[[*(vocabulary[entry] for entry in numbers), *special.values()]]
    return numbers, result


def convert_token_embeddings(
    options_file: StrPath, weight_file: StrPath, embedding_file: StrPath, vocab_file: StrPath, **config_overrides: Any
) -> tuple[ElmoModel, ElmoTokenizer]:
    """Reads a biLM in the original format with a table of words for input, in place of characters.

    A word that is not in the vocabulary has the vector of `<UNK>`, as in bilm-tf.

    Args:
        options_file: As in `convert_elmo_checkpoint`; options of characters do not count.
        weight_file: The LSTMs' weights; others in it do not count.
        embedding_file: HDF5 with one dataset `embedding` of shape `(words, projection_dim)`; the weights themselves
            if the model was trained on words.
        vocab_file: The word of each row, one a line, UTF-8, `<S>`, `</S>` and `<UNK>` among them.
        config_overrides: Further fields of `ElmoConfig`.

    Raises:
        ValueError: As in `convert_elmo_checkpoint`, or if the vocabulary and the table do not belong together.
    """
    for path in (options_file, weight_file, embedding_file, vocab_file):
        check_readable(path)
    fields = lstm_fields_from_options(read_json(options_file), str(options_file))
    vocabulary = _read_words(vocab_file)
    table = _read_table(embedding_file, len(vocabulary), fields["hidden_size"] // 2, vocab_file)
    special = {BEGIN_OF_SENTENCE: vocabulary["<S>"], END_OF_SENTENCE: vocabulary["</S>"]}
    numbers, table = arranged(vocabulary, table, vocabulary, special)
    config = checked_config(
        {
            **fields,
            "char_embedding_size": 0,
            "word_vocab_size": len(table),
            "word_embedding_size": table.shape[1],
            **config_overrides,
        },
        str(options_file),
    )
    weights = read_weights(weight_file, config)
    weights["character_encoder.word_embedding.weight"] = table
    model = model_of_weights(config, weights)
    return model, tokenizer_of_dictionaries(config, words=numbers)


def tokenizer_of_dictionaries(
    config: ElmoConfig, characters: dict[str, int] | None = None, words: dict[str, int] | None = None, **settings: Any
) -> ElmoTokenizer:
    """Makes a tokenizer of dictionaries that no file holds yet; settings as in `ElmoTokenizer`.

    Text is split at white space unless they say otherwise, for models that were trained on text that is tokenized.
    """
    with tempfile.TemporaryDirectory() as folder:
        files: dict[str, Any] = {}
        for name, dictionary in (("char_vocab_file", characters), ("word_vocab_file", words)):
            if dictionary is not None:
                files[name] = Path(folder) / f"{name}.json"
                files[name].write_text(json.dumps(dictionary), encoding="utf-8")
        settings = {"text_split": "whitespace", **settings}
        return ElmoTokenizer(**files, max_characters_per_token=config.max_characters_per_token, **settings)


def _read_words(path: StrPath) -> dict[str, int]:
    words = list(lines_of(path))
    vocabulary = {word: row for row, word in enumerate(words)}
    if missing := [word for word in ("<S>", "</S>", "<UNK>") if word not in vocabulary]:
        raise ValueError(f"{path} has no line {missing[0]}: a model that reads words needs <S>, </S> and <UNK>")
    if len(vocabulary) != len(words):
        repeated = next(word for row, word in enumerate(words) if vocabulary[word] != row)
        raise ValueError(f"{path} has the word {repeated!r} more than once")
    return vocabulary


def lines_of(path: StrPath) -> Iterator[str]:
    """The lines of a UTF-8 file. Only a line feed ends a line, not what Unicode has besides.

    Raises:
        ValueError: If the file is not UTF-8.
    """
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            yield from (line.rstrip("\r\n") for line in file)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from error


def _read_table(path: StrPath, rows: int, width: int, vocab_file: StrPath) -> torch.Tensor:
    try:
        with h5py.File(path, "r") as file:
            if EMBEDDING not in dataset_names(file):
                found = ", ".join(sorted(dataset_names(file))[:5]) or "nothing"
                raise ValueError(f"{path} has no dataset {EMBEDDING!r}, it has {found}")
            table = own_dataset(file, EMBEDDING, path)
            shape = table.shape
            if shape != (rows, width):
                raise ValueError(
                    f"{path}: dataset {EMBEDDING!r} has shape {shape}, but {vocab_file} has {rows} words and the "
                    f"options say 'lstm.projection_dim': {width}"
                )
            return torch.from_numpy(table[...].astype(np.float32, copy=False))
    except OSError as error:
        raise ValueError(f"{path} is not a complete HDF5 file: {error}") from error


__all__ = [
    "SMALLEST_TABLE",
    "arranged",
    "convert_token_embeddings",
    "lines_of",
    "tokenizer_of_dictionaries",
]
