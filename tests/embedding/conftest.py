from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from hf_lineage import ElmoConfig, ElmoModel, ElmoTokenizer

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij", *(f"##{letter}" for letter in "abcdefghij")]


@pytest.fixture(scope="session")
def elmo_folder(tmp_path_factory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("elmo")
    config = ElmoConfig(
        char_embedding_size=4, char_cnn_filters=[[1, 4], [2, 6], [3, 8]], num_highway_layers=1, hidden_size=16,
        lstm_hidden_size=12,
    )  # fmt: skip
    model = ElmoModel(config)
    torch.nn.init.normal_(model.scalar_mixes[0].weights)
    model.save_pretrained(folder)
    ElmoTokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def word_pieces() -> PreTrainedTokenizerFast:
    """A tokenizer that makes one piece of each of the letters a to j, and of a space no piece."""
    tokenizer = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


@pytest.fixture(scope="session")
def bert() -> BertModel:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=12, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=12,
    )  # fmt: skip
    return BertModel(config).eval()


@pytest.fixture(scope="session")
def bert_folder(bert, word_pieces, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    bert.save_pretrained(folder)
    word_pieces.save_pretrained(folder)
    return folder
