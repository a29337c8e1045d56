"""Tokenizer of the XLNet-style family: the unigram pieces of SentencePiece, with the ids of the published models."""

import base64
import json
import math
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tokenizers import AddedToken, Encoding, Regex, Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import Unigram
from transformers import TokenizersBackend

from .normalization_xlnet import text_normalizer
from .sentencepiece_xlnet import read_sentencepiece_model
from .tokenizer_origin_xlnet import check_tokenizer_origin

if TYPE_CHECKING:
    from transformers import XLNetTokenizer

VOCAB_FILES_NAMES = {"vocab_file": "spiece.model", "tokenizer_file": "tokenizer.json"}

_WORD_START = "▁"
_PADDING_SEGMENT = 3

Vocabulary = Sequence[tuple[str, float]]


class LineageXLNetTokenizer(TokenizersBackend):
    r"""Cuts text into the pieces of a SentencePiece unigram model and gives them the published ids.

    The text is prepared as for the original models: white space becomes single spaces, \`\` and '' become ", accents
    are dropped (NFKD, then every combining mark), and then the table of the `spiece.model`, if it has one, is applied.
    A piece that ends in a digit and a comma is never used, so that `2013,` is `2013` and `,`. `<sep>` and `<cls>` come
    behind a text, and padding before it. (zihangdai/xlnet, `prepro_utils.py`.)

    Differs from `XLNetTokenizer` of transformers 5 in these: `token_type_ids` are returned without asking, 0 and 1 for
    the texts, 2 for `<cls>` and 3 for padding; `keep_accents` and `remove_space` do what they say; a
    `spiece.model` is read without sentencepiece and protobuf, and its user-defined pieces, such as `(` and `.`, are
    pieces like all others, as they were in training; `<Pad>` in a text is no padding where letters
    become small; a lone `▁` has an
    `offset_mapping` of no width (`char_to_token` still finds it before the token of a word's first character).

    Args:
        vocab (`list[tuple[str, float]]`, *optional*):
            Pieces with their scores (logarithms of probabilities), in the order of their ids.
        do_lower_case (`bool`, defaults to `False`):
            Whether to make letters small.
        keep_accents (`bool`, defaults to `False`):
            Whether to keep accents; without them NFKD is left out too. Keep them in languages whose vowels are
            combining marks, such as Hindi or Thai.
        remove_space (`bool`, defaults to `True`):
            Whether all white space counts as space. If not, only spaces do, and what the table of the `spiece.model`
            makes one. Either way several spaces are one.
        bos_token, eos_token, unk_token, sep_token, pad_token, cls_token, mask_token (`str`):
            Names of the special tokens. The unknown token must be in the vocabulary; others that are not are added.
        extra_special_tokens (`list[str]`, defaults to `["<eop>", "<eod>"]`):
            End of paragraph and end of document, which the original's pretraining text has.
        vocab_file (`str`, *optional*):
            A `spiece.model`, if there is no `vocab`.
        tokenizer_file (`str`, *optional*):
            A `tokenizer.json`, if there is no `vocab`. Only its pieces and its table are read.
        model_max_length (`int`, *optional*):
            Number of tokens to which `truncation=True` cuts; by default it does not, as positions are relative.

    Raises:
        ValueError: If a file is not as described, or pieces are repeated, empty or without a finite score.

    Example:

    ```python
    >>> tokenizer = LineageXLNetTokenizer(vocab_file="path/to/spiece.model")
    >>> tokenizer.tokenize("In 2000, (it) was.")
    ['▁In', '▁2000', ',', '▁', '(', 'it', ')', '▁was', '.']
    ```
    """

    vocab_files_names = VOCAB_FILES_NAMES
    model_input_names: ClassVar[list[str]] = ["input_ids", "token_type_ids", "attention_mask"]
    model = Unigram
    padding_side = "left"

    def __init__(
        self,
        vocab: Vocabulary | None = None,
        do_lower_case: bool = False,
        keep_accents: bool = False,
        remove_space: bool = True,
        bos_token: str | AddedToken = "<s>",
        eos_token: str | AddedToken = "</s>",
        unk_token: str | AddedToken = "<unk>",
        sep_token: str | AddedToken = "<sep>",
        pad_token: str | AddedToken = "<pad>",
        cls_token: str | AddedToken = "<cls>",
        mask_token: str | AddedToken = "<mask>",
        vocab_file: str | os.PathLike | None = None,
        tokenizer_file: str | os.PathLike | None = None,
        extra_special_tokens: Sequence[str | AddedToken] = ("<eop>", "<eod>"),
        _spm_precompiled_charsmap: bytes | None = None,
        **kwargs,
    ):
        self.do_lower_case = do_lower_case
        self.keep_accents = keep_accents
        self.remove_space = remove_space
        charsmap = _spm_precompiled_charsmap or b""
        if vocab is None and tokenizer_file is not None:
            vocab, charsmap = _read_tokenizer_file(tokenizer_file)
        elif vocab is None and vocab_file is not None:
            vocab, _, charsmap = read_sentencepiece_model(vocab_file)
        elif vocab is None:
            special = (unk_token, bos_token, eos_token, cls_token, sep_token, pad_token, mask_token)
            vocab = [(str(token), 0.0) for token in special]
        if not kwargs.pop("add_prefix_space", True):
            raise ValueError("add_prefix_space must be True: without it no piece begins a word")
        self._tokenizer = Tokenizer(_unigram(vocab, str(unk_token)))
        self._tokenizer.normalizer = text_normalizer(do_lower_case, keep_accents, remove_space, charsmap)
        special = (bos_token, eos_token, unk_token, sep_token, pad_token, cls_token, mask_token)
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.WhitespaceSplit() if remove_space else pre_tokenizers.Split(" ", "removed"),
                pre_tokenizers.Metaspace(_WORD_START, prepend_scheme="always"),
                pre_tokenizers.Split(_inside([str(token) for token in special]), "isolated"),
            ]
        )
        self._tokenizer.decoder = decoders.Metaspace(_WORD_START, prepend_scheme="always")
        if isinstance(mask_token, str):  # it stands for a word with the space before it
            mask_token = AddedToken(mask_token, lstrip=True, normalized=False, special=True)
        kwargs.pop("auto_map", None)  # transformers adds it where it saves the code that it names
        # saved, so that transformers alone returns the segments too
        kwargs.setdefault("model_input_names", list(self.model_input_names))
        super().__init__(
            do_lower_case=do_lower_case,
            keep_accents=keep_accents,
            remove_space=remove_space,
            bos_token=bos_token,
            eos_token=eos_token,
            unk_token=unk_token,
            sep_token=sep_token,
            pad_token=pad_token,
            cls_token=cls_token,
            mask_token=mask_token,
            extra_special_tokens=list(extra_special_tokens),
            **kwargs,
        )
        self._pad_token_type_id = _PADDING_SEGMENT

    @classmethod
    def _from_pretrained(cls, resolved_vocab_files, pretrained_model_name_or_path, *args, **kwargs):
        check_tokenizer_origin(cls, resolved_vocab_files, also_read=("XLNetTokenizer",))
        return super()._from_pretrained(resolved_vocab_files, pretrained_model_name_or_path, *args, **kwargs)

    @classmethod
    def convert_to_native_format(cls, trust_remote_code: bool = False, **kwargs) -> dict[str, Any]:
        """Leaves reading the files to `__init__`; the base class would make the user-defined pieces added tokens."""
        return kwargs

    def update_post_processor(self) -> None:
        """Puts <sep> behind each text, whose segments are 0 and 1, and <cls>, of segment 2, behind all."""
        special = {"SEP": self.sep_token, "CLS": self.cls_token}
        special = {name: token for name, token in special.items() if token is not None}
        parts = ("$A:0", "SEP:0", "$B:1", "SEP:1", "CLS:2")
        pair = [part for part in parts if part[0] == "$" or part[:3] in special]
        self._tokenizer.post_processor = processors.TemplateProcessing(
            single=[part for part in pair if not part.endswith(":1")],
            pair=pair,
            special_tokens=[
                {"id": name, "ids": [self.convert_tokens_to_ids(token)], "tokens": [token]}
                for name, token in special.items()
            ],
        )

    def _convert_encoding(self, encoding, *args, return_offsets_mapping: bool = False, **kwargs):
        fields, encodings = super()._convert_encoding(encoding, *args, **kwargs)
        if return_offsets_mapping:
            fields["offset_mapping"] = [_offsets(part) for part in encodings]
        return fields, encodings

    def to_transformers(self) -> "XLNetTokenizer":
        """The same tokenizer as one of transformers alone, with equal ids.

        Returns:
            `XLNetTokenizer`: Save it with `save_pretrained`.

        Raises:
            ValueError: If transformers cannot represent it.
        """
        from transformers import XLNetTokenizer  # which looks through the files of every model

        if not self.remove_space or self.keep_accents:
            raise ValueError(
                "transformers' XLNetTokenizer always counts all white space as space and drops accents: it needs "
                f"remove_space=True and keep_accents=False, got {self.remove_space} and {self.keep_accents}"
            )
        state = json.loads(self._tokenizer.to_str())
        return XLNetTokenizer(
            vocab=[(piece, score) for piece, score in state["model"]["vocab"]],
            unk_id=state["model"]["unk_id"],
            do_lower_case=self.do_lower_case,
            **self._special_tokens_map,
            additional_special_tokens=list(self._extra_special_tokens),
            added_tokens_decoder=self.added_tokens_decoder,
            post_processor=self._tokenizer.post_processor,
            model_max_length=self.model_max_length,
            model_input_names=list(self.model_input_names),
            padding_side=self.padding_side,
            truncation_side=self.truncation_side,
            _spm_precompiled_charsmap=_charsmap(state["normalizer"]) or None,
        )


