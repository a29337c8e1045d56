"""A tiny model and its tokenizer of each family, built without a network."""

import string
from functools import cache

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

import hf_lineage

ELMO, ALBERT, XLNET = FAMILIES = "elmo", "lineage_albert", "lineage_xlnet"

PREFIXES = {ELMO: "Elmo", ALBERT: "LineageAlbert", XLNET: "LineageXLNet"}
# "ForQuestionAnswering" of XLNet is a beam search over starts and ends; this one has the logits that others have
NAMES = {(XLNET, "ForQuestionAnswering"): "ForQuestionAnsweringSimple", (XLNET, "ForCausalLM"): "LMHeadModel"}

WORDS = "▁the ▁cat ▁sat ▁on ▁a ▁mat ▁in ing ▁film ▁was ▁good ▁bad ▁not".split()
CHARACTERS = ["▁", *string.ascii_lowercase, *string.digits, *".,;:!?'-"]
PIECES = [(piece, -3.0 - number / 8) for number, piece in enumerate(WORDS)] + [
    (piece, -9.0 - number / 64) for number, piece in enumerate(CHARACTERS)
]
SPECIAL = {
    ALBERT: ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
    XLNET: ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
}
SIZES = {
    ELMO: {
        "char_embedding_size": 4,
        "char_cnn_filters": [[1, 4], [2, 6], [3, 8]],
        "num_highway_layers": 1,
        "hidden_size": 16,
        "lstm_hidden_size": 12,
        "classifier_hidden_size": 10,
        "dropout": 0.0,
        "classifier_dropout": 0.0,
    },
    ALBERT: {
        "embedding_size": 8,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
        "classifier_dropout_prob": 0.0,
    },
    XLNET: {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24, "dropout": 0.0, "summary_last_dropout": 0.0},
}


@cache
def _tokenizer(family: str, side: str) -> PreTrainedTokenizerBase:
    if family == ELMO:
        return hf_lineage.ElmoTokenizer(padding_side=side, model_max_length=32)
    pieces = [(token, 0.0) for token in SPECIAL[family]] + PIECES
    tokenizer_class = getattr(hf_lineage, f"{PREFIXES[family]}Tokenizer")
    return tokenizer_class(vocab=pieces, padding_side=side, model_max_length=32)


def tokenizer_of(family: str, padding_side: str = "right") -> PreTrainedTokenizerBase:
    """The family's tokenizer: of 32 tokens at most, and with some words and all letters as its pieces."""
    return _tokenizer(family, padding_side)


def config_of(family: str, **fields) -> PreTrainedConfig:
    """A configuration of a few thousand weights without dropout."""
    if family != ELMO:
        tokenizer = tokenizer_of(family)
        fields = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, **fields}
    config_class = getattr(hf_lineage, f"{PREFIXES[family]}Config")
    fields = {config_class.attribute_map.get(name, name): value for name, value in fields.items()}
    return config_class(**{**SIZES[family], **fields})


def model_class(family: str, head: str = "Model") -> type:
    """The class of a family with a head: "Model", "ForSequenceClassification" and so on."""
    return getattr(hf_lineage, PREFIXES[family] + NAMES.get((family, head), head))
