"""Any ELMo that is known, to a model, its tokenizer and what was found out about it."""

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from .conversion_elmo import convert_elmo_checkpoint, opened_vocabulary
from .manylangs_elmo import convert_manylangs
from .modeling_elmo import ElmoForPreTraining, ElmoModel
from .sources_elmo import (
    CHAR_DICTIONARY,
    CONFIGURATION,
    ENCODER,
    OPTIONS,
    TOKEN_EMBEDDER,
    VOCABULARY,
    WEIGHTS,
    WORD_DICTIONARY,
    ElmoSource,
    opened_source,
)
from .tokenization_elmo import ElmoTokenizer
from .word_input_elmo import convert_token_embeddings

StrPath = str | os.PathLike

BILM = "bilm-tf (options.json and HDF5; also AllenNLP and the NLPL repository)"
TOKEN_CACHE = "bilm-tf with token embeddings in place of characters (options.json, HDF5 and a vocabulary)"
MANYLANGS = "ELMoForManyLangs (dictionaries and weights of torch)"


@dataclass
class ConvertedElmo:
    """A model that was read.

    Attributes:
        model: In evaluation mode; `ElmoForPreTraining` if it was read with its softmax.
        tokenizer: Its tokenizer.
        format: What it was read from, in words.
        languages: Languages that the source names.
        files: Names of the files that were read, without their folders.
        notes: What a user should know about how they were read.
    """

    model: ElmoModel | ElmoForPreTraining
    tokenizer: ElmoTokenizer
    format: str
    languages: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def facts(self, language: str | None = None) -> dict[str, str]:
        """What it was read from, each fact in words.

        Args:
            language: Its language, if the user names one; otherwise those that the source names.
        """
        found = {
            "format": self.format,
            "files": ", ".join(self.files),
            "language": language or ", ".join(self.languages) or "not named",
        }
        return found | ({"notes": "; ".join(self.notes)} if self.notes else {})


def convert_elmo_source(
    source: StrPath,
    vocabulary: StrPath | None = None,
    token_embeddings: StrPath | None = None,
    with_softmax: bool = False,
) -> ConvertedElmo:
    """Reads the model in a folder, a zip or a file, whichever of the known formats it has.

    Args:
        source: Where it is.
        vocabulary: Word vocabulary of the softmax, or of the token embeddings, plain or `.gz`; by default the one in
            the source, if there is one.
        token_embeddings: HDF5 with the vectors of the vocabulary's words, to be read in place of characters.
        with_softmax: Whether to read the softmax over words as well, as in `convert_elmo_checkpoint`.

    Raises:
        ValueError: If the source holds no model that is known or is damaged, or its parts do not belong together.
    """
    with opened_source(source) as opened:
        if opened.format == "manylangs":
            return _convert_manylangs(opened, vocabulary, token_embeddings, with_softmax)
        converted = convert_elmo_files(
            opened.found[OPTIONS],
            opened.found[WEIGHTS],
            vocabulary or opened.found.get(VOCABULARY),
            token_embeddings,
            with_softmax,
            trust_vocabulary=vocabulary is None,
        )
    converted.languages = opened.languages
    converted.files = [_base_name(name) for name in opened.names.values()] + [
        Path(file).name for file in (vocabulary, token_embeddings) if file is not None
    ]
    converted.notes = [*([] if token_embeddings else opened.notes), *converted.notes]
    return converted


def convert_elmo_files(
    options: StrPath,
    weights: StrPath,
    vocabulary: StrPath | None = None,
    token_embeddings: StrPath | None = None,
    with_softmax: bool = False,
    trust_vocabulary: bool = False,
) -> ConvertedElmo:
    """Reads a model in the format of bilm-tf from files that are named one by one.

    Args:
        options: The options.
        weights: The weights.
        vocabulary: As in `convert_elmo_source`.
        token_embeddings: As in `convert_elmo_source`.
        with_softmax: As in `convert_elmo_source`.
        trust_vocabulary: Whether a vocabulary of another size than the options say is right rather than an error. It
            never is where the softmax is read.

    Raises:
        ValueError: As in `convert_elmo_source`.
    """
    files = [Path(file).name for file in (options, weights, vocabulary, token_embeddings) if file is not None]
    if with_softmax and token_embeddings is not None:
        raise ValueError("a softmax is read with a model that reads characters, not with token embeddings")
    with ExitStack() as stack:
        vocab_file = None if vocabulary is None else stack.enter_context(opened_vocabulary(vocabulary))
        if token_embeddings is not None:
            if vocab_file is None:
                raise ValueError(
                    f"{token_embeddings} needs the vocabulary whose words it has vectors of (--vocabulary)"
                )
            words_model, words_tokenizer = convert_token_embeddings(options, weights, token_embeddings, vocab_file)
            return ConvertedElmo(words_model, words_tokenizer, TOKEN_CACHE, files=files)
        model = convert_elmo_checkpoint(options, weights, with_softmax=with_softmax)
        tokenizer = ElmoTokenizer(
            vocab_file=vocab_file, max_characters_per_token=model.config.max_characters_per_token
        )
    notes = ["the softmax over words was read, too (`ElmoForPreTraining`)"] if with_softmax else []
    words = len(tokenizer.word_vocabulary) or None
    if words and model.config.vocab_size not in (None, words):
        contradiction = f"{vocabulary} has {words} words, the options say {model.config.vocab_size}"
        if with_softmax or not trust_vocabulary:
            raise ValueError(contradiction)
        notes.append(
            f"the vocabulary has {words} words, the options say {model.config.vocab_size}: the former is taken"
        )
    model.config.vocab_size = words or model.config.vocab_size
    return ConvertedElmo(model, tokenizer, BILM, files=files, notes=notes)


def _convert_manylangs(
    opened: ElmoSource, vocabulary: StrPath | None, token_embeddings: StrPath | None, with_softmax: bool
) -> ConvertedElmo:
    if with_softmax:
        raise ValueError("a softmax is read from bilm-tf's format only, and this is a model of ELMoForManyLangs")
    if vocabulary is not None or token_embeddings is not None:
        raise ValueError(
            "a model of ELMoForManyLangs has its own dictionaries: give no vocabulary or token embeddings"
        )
    model, tokenizer = convert_manylangs(
        opened.configuration,
        opened.found[TOKEN_EMBEDDER],
        opened.found[ENCODER],
        opened.found.get(CHAR_DICTIONARY),
        opened.found.get(WORD_DICTIONARY),
        source=opened.names.get(CONFIGURATION, "the published configuration"),
    )
    files = [_base_name(name) for name in opened.names.values()]
    return ConvertedElmo(model, tokenizer, MANYLANGS, opened.languages, files, opened.notes)


def _base_name(name: str) -> str:
    return name.rsplit("/", 1)[-1]


__all__ = ["BILM", "MANYLANGS", "TOKEN_CACHE", "ConvertedElmo", "convert_elmo_files", "convert_elmo_source"]