def _unigram(vocab: Vocabulary, unk_token: str) -> Unigram:
    """The model of a vocabulary whose pieces that end in a digit and a comma cannot win."""
    ids = {piece: index for index, (piece, _) in enumerate(vocab)}
    if len(ids) != len(vocab):
        repeated = next(piece for index, (piece, _) in enumerate(vocab) if ids[piece] != index)
        raise ValueError(f"the vocabulary has the piece {repeated!r} more than once")
    unusable = [piece for piece, score in vocab if not piece or not math.isfinite(score)]
    if unusable:
        raise ValueError(f"every piece must have a name and a finite score, not so {unusable[0]!r}")
    if unk_token not in ids:
        raise ValueError(f"the unknown token {unk_token!r} is not in the vocabulary: give its name as unk_token")
    lowest = min((score for piece, score in vocab if not _ends_in_digit_and_comma(piece)), default=0.0)
    # less than the score of its characters one by one, and than this again if the result is saved and read
    scored = [
        (piece, min(score, lowest * (len(piece) + 1)) if _ends_in_digit_and_comma(piece) else score)
        for piece, score in vocab
    ]
    return Unigram(scored, unk_id=ids[unk_token], byte_fallback=False)


def _inside(names: Sequence[str]) -> Regex:
    """Places behind the first character of a special token's name.

    A name that is in the text itself is found before. One that comes of normalization, as `<pad>` of `<PAD>`, is cut
    there, as the pieces of special tokens must not be used for text.
    """
    names = sorted({name for name in names if len(name) > 1})
    return Regex("|".join(f"(?<={re.escape(name[0])})(?={re.escape(name[1:])})" for name in names) or "(?!)")


