import json
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model

from benchmarks.glue.__main__ import main
from hf_lineage import (
    ElmoConfig,
    ElmoModel,
    LineageAlbertConfig,
    LineageAlbertModel,
    LineageXLNetConfig,
    LineageXLNetModel,
)
from tokenizer_training.byte_bpe import train_gpt_tokenizer
from tokenizer_training.elmo import train_elmo_tokenizer
from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer, train_xlnet_tokenizer
from tokenizer_training.wordpiece import train_bert_tokenizer
from tokenizer_training.words import train_word_tokenizer

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def model_for(family, tokenizer):
    common = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    if family == "elmo":
        return ElmoModel(ElmoConfig(lstm_hidden_size=16, hidden_size=32, char_cnn_filters=[[1, 8]]))
    if family == "albert":
        return LineageAlbertModel(LineageAlbertConfig(**SIZES, **common, embedding_size=8))
    if family == "xlnet":
        return LineageXLNetModel(LineageXLNetConfig(**common, d_model=16, n_layer=1, n_head=2, d_inner=32))
    if family == "gpt":
        return GPT2Model(GPT2Config(**common, n_embd=16, n_layer=1, n_head=2))
    return BertModel(BertConfig(**SIZES, **common))


@pytest.mark.parametrize(
    ("family", "train", "size"),
    [
        ("elmo", train_elmo_tokenizer, None),
        ("albert", train_albert_tokenizer, 45),
        ("xlnet", train_xlnet_tokenizer, 50),
        ("bert", train_bert_tokenizer, 60),
        ("gpt", train_gpt_tokenizer, 280),
        ("words", train_word_tokenizer, None),
    ],
)
def test_a_model_beside_a_trained_tokenizer_fine_tunes(family, train, size, sentiment_rows, data_dir, tmp_path: Path):
    if family in ("albert", "xlnet"):
        pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")
    (tmp_path / "text.txt").write_text("\n".join(row["sentence"] for row in sentiment_rows(300, 5)))
    text = TextLines([tmp_path / "text.txt"])
    tokenizer, _ = train(text, tmp_path / "model", **({"vocab_size": size} if size else {}))
    torch.manual_seed(0)
    model_for(family, tokenizer).save_pretrained(tmp_path / "model")
    arguments = f"--model_name_or_path {tmp_path / 'model'} --data_dir {data_dir} --output_dir {tmp_path / 'out'}"
    main([*arguments.split(), "--task_name", "sst2,stsb", "--num_train_epochs", "1", "--max_length", "48"])
    for task, rows in (("sst2", 13), ("stsb", 5)):
        results = json.loads((tmp_path / "out" / task / "seed-42" / "results.json").read_text())
        assert results["evaluated_examples"] == {"validation": rows}
