"""A model with a head over ELMo's vectors and static ones (word2vec, GloVe)."""

import os
from typing import Any

import torch
from transformers import PreTrainedModel

from ..static_vectors import StaticVectors
from .tokenization_elmo import ElmoTokenizer
from .word_input_elmo import arranged, tokenizer_of_dictionaries


def load_with_static_vectors(
    model_class: type[PreTrainedModel], path: str | os.PathLike, vectors: StaticVectors, **config_overrides: Any
) -> tuple[PreTrainedModel, ElmoTokenizer]:
    """Loads a biLM for a task, static word vectors concatenated to its own.

    The static vectors are frozen and saved with the model. A word that has none has zeros; where the file has no upper
    case, a word is looked up in lower case if it is not there as it is.

    Args:
        model_class: `ElmoForTokenClassification` or `ElmoForSequenceClassification`.
        path: The folder of an ELMo and its tokenizer.
        vectors: As `read_static_vectors` gives them.
        config_overrides: Further fields of `ElmoConfig`, such as `num_labels` and `classifier_lstm_size`.

    Returns:
        The model and the tokenizer that gives it the numbers of the words.

    Raises:
        ValueError: If the model has input words of its own already.
    """
    tokenizer = ElmoTokenizer.from_pretrained(path)
    if tokenizer.input_words:
        raise ValueError(f"{path} reads words already, whose numbers are not those of the static vectors")
    unknown = str(tokenizer.unk_token)
    words = {word: number for number, word in enumerate(vectors.words)}
    table = torch.from_numpy(vectors.vectors)
    if unknown not in words:
        words[unknown], table = len(words), torch.cat([table, table.new_zeros(1, table.shape[1])])
    numbers, table = arranged(words, table, words, {})
    model = model_class.from_pretrained(
        path, static_embedding_size=table.shape[1], word_vocab_size=len(table), **config_overrides
    )
    model.features.static_embedding.copy_(table)
    extended = tokenizer_of_dictionaries(
        model.config,
        tokenizer.input_characters or None,
        numbers,
        text_split=tokenizer.text_split,
        lowercase_words=vectors.is_lower_cased,
        add_sentence_boundaries=tokenizer.add_sentence_boundaries,
        bos_token=str(tokenizer.bos_token),
        eos_token=str(tokenizer.eos_token),
        unk_token=unknown,
        pad_token=str(tokenizer.pad_token),
    )
    extended.word_vocabulary = dict(tokenizer.word_vocabulary)
    return model, extended


__all__ = ["load_with_static_vectors"]
