"""A tiny configuration and tokenizer of every family."""

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from hf_lineage import (
    ElmoConfig,
    ElmoTokenizer,
    LineageAlbertConfig,
    LineageAlbertTokenizer,
    LineageXLNetConfig,
    LineageXLNetTokenizer,
)

WORDS = "▁one ▁two ▁three ▁it ▁was ▁the ▁film ▁jam ▁sweet ▁ . a e n t".split()
ALBERT_PIECES = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *WORDS]
XLNET_PIECES = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>", *WORDS]
FAMILIES = ("elmo", "lineage_albert", "lineage_xlnet")


def tiny_config(family: str, **fields) -> PreTrainedConfig:
    """A configuration whose models are built and saved in milliseconds."""
    if family == "elmo":
        sizes = {"char_cnn_filters": [[1, 4], [2, 8]], "num_highway_layers": 1, "hidden_size": 16}
        return ElmoConfig(**{**sizes, "lstm_hidden_size": 12, "vocab_size": 9, **fields})
    if family == "lineage_albert":
        sizes = {"vocab_size": 60, "embedding_size": 4, "hidden_size": 8, "num_attention_heads": 2}
        sizes |= {"intermediate_size": 12, "num_hidden_layers": 4, "max_position_embeddings": 64}
        return LineageAlbertConfig(**{**sizes, **fields})
    sizes = {"vocab_size": 60, "d_model": 8, "n_head": 2, "d_inner": 12, "n_layer": 2}
    return LineageXLNetConfig(**{**sizes, **fields})


def tiny_tokenizer(family: str) -> PreTrainedTokenizerBase:
    """A tokenizer of a few pieces."""
    if family == "elmo":
        return ElmoTokenizer()
    pieces = ALBERT_PIECES if family == "lineage_albert" else XLNET_PIECES
    vocabulary = [(piece, -float(index)) for index, piece in enumerate(pieces)]
    return (LineageAlbertTokenizer if family == "lineage_albert" else LineageXLNetTokenizer)(vocab=vocabulary)
