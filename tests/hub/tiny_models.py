"""A tiny model and tokenizer of each family."""

from collections.abc import Callable
from pathlib import Path

import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

import hf_lineage
from hf_lineage.auto import FAMILIES

WORDS = "▁one ▁two ▁three ▁it ▁was ▁the ▁film ▁good ▁bad ▁ .".split()
SENTENCES = ["one two", "three it was the film"]


def _pieces(special: list[str]) -> list[tuple[str, float]]:
    return [(piece, -1.0 - index) for index, piece in enumerate(special + WORDS)]


CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "elmo": lambda: hf_lineage.ElmoConfig(
        char_embedding_size=4, char_cnn_filters=[[1, 4], [2, 6]], num_highway_layers=1, hidden_size=16,
        lstm_hidden_size=12, classifier_hidden_size=8, dropout=0.0, classifier_dropout=0.0, vocab_size=20,
    ),
    "lineage_albert": lambda: hf_lineage.LineageAlbertConfig(
        vocab_size=20, embedding_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=32, share_parameters="attention",
    ),
    "lineage_xlnet": lambda: hf_lineage.LineageXLNetConfig(vocab_size=20, d_model=16, n_layer=2, n_head=2, d_inner=24),
}  # fmt: skip
TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerBase]] = {
    "elmo": lambda: hf_lineage.ElmoTokenizer(text_split="whitespace"),
    "lineage_albert": lambda: hf_lineage.LineageAlbertTokenizer(
        vocab=_pieces(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    ),
    "lineage_xlnet": lambda: hf_lineage.LineageXLNetTokenizer(
        vocab=_pieces("<unk> <s> </s> <cls> <sep> <pad> <mask> <eod> <eop>".split())
    ),
}
MODEL_TYPES = sorted(FAMILIES)
HEADS = [(model_type, auto_class) for model_type in MODEL_TYPES for auto_class in FAMILIES[model_type].models]


def tiny_model(model_type: str, auto_class: str = "AutoModelForSequenceClassification") -> PreTrainedModel:
    """A model whose weights all matter: every one is drawn anew."""
    model = getattr(hf_lineage, FAMILIES[model_type].models[auto_class])(CONFIGS[model_type]())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model.eval()


def saved(folder: Path, model_type: str, auto_class: str = "AutoModelForSequenceClassification") -> PreTrainedModel:
    """Saves a model and its tokenizer to a folder."""
    model = tiny_model(model_type, auto_class)
    model.save_pretrained(folder)
    TOKENIZERS[model_type]().save_pretrained(folder)
    return model
