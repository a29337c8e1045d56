"""What makes a unigram vocabulary one of ALBERT or of XLNet."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenizers.normalizers import Normalizer

import hf_lineage
from hf_lineage.albert import normalization_albert
from hf_lineage.xlnet import normalization_xlnet

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# (google-research/albert, README.md, "Training Data Preprocessing")
USER_DEFINED_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
# (zihangdai/xlnet, README.md, "Pretraining with XLNet")
XLNET_USER_DEFINED_SYMBOLS = (".", "(", ")", '"', "-", "–", "£", "€")


@dataclass(frozen=True)
class UnigramFamily:
    """What makes a unigram vocabulary one of a family.

    Args:
        tokenizer_name: The family's tokenizer, a name of the package.
        text_normalizer: Makes the tokenizer's normalizer of `do_lower_case`, `keep_accents` and `charsmap`.
        ids: Options of SentencePiece's trainer for the pieces with ids of their own, -1 for none.
        control_symbols: The special tokens behind them, which no text is cut into.
        own_symbols: Further ones, which a text may be cut into.
    """

    tokenizer_name: str
    text_normalizer: Callable[..., Normalizer]
    ids: dict[str, Any]
    control_symbols: tuple[str, ...]
    own_symbols: tuple[str, ...] = ()

    @property
    def tokenizer_class(self) -> "type[PreTrainedTokenizerBase]":
        """The family's tokenizer, imported when it is needed, and transformers with it."""
        return getattr(hf_lineage, self.tokenizer_name)

    @property
    def special_tokens(self) -> list[str]:
        """All of them, in the order of their ids."""
        named = [name for name in ("unk", "bos", "eos", "pad") if self.ids[f"{name}_id"] >= 0]
        named.sort(key=lambda name: self.ids[f"{name}_id"])
        return [*(self.ids[f"{name}_piece"] for name in named), *self.control_symbols, *self.own_symbols]


ALBERT = UnigramFamily(
    "LineageAlbertTokenizer",
    normalization_albert.text_normalizer,
    {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "pad_piece": "<pad>", "unk_piece": "<unk>"},
    ("[CLS]", "[SEP]", "[MASK]"),
)
XLNET = UnigramFamily(
    "LineageXLNetTokenizer",
    normalization_xlnet.text_normalizer,
    {
        "unk_id": 0,
        "bos_id": 1,
        "eos_id": 2,
        "pad_id": -1,
        "unk_piece": "<unk>",
        "bos_piece": "<s>",
        "eos_piece": "</s>",
    },
    ("<cls>", "<sep>", "<pad>", "<mask>", "<eod>"),
    ("<eop>",),
)
