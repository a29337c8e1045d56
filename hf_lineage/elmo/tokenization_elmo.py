"""Tokenizer of ELMo: text to words, words to rows of character ids."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np
import regex
from transformers import BatchEncoding, PreTrainedTokenizer
from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy
from transformers.utils import to_py_obj

from .character_codes_elmo import BEGIN_OF_SENTENCE, BEGIN_OF_WORD, END_OF_SENTENCE, END_OF_WORD, PADDING
from .tokenizer_origin_elmo import check_tokenizer_origin

VOCAB_FILES_NAMES = {
    "vocab_file": "vocab.txt",
    "char_vocab_file": "char_vocab.json",
    "word_vocab_file": "word_vocab.json",
}
# Numbers that a dictionary cannot give to its entries, since they are padding and the special characters (and words)
RESERVED = frozenset((0, BEGIN_OF_SENTENCE, END_OF_SENTENCE, BEGIN_OF_WORD, END_OF_WORD, PADDING))

# joiners and soft hyphens, which have no shape of their own, belong to the word that they stand in
_CHARACTER = r"[[\p{L}\p{M}\p{N}_\u200c\u200d\u00ad]--\p{Han}]"
_CLITIC = r"['’](?:s|m|re|ve|ll|d)\b"
# English clitics part from their word as in the Penn Treebank ("do n't", "John 's"), on which ELMo's training text was
# tokenized; ideographs stand alone, as there is no space between Chinese words; everything else is cut at punctuation.
_WORDS = regex.compile(
    rf"""
    {_CHARACTER}+?(?=n['’]t\b) | n['’]t\b | {_CLITIC}
    | \d+(?:[.,:]\d+)+
    | (?:\p{{L}}\.){{2,}}
    | \p{{Han}}
    | {_CHARACTER}+(?:(?!{_CLITIC})[-'’]{_CHARACTER}+)*
    | \.{{2,}} | -{{2,}}
    | \S
    """,
    regex.VERBOSE | regex.IGNORECASE | regex.VERSION1,
)
_NOT_SPACE = regex.compile(r"\S+")

CharacterIds = tuple[int, ...]


class Word(NamedTuple):
    """A word of the input: its text, where it stands, its number in its sentence, and the number of the sentence."""

    text: str
    start: int
    end: int
    position: int
    sentence: int


class ElmoBatchEncoding(BatchEncoding):
    """A `BatchEncoding` that knows which word each token is."""

    words: list[list[Word | None]]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "words": self.words}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.words = state["words"]

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """Index of each token's word in its sentence, `None` for sentence boundaries and padding."""
        return [None if word is None else word.position for word in self.words[batch_index]]

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """0 for a token of the first sentence, 1 for one of the second, `None` for sentence boundaries and padding."""
        return [None if word is None else word.sentence for word in self.words[batch_index]]

    def tokens(self, batch_index: int = 0) -> list[str | None]:
        """The text of each token, `None` for sentence boundaries and padding."""
        return [None if word is None else word.text for word in self.words[batch_index]]


def numbered(entries: Iterable[str]) -> dict[str, int]:
    """Numbers entries as `ElmoTokenizer` wants them: from 1, around padding and the special characters."""
    return dict(zip(entries, (number for number in count(1) if number not in RESERVED), strict=False))


class ElmoTokenizer(PreTrainedTokenizer):
    r"""Splits text into words and gives each word as a row of byte ids, as ELMo's character encoder reads it.

    A row is: begin of word (259), each byte of the word's UTF-8 form plus one (1-256), end of word (260), then padding
    (261) up to `max_characters_per_token`; a longer word loses its last bytes. The begin of sentence `<S>` is the
    single character 257, the end of sentence `</S>` 258, and a padding token is a row of zeros. Nothing is lower-cased
    or normalized, and no word is unknown. (AllenNLP, `ELMoTokenCharactersIndexer`; bilm-tf, `UnicodeCharsVocabulary`.)

    So `input_ids` are `(batch, tokens, characters)`, and "an id" is a tuple of `max_characters_per_token` integers.
    `token_type_ids` tell the sentences of a pair apart.

    Models that were not trained on bytes have dictionaries. With `char_vocab_file` each Unicode character of a word
    counts as one, by its number there (ELMoForManyLangs); the special characters stay as they are. With
    `word_vocab_file` the number of the word itself, as far as it was not cut, stands behind its characters.

    Args:
        vocab_file (`str`, *optional*):
            Word vocabulary of the pretraining softmax, one word a line, beginning with `<S>`, `</S>` and `<UNK>`. Only
            `convert_tokens_to_word_ids` needs it.
        char_vocab_file (`str`, *optional*):
            JSON object with the number of each character and of `unk_token`; without it, characters are bytes.
        word_vocab_file (`str`, *optional*):
            JSON object with the number of each word that the model has a vector of, and of `unk_token`; without it,
            rows have characters only.
        lowercase_words (`bool`, defaults to `False`):
            Whether a word that is not in `word_vocab_file` is looked up in lower case.
        max_characters_per_token (`int`, defaults to 50):
            Length of a row; must be the model's.
        text_split (`str`, defaults to `"words"`):
            How plain text becomes words: `"words"` cuts at white space and punctuation, parts English clitics from
            their word and ideographs from each other; `"whitespace"` cuts at white space only, for text that is
            tokenized already. Lists of words (`is_split_into_words=True`) are taken as they are.
        add_sentence_boundaries (`bool`, defaults to `False`):
            Whether to put `<S>` and `</S>` around each sentence. Leave it to the model (`config
            .add_sentence_boundaries`), or switch it on here and off there.
        bos_token, eos_token, unk_token, pad_token (`str`):
            Names of the begin of sentence, the end of sentence, the unknown word of the word vocabulary, and padding.
            The names of the first two in a text stand for the boundaries themselves, as in AllenNLP.

    Raises:
        ValueError: If an argument is out of range or the vocabulary file is not as described.

    Example:

    ```python
    >>> from hf_lineage import ElmoTokenizer

    >>> tokenizer = ElmoTokenizer()
    >>> tokenizer.tokenize("It isn't over.")
    ['It', 'is', "n't", 'over', '.']
    >>> tokenizer("It isn't over.", return_tensors="pt").input_ids.shape
    torch.Size([1, 5, 50])
    ```
    """

    vocab_files_names = VOCAB_FILES_NAMES
    model_input_names: ClassVar[list[str]] = ["input_ids", "token_type_ids", "attention_mask"]

    def __init__(
        self,
        vocab_file: str | os.PathLike | None = None,
        char_vocab_file: str | os.PathLike | None = None,
        word_vocab_file: str | os.PathLike | None = None,
        max_characters_per_token: int = 50,
        text_split: str = "words",
        add_sentence_boundaries: bool = False,
        lowercase_words: bool = False,
        bos_token: str = "<S>",
        eos_token: str = "</S>",
        unk_token: str = "<UNK>",
        pad_token: str = "<pad>",
        **kwargs,
    ):
        if not isinstance(max_characters_per_token, int) or max_characters_per_token < 3:
            raise ValueError(
                f"max_characters_per_token must be an integer of at least 3, got {max_characters_per_token!r}"
            )
        if text_split not in ("words", "whitespace"):
            raise ValueError(f"text_split must be 'words' or 'whitespace', got {text_split!r}")
        self.max_characters_per_token = max_characters_per_token
        self.text_split = text_split
        self.add_sentence_boundaries = add_sentence_boundaries
        self.lowercase_words = lowercase_words
        self.word_vocabulary: dict[str, int] = {}
        # of the input; that above is the output's
        self.input_characters = _read_dictionary(char_vocab_file, str(unk_token))
        self.input_words = _read_dictionary(word_vocab_file, str(unk_token))
        self._characters_of_numbers = {number: entry for entry, number in self.input_characters.items()}
        self._words_of_numbers = {
            number: entry for entry, number in self.input_words.items() if entry != str(unk_token)
        }
        kwargs.pop("auto_map", None)  # transformers adds it where it saves the code that it names
        super().__init__(
            char_vocab_file=char_vocab_file,
            word_vocab_file=word_vocab_file,
            max_characters_per_token=max_characters_per_token,
            text_split=text_split,
            add_sentence_boundaries=add_sentence_boundaries,
            lowercase_words=lowercase_words,
            bos_token=bos_token,
            eos_token=eos_token,
            unk_token=unk_token,
            pad_token=pad_token,
            **kwargs,
        )
        if vocab_file is not None:
            self.word_vocabulary = read_word_vocabulary(vocab_file, (str(bos_token), str(eos_token), str(unk_token)))

    @classmethod
    def _from_pretrained(cls, resolved_vocab_files, pretrained_model_name_or_path, *args, **kwargs):
        check_tokenizer_origin(cls, resolved_vocab_files)
        return super()._from_pretrained(resolved_vocab_files, pretrained_model_name_or_path, *args, **kwargs)

    @property
    def pad_token_id(self) -> int:
        """The number that a padding row consists of."""
        return 0

    @property
    def bos_token_id(self) -> int:
        """Id of the begin of sentence in the word vocabulary, as in `ElmoConfig`; its row is no integer."""
        return 0

    @property
    def eos_token_id(self) -> int:
        """Id of the end of sentence in the word vocabulary, as in `ElmoConfig`; its row is no integer."""
        return 1

    @property
    def unk_token_id(self) -> int:
        """Id of the unknown word in the word vocabulary, as in `ElmoConfig`; no word's row is unknown."""
        return 2

    @property
    def vocab_size(self) -> int:
        """Number of different characters, padding included."""
        return max([PADDING, *self.input_characters.values()]) + 1

    @property
    def token_row_size(self) -> int:
        """Length of a row: the characters and, with `word_vocab_file`, the word."""
        return self.max_characters_per_token + bool(self.input_words)

    def get_vocab(self) -> dict[str, CharacterIds]:
        """The words of a single ASCII character, and the special and added tokens; every other word is known too.

        With a dictionary of characters, the words of a single one of them.
        """
        words = [entry for entry in self.input_characters if len(entry) == 1] or [chr(code) for code in range(33, 127)]
        added = getattr(self, "_added_tokens_encoder", {})
        return {word: self._convert_token_to_id(word) for word in [*words, *added]}

    def _split(self, text: str, sentence: int) -> list[Word]:
        pattern = _NOT_SPACE if self.text_split == "whitespace" else _WORDS
        spans, offset = [], 0
        pieces = [text] if self.text_split == "whitespace" else self.tokens_trie.split(text)
        for piece in pieces:
            if piece in self._added_tokens_encoder:
                spans.append((offset, offset + len(piece)))
            else:
                spans += [(offset + match.start(), offset + match.end()) for match in pattern.finditer(piece)]
            offset += len(piece)
        return [Word(text[start:end], start, end, index, sentence) for index, (start, end) in enumerate(spans)]

    def tokenize(self, text: str, **kwargs) -> list[str]:
        """Splits text into words."""
        return [word.text for word in self._split(text, 0)]

    def _words(self, text: str | Sequence[str], is_split_into_words: bool, sentence: int) -> list[Word]:
        if is_split_into_words:
            if not isinstance(text, (list, tuple)) or not all(isinstance(word, str) for word in text):
                raise ValueError(f"with is_split_into_words=True a sentence must be a list of strings, got {text!r}")
            return [Word(word, 0, len(word), index, sentence) for index, word in enumerate(text)]
        if not isinstance(text, str):
            raise ValueError(
                f"a text must be a string, or a list of words with is_split_into_words=True; got {type(text).__name__}"
            )
        return self._split(text, sentence)

    def _encode_plus(
        self,
        text,
        text_pair=None,
        add_special_tokens: bool = True,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors=None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        verbose: bool = True,
        **kwargs,
    ) -> ElmoBatchEncoding:
        rows, is_batch = _as_batch(text, text_pair, is_split_into_words)
        if not rows:
            raise ValueError("text is a batch of no texts")
        encoded = [
            self._encode_row(
                sentence,
                second,
                is_split_into_words,
                return_offsets_mapping,
                add_special_tokens=add_special_tokens,
                truncation=truncation_strategy.value,
                max_length=max_length,
                stride=stride,
                return_token_type_ids=return_token_type_ids,
                return_attention_mask=False,
                return_overflowing_tokens=return_overflowing_tokens,
                return_special_tokens_mask=return_special_tokens_mask,
                return_length=return_length,
                verbose=verbose,
            )
            for sentence, second in rows
        ]
        words = [words for _, words in encoded]
        data: dict[str, Any] = {}
        for name in {name: None for fields, _ in encoded for name in fields}:
            # a row that was not cut has no overflow
            data[name] = [fields.get(name, 0 if name == "num_truncated_tokens" else []) for fields, _ in encoded]
        offsets = data.pop("offset_mapping", None)
        overflow = {name: data.pop(name) for name in ("overflowing_tokens", "num_truncated_tokens") if name in data}
        padding_side = padding_side or self.padding_side
        padded = self.pad(
            data,
            padding=padding_strategy.value,
            max_length=max_length,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            return_attention_mask=return_attention_mask,
            return_tensors=return_tensors,
        )
        if not return_tensors:  # the overflow differs in length from row to row
            padded.update(overflow)
        lengths = [len(ids) for ids in padded["input_ids"]]
        words = [_padded(row, length, None, padding_side) for row, length in zip(words, lengths, strict=True)]
        if offsets is not None:
            offsets = [_padded(row, n, (0, 0), padding_side) for row, n in zip(offsets, lengths, strict=True)]
            padded["offset_mapping"] = BatchEncoding({"": offsets}, tensor_type=return_tensors)[""]
        if not is_batch and not return_tensors:
            padded = {name: value[0] for name, value in padded.items()}
        encoding = ElmoBatchEncoding(dict(padded))
        encoding.words = words
        return encoding

    def _encode_row(
        self, text, text_pair, is_split_into_words: bool, return_offsets_mapping: bool, **options
    ) -> tuple[dict[str, Any], list[Word | None]]:
        """Encodes one sentence or pair. Truncation and the like work on the words' numbers, which then become rows."""
        words = self._words(text, is_split_into_words, 0)
        first = list(range(len(words)))
        second = None
        if text_pair is not None:
            words += self._words(text_pair, is_split_into_words, 1)
            second = list(range(len(first), len(words)))
        fields = dict(self.prepare_for_model(first, second, **options))
        aligned = [words[number] if isinstance(number, int) else None for number in fields["input_ids"]]
        for name in ("input_ids", "overflowing_tokens"):
            if name in fields:
                fields[name] = [
                    self._row(words[number].text) if isinstance(number, int) else number for number in fields[name]
                ]
        if not options["add_special_tokens"] and "token_type_ids" in fields:
            # the base class would take a pair without boundaries for one sentence
            fields["token_type_ids"] = [0 if word is None else word.sentence for word in aligned]
        if return_offsets_mapping:
            fields["offset_mapping"] = [(0, 0) if word is None else (word.start, word.end) for word in aligned]
        return fields, aligned

    def truncate_sequences(
        self,
        ids: list,
        pair_ids: list | None = None,
        num_tokens_to_remove: int = 0,
        truncation_strategy: str | TruncationStrategy = "longest_first",
        stride: int = 0,
    ) -> tuple[list, list | None, list]:
        """Cuts sentences by words; arguments and results as in `PythonBackend.truncate_sequences`.

        Of a pair, `"longest_first"` takes each word from the sentence that is then the longer one (the second, of
        equals). The base class warns at every pair that it does not return what it cuts, and makes no sentence of one
        that loses all its words.
        """
        if pair_ids is None or TruncationStrategy(truncation_strategy) != TruncationStrategy.LONGEST_FIRST:
            return super().truncate_sequences(ids, pair_ids, num_tokens_to_remove, truncation_strategy, stride)
        lengths = [len(ids), len(pair_ids)]
        for _ in range(min(num_tokens_to_remove, sum(lengths))):
            lengths[0 if lengths[0] > lengths[1] else 1] -= 1
        if self.truncation_side == "left":
            first, second = ids[len(ids) - lengths[0] :], pair_ids[len(pair_ids) - lengths[1] :]
        else:
            first, second = ids[: lengths[0]], pair_ids[: lengths[1]]
        return first, second, []

    def build_inputs_with_special_tokens(self, token_ids_0: list, token_ids_1: list | None = None) -> list:
        """Puts the boundaries around each sentence, if `add_sentence_boundaries`."""
        sentences = [token_ids_0] if token_ids_1 is None else [token_ids_0, token_ids_1]
        if not self.add_sentence_boundaries:
            return [token_id for sentence in sentences for token_id in sentence]
        begin, end = self._convert_token_to_id(self.bos_token), self._convert_token_to_id(self.eos_token)
        return [token_id for sentence in sentences for token_id in (begin, *sentence, end)]

    def create_token_type_ids_from_sequences(self, token_ids_0: list, token_ids_1: list | None = None) -> list[int]:
        """0 for the first sentence and 1 for the second, their boundaries included."""
        added = 2 * int(self.add_sentence_boundaries)
        second = 0 if token_ids_1 is None else len(token_ids_1) + added
        return [0] * (len(token_ids_0) + added) + [1] * second

    def get_special_tokens_mask(
        self, token_ids_0: list, token_ids_1: list | None = None, already_has_special_tokens: bool = False
    ) -> list[int]:
        """1 for a sentence boundary (or padding, in ids that are complete already), 0 for a word."""
        if already_has_special_tokens:
            special = {self._convert_token_to_id(token) for token in (self.bos_token, self.eos_token, self.pad_token)}
            return [int(tuple(row) in special) for row in token_ids_0]
        around = [1] * int(self.add_sentence_boundaries)
        mask = [*around, *([0] * len(token_ids_0)), *around]
        return mask if token_ids_1 is None else [*mask, *around, *([0] * len(token_ids_1)), *around]

    def pad(
        self,
        encoded_inputs,
        padding: bool | str | PaddingStrategy = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors=None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Pads encoded sentences; arguments as in `PreTrainedTokenizerBase.pad`.

        The base class takes ids for integers, so the rows wait aside while it pads their numbers.
        """
        if isinstance(encoded_inputs, (list, tuple)) and encoded_inputs and isinstance(encoded_inputs[0], Mapping):
            names = encoded_inputs[0].keys()
            encoded_inputs = {name: [example[name] for example in encoded_inputs] for name in names}
        if "input_ids" not in encoded_inputs:
            raise ValueError(f"the encodings to pad must have input_ids, got {list(encoded_inputs)}")
        data = {name: to_py_obj(value) for name, value in encoded_inputs.items()}
        is_batch = _depth(data["input_ids"]) != 2
        sentences = data["input_ids"] if is_batch else [data["input_ids"]]
        rows = [self._padding_row()]  # number 0 is pad_token_id
        rows += [self._checked_row(row) for sentence in sentences for row in sentence]
        numbers = iter(range(1, len(rows)))
        numbered = [[next(numbers) for _ in sentence] for sentence in sentences]
        data["input_ids"] = numbered if is_batch else numbered[0]
        if return_tensors and numbered and not any(numbered):
            padding, max_length = "max_length", max(max_length or 0, 1)  # the model wants at least one token
        padded = super().pad(
            data,
            padding=padding,
            max_length=max_length,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            return_attention_mask=return_attention_mask,
            return_tensors=None,
            verbose=verbose,
        )
        padded = dict(padded)
        sentences = padded["input_ids"] if is_batch else [padded["input_ids"]]
        sentences = [[rows[number] for number in sentence] for sentence in sentences]
        padded["input_ids"] = sentences if is_batch else sentences[0]
        if return_tensors and len({len(sentence) for sentence in sentences}) == 1:
            array = np.array(sentences, dtype=np.int64)  # one pass over all numbers
            padded["input_ids"] = array if is_batch else array[0]
        return BatchEncoding(padded, tensor_type=return_tensors)

    def _checked_row(self, row: Any) -> CharacterIds:
        if not isinstance(row, (list, tuple)) or len(row) != self.token_row_size:
            given = f"a row of {len(row)}" if isinstance(row, (list, tuple)) else repr(row)
            raise ValueError(f"an id must be a row of {self.token_row_size} integers, got {given}")
        return tuple(row)

    def _row(self, word: str) -> CharacterIds:
        """The row of a word in a text. Padding's name is a word like any other there."""
        length = self.max_characters_per_token
        if word in (self.bos_token, self.eos_token):
            boundary = BEGIN_OF_SENTENCE if word == self.bos_token else END_OF_SENTENCE
            return _boundary_row(boundary, length) + (boundary,) * bool(self.input_words)
        if self.input_characters:
            word = word[: length - 2]
            unknown = self.input_characters[str(self.unk_token)]
            row = _enclosed([self.input_characters.get(character, unknown) for character in word], length)
        else:
            row = _word_row(word, length)
        if self.input_words:
            row += (self._word_number(word),)
        return row

    def _word_number(self, word: str) -> int:
        if word not in self.input_words and self.lowercase_words:
            word = word.lower()
        return self.input_words.get(word, self.input_words[str(self.unk_token)])

    def _padding_row(self) -> CharacterIds:
        return (0,) * self.token_row_size

    def _convert_token_to_id(self, token: str) -> CharacterIds:
        return self._padding_row() if token == self.pad_token else self._row(token)

    def _convert_token_to_id_with_added_voc(self, token: str) -> CharacterIds:
        return self._convert_token_to_id(token)

    def _convert_id_to_token(self, index: Any) -> str:
        row = self._checked_row(index)
        for token in (self.pad_token, self.bos_token, self.eos_token):
            if row == self._convert_token_to_id(token):
                return token
        if row[-1] in self._words_of_numbers and not self.lowercase_words:  # empty unless the last number is a word
            return self._words_of_numbers[row[-1]]
        # read up to the end of the word, so that nothing behind it counts; a cut last character is dropped
        row = row[: self.max_characters_per_token]
        body = row[1 : row.index(END_OF_WORD)] if END_OF_WORD in row else row[1:]
        if self.input_characters:
            entries = (self._characters_of_numbers.get(number, "") for number in body)
            return "".join(entry if len(entry) == 1 else "\N{REPLACEMENT CHARACTER}" for entry in entries)
        return bytes(value - 1 for value in body if 1 <= value <= 256).decode("utf-8", errors="ignore")

    def convert_ids_to_tokens(self, ids, skip_special_tokens: bool = False) -> str | list[str]:
        """Converts one row to its word, or a list of rows to a list of words."""
        ids = to_py_obj(ids)
        if isinstance(ids, int) or (_depth(ids) == 1 and ids):
            return self._convert_id_to_token(ids)
        return self._tokens(ids, skip_special_tokens)

    def _tokens(self, rows: Sequence[Sequence[int]], skip_special_tokens: bool) -> list[str]:
        special = {self._convert_token_to_id(token) for token in (self.pad_token, self.bos_token, self.eos_token)}
        return [self._convert_id_to_token(row) for row in rows if not (skip_special_tokens and tuple(row) in special)]

    def decode(self, token_ids, skip_special_tokens: bool = False, **kwargs) -> str | list[str]:
        """Joins words by spaces: one row or a list of rows to a string, a batch of lists to a list of strings.

        Padding never shows.
        """
        token_ids = to_py_obj(token_ids)
        depth = _depth(token_ids)
        if depth == 3:
            return [" ".join(self._words_of(sentence, skip_special_tokens)) for sentence in token_ids]
        return " ".join(self._words_of([token_ids] if depth == 1 and token_ids else token_ids, skip_special_tokens))

    def _words_of(self, rows: Sequence[Sequence[int]], skip_special_tokens: bool) -> list[str]:
        return self._tokens([row for row in rows if any(self._checked_row(row))], skip_special_tokens)

    def convert_tokens_to_word_ids(self, tokens: Sequence[str]) -> list[int]:
        """Ids of words in the word vocabulary, the labels of `ElmoForPreTraining`.

        Args:
            tokens: Words, as `tokenize` gives them.

        Raises:
            ValueError: If the tokenizer has no word vocabulary.
        """
        if not self.word_vocabulary:
            raise ValueError("this tokenizer has no word vocabulary: give ElmoTokenizer a vocab_file")
        return [self.word_vocabulary.get(token, self.unk_token_id) for token in tokens]

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Writes the vocabularies that there are."""
        contents = {
            "vocab_file": "".join(f"{word}\n" for word in self.word_vocabulary),
            "char_vocab_file": _as_json(self.input_characters),
            "word_vocab_file": _as_json(self.input_words),
        }
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        paths = []
        for name, content in contents.items():
            if content:
                paths.append(os.path.join(save_directory, prefix + VOCAB_FILES_NAMES[name]))
                with open(paths[-1], "w", encoding="utf-8", newline="\n") as file:
                    file.write(content)
        return tuple(paths)


def read_word_vocabulary(path: str | os.PathLike, first: tuple[str, str, str]) -> dict[str, int]:
    """Reads a bilm-tf vocabulary: one word a line, by descending frequency, behind the three special words.

    Args:
        path: The file, UTF-8.
        first: The special words, which must be the first three lines in this order.

    Raises:
        ValueError: If the file begins otherwise or has a word twice.
    """
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            words = [line.rstrip("\r\n") for line in file]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from error
    if tuple(words[:3]) != first:
        raise ValueError(f"{path} must begin with the lines {', '.join(first)}, it begins with {', '.join(words[:3])}")
    vocabulary = {word: index for index, word in enumerate(words)}
    if len(vocabulary) != len(words):
        repeated = next(word for index, word in enumerate(words) if vocabulary[word] != index)
        raise ValueError(f"{path} has the word {repeated!r} more than once")
    return vocabulary


def _read_dictionary(path: str | os.PathLike | None, unknown: str) -> dict[str, int]:
    if path is None:
        return {}
    with open(path, encoding="utf-8") as file:
        try:
            dictionary = json.load(file)
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(dictionary, dict) or unknown not in dictionary:
        raise ValueError(f"{path} must be a JSON object with a number for each entry, {unknown!r} among them")
    wrong = [entry for entry, number in dictionary.items() if not _is_free_number(number)]
    if wrong:
        raise ValueError(
            f"{path}: the number of an entry must be a positive integer and none of {sorted(RESERVED)}, got "
            f"{dictionary[wrong[0]]!r} for {wrong[0]!r}"
        )
    return dictionary


def _is_free_number(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0 and number not in RESERVED


def _as_json(dictionary: dict[str, int]) -> str:
    # one entry a line; what is not ASCII is escaped, since it may be half of a surrogate pair
    return json.dumps(dictionary, indent=0) + "\n" if dictionary else ""


def _as_batch(text, text_pair, is_split_into_words: bool) -> tuple[list[tuple], bool]:
    """Rows of (sentence, second sentence or `None`), and whether the input was a batch."""
    sequences = (list, tuple)
    if is_split_into_words:
        is_batch = isinstance(text, sequences) and len(text) > 0 and isinstance(text[0], sequences)
    else:
        is_batch = isinstance(text, sequences)
    if not is_batch:
        return [(text, text_pair)], False
    if text_pair is not None:
        if not isinstance(text_pair, sequences) or len(text_pair) != len(text):
            raise ValueError(f"text_pair must be a batch of the same length as text, {len(text)}")
        return list(zip(text, text_pair, strict=True)), True

    def is_pair(row) -> bool:
        if is_split_into_words:  # a list, or a tuple of strings, is one sentence
            return isinstance(row, tuple) and len(row) == 2 and not any(isinstance(part, str) for part in row)
        return isinstance(row, sequences) and len(row) == 2

    return [tuple(row) if is_pair(row) else (row, None) for row in text], True


def _padded(values: list, length: int, value: Any, side: str) -> list:
    missing = [value] * (length - len(values))
    return values + missing if side == "right" else missing + values


def _depth(values: Any) -> int:
    """How deep lists are nested, where empty ones do not count: 1 for a row, 2 for a sentence, 3 for a batch."""
    depth = 0
    while isinstance(values, (list, tuple)):
        depth += 1
        values = next((value for value in values if not isinstance(value, (list, tuple)) or value), None)
    return depth


@lru_cache(maxsize=1 << 16)
def _word_row(word: str, length: int) -> CharacterIds:
    return _enclosed([byte + 1 for byte in word.encode("utf-8", "ignore")[: length - 2]], length)


def _enclosed(body: list[int], length: int) -> CharacterIds:
    row = (BEGIN_OF_WORD, *body, END_OF_WORD)
    return row + (PADDING,) * (length - len(row))


@lru_cache
def _boundary_row(boundary: int, length: int) -> CharacterIds:
    return (BEGIN_OF_WORD, boundary, END_OF_WORD, *((PADDING,) * (length - 3)))


__all__ = ["RESERVED", "ElmoBatchEncoding", "ElmoTokenizer", "numbered", "read_word_vocabulary"]
