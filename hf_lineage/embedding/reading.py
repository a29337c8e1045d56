"""Sentences of text files: plain text, JSON lines and CoNLL."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..text_files import TextFile

INPUT_FORMATS = ("text", "jsonl", "conllu", "conll")
TOKENIZATIONS = ("whitespace", "words")
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".conllu": "conllu", ".conll": "conll"}
_FORM = 2  # the column of CoNLL-U that holds the word


class Sentence(NamedTuple):
    """A sentence of the input: what it is called in the index of sentences, and its words."""

    text: str
    tokens: list[str]


class SentenceReader:
    """The sentences of a file, read anew at each pass.

    - `"text"`: one sentence a line. A blank line is a sentence without words.
    - `"jsonl"`: on each line a list of words, a text, or an object that holds one of them. A blank line is a sentence
      without words.
    - `"conllu"`: CoNLL-U; the syntactic words, without comments, multiword tokens and empty nodes.
    - `"conll"`: one word a line and blank lines between sentences; columns parted by tabs or, where a line has none,
      by spaces.

    Args:
        path: The file, UTF-8, plain, `.gz` or `.zst`, or `-` for standard input.
        input_format: One of those; `None` goes by the name of the file, where `"text"` is what no other name says.
        tokenization: How a text becomes words: `"whitespace"`, or `"words"` as `ElmoTokenizer` cuts it.
        field: Key of the words or the text in the objects of `"jsonl"`; `None` takes `tokens`, `text` or `sentence`,
            whichever comes first here.
        column: Column of the word in `"conll"`, from 1.
        errors: `"strict"` to refuse what is not UTF-8, `"replace"` to read U+FFFD in its place.

    Raises:
        ValueError: If there is no such file or an argument is out of range.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        input_format: str | None = None,
        tokenization: str = "whitespace",
        field: str | None = None,
        column: int = 1,
        errors: str = "strict",
    ):
        input_format = input_format or _format_of(Path(path))
        if input_format not in INPUT_FORMATS:
            raise ValueError(f"the input format must be one of {', '.join(INPUT_FORMATS)}, got {input_format!r}")
        if tokenization not in TOKENIZATIONS:
            raise ValueError(f"the tokenization must be one of {', '.join(TOKENIZATIONS)}, got {tokenization!r}")
        if column < 1:
            raise ValueError(f"the column must be at least 1, got {column}")
        if field is not None and input_format != "jsonl":
            raise ValueError(f"a field can be named for JSON lines only, the input format is {input_format!r}")
        if column != 1 and input_format != "conll":
            raise ValueError(f"a column can be named for 'conll' only, the input format is {input_format!r}")
        self.input_format, self.field, self.column = input_format, field, column
        self.tokenization = tokenization
        self._file = TextFile(path, errors)
        self._tokenize = _tokenizer(tokenization)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides, beside the file, which sentences are read."""
        return {
            "input_format": self.input_format,
            "tokenization": self.tokenization,
            "field": self.field,
            "column": self.column,
        }

    def __iter__(self) -> Iterator[Sentence]:
        """Reads the file.

        Raises:
            ValueError: If it is damaged, not UTF-8, or not of its format.
        """
        lines = enumerate(self._file.lines(), 1)
        if self.input_format == "text":
            return (self._of_text(line) for _, line in lines)
        if self.input_format == "jsonl":
            return (self._of_json(number, line) for number, line in lines)
        return self._of_columns(lines)

    def _of_text(self, text: str) -> Sentence:
        return Sentence(text.strip(), self._tokenize(text))

    def _of_json(self, number: int, line: str) -> Sentence:
        if not line.strip():
            return Sentence("", [])
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise self._error(number, f"no JSON: {error}") from error
        if isinstance(value, dict):
            value = self._field(number, value)
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            sentence = Sentence(" ".join(value), value)
        elif isinstance(value, str):
            sentence = self._of_text(value)
        else:
            raise self._error(number, f"neither a text nor a list of words: {_shortened(value)}")
        try:
            sentence.text.encode()
        except UnicodeEncodeError as error:
            raise self._error(number, f"a half of a surrogate pair, {error.object[error.start]!r}") from error
        return sentence

    def _field(self, number: int, value: dict) -> Any:
        names = ("tokens", "text", "sentence") if self.field is None else (self.field,)
        for name in names:
            if name in value:
                return value[name]
        raise self._error(number, f"no field {' or '.join(map(repr, names))}, but {', '.join(map(repr, value))}")

    def _of_columns(self, lines: Iterator[tuple[int, str]]) -> Iterator[Sentence]:
        word = self._conllu_word if self.input_format == "conllu" else self._conll_word
        tokens: list[str] = []
        is_inside = False  # a sentence of comments alone is one
        for number, line in lines:
            if line.strip():
                is_inside = True
                if (token := word(number, line)) is not None:
                    tokens.append(token)
            elif is_inside:
                yield Sentence(" ".join(tokens), tokens)
                tokens, is_inside = [], False
        if is_inside:
            yield Sentence(" ".join(tokens), tokens)

    def _conllu_word(self, number: int, line: str) -> str | None:
        if line.startswith("#"):
            return None
        columns = line.split("\t")
        if len(columns) < _FORM:
            raise self._error(number, f"not the columns of CoNLL-U, which tabs part: {_shortened(line)}")
        identity = columns[0]
        if identity.isdecimal():
            return columns[_FORM - 1]
        parts = identity.replace("-", ".", 1).split(".")
        if len(parts) != 2 or not all(part.isdecimal() for part in parts):
            raise self._error(number, f"the ID of a word must be 1, 1-2 or 1.1, got {_shortened(identity)}")
        return None

    def _conll_word(self, number: int, line: str) -> str:
        columns = line.split("\t") if "\t" in line else line.split(" ")
        if len(columns) < self.column:
            raise self._error(number, f"no column {self.column}: {_shortened(line)}")
        return columns[self.column - 1]

    def _error(self, number: int, what: str) -> ValueError:
        return ValueError(f"{self._file.path}, line {number}: {what}")


def _format_of(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix not in (".gz", ".zst")]
    return _SUFFIXES.get(suffixes[-1], "text") if suffixes else "text"


def _tokenizer(tokenization: str) -> Callable[[str], list[str]]:
    if tokenization == "whitespace":
        return str.split
    from .. import ElmoTokenizer

    return ElmoTokenizer().tokenize


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


__all__ = ["INPUT_FORMATS", "TOKENIZATIONS", "Sentence", "SentenceReader"]
