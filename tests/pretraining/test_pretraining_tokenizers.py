import json
from pathlib import Path

import pytest
from pretraining_runs import MODEL, run, write_corpus
from transformers import AutoModel, AutoTokenizer

from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer, train_xlnet_tokenizer
from tokenizer_training.wordpiece import train_bert_tokenizer
from tokenizer_training.words import train_word_tokenizer

XLNET = {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 24}


@pytest.mark.parametrize(
    ("train", "size", "family"),
    [
        (train_albert_tokenizer, 60, "albert"),
        (train_bert_tokenizer, 60, "albert"),
        (train_word_tokenizer, None, "albert"),
        (train_xlnet_tokenizer, 60, "xlnet"),
    ],
)
def test_trained_tokenizers_are_taken_as_they_are(train, size, family, tmp_path: Path):
    pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")
    write_corpus(tmp_path / "train.txt", 20, seed=1)
    write_corpus(tmp_path / "validation.txt", 5, seed=2)
    train(TextLines([tmp_path / "train.txt"]), tmp_path / "tokenizer", **({"vocab_size": size} if size else {}))
    config = json.dumps(XLNET if family == "xlnet" else MODEL)
    assert run(tmp_path, family=family, model_config=config, optimizer="adamw", max_steps=2)
    model = AutoModel.from_pretrained(tmp_path / "out" / "model")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out" / "model")
    assert tokenizer.get_vocab() == AutoTokenizer.from_pretrained(tmp_path / "tokenizer").get_vocab()
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.pad_token_id == tokenizer.pad_token_id
    assert model(**tokenizer("w1 w2", "w3", return_tensors="pt")).last_hidden_state.isfinite().all()