def _ends_in_digit_and_comma(piece: str) -> bool:
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def _read_tokenizer_file(path: str | os.PathLike) -> tuple[Vocabulary, bytes]:
    """Pieces and table of a `tokenizer.json`."""
    with open(path, encoding="utf-8") as file:
        state = json.load(file)
    vocab = state.get("model", {}).get("vocab")
    if not isinstance(vocab, list) or not vocab:
        raise ValueError(f"{path} must hold a unigram model, it holds {state.get('model', {}).get('type')}")
    return [(piece, score) for piece, score in vocab], _charsmap(state.get("normalizer"))


def _charsmap(normalizer: dict[str, Any] | None) -> bytes:
    """The table of the first precompiled step of a saved normalizer, empty if it has none."""
    normalizer = normalizer or {}
    for step in normalizer.get("normalizers", [normalizer]):
        if step.get("type") == "Precompiled":
            return base64.b64decode(step["precompiled_charsmap"])
    return b""


def _offsets(encoding: Encoding) -> list[tuple[int, int]]:
    """Offsets of an encoding's tokens. The backend gives a lone `▁`, which it puts in, those of the next character."""
    tokens, offsets, sequences = encoding.tokens, encoding.offsets, encoding.sequence_ids
    index = -1
    for _ in range(tokens.count(_WORD_START)):
        index = tokens.index(_WORD_START, index + 1)
        start = offsets[index][0]
        is_same_sequence = index > 0 and sequences[index - 1] == sequences[index]
        # it is inside one character if NFKD makes several words of that
        is_inside_character = is_same_sequence and offsets[index - 1][1] > start
        if sequences[index] is not None and not is_inside_character:
            offsets[index] = (start, start)
    return offsets


__all__ = ["LineageXLNetTokenizer"]
