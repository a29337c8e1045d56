import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2Tokenizer,
)

import tokenizer_training
from tokenizer_training.byte_bpe import train_gpt_tokenizer
from tokenizer_training.text import TextLines

SYLLABLES = ["ka", "to", "mi", "ré", "su", "no"]
# every word equally often, so that many pairs are equally frequent
LINES = [" ".join(a + b + c for c in SYLLABLES) + " 中文 Ok." for a in SYLLABLES for b in SYLLABLES]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("\n".join(LINES * 2), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def folder(file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "out"
    train_gpt_tokenizer(TextLines([file]), folder, 300)
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_result_is_one_of_gpt2s(tokenizer):
    assert type(tokenizer) is GPT2Tokenizer
    assert len(tokenizer) == 300
    assert tokenizer.convert_ids_to_tokens([0, 1]) == ["<|endoftext|>", "<|pad|>"]
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (0, 0, 1)
    assert tokenizer.unk_token is None
    assert tokenizer.tokenize("kato Ok")[-1] == "ĠOk"
    assert tokenizer("ka<|endoftext|>")["input_ids"][-1] == 0


def test_a_language_model_learns_to_end_texts_and_not_to_pad(tokenizer):
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    batch = collator([tokenizer(f"{text}{tokenizer.eos_token}") for text in ("ka", "kato mi su no")])
    assert batch["labels"][1][-1] == tokenizer.eos_token_id
    assert (batch["labels"] == -100).equal(batch["input_ids"] == tokenizer.pad_token_id)
    assert batch["labels"][0].tolist().count(tokenizer.eos_token_id) == 1
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_layer=1,
        n_head=1,
        n_embd=8,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=0,
        eos_token_id=0,
    )
    assert torch.isfinite(AutoModelForCausalLM.from_config(config)(**batch).loss)


def test_the_same_files_in_another_process(file, folder, tmp_path):
    options = (f"--input={file}", "--vocab_size=300")
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "tokenizer_training", "gpt", *options, f"--output={tmp_path / seed}"],
            check=True,
            cwd=Path(tokenizer_training.__file__).parents[1],
            env={"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": seed},
        )
        assert files(tmp_path / seed) == files(folder)


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(codec="utf-8")))
def test_any_text_comes_back(tokenizer, text):
    encoded = tokenizer(text, return_offsets_mapping=True)
    assert tokenizer.decode(encoded["input_ids"]) == text
    assert all(0 <= start <= end <= len(text) for start, end in encoded["offset_mapping"])


def test_extra_special_tokens(file, tmp_path):
    train_gpt_tokenizer(TextLines([file]), tmp_path / "out", 300, extra_special_tokens=["<|user|>"])
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.convert_ids_to_tokens(2) == "<|user|>"
    assert tokenizer("<|user|>ka", return_special_tokens_mask=True)["input_ids"][0] == 2
    assert tokenizer.decode(tokenizer("<|user|>ka")["input_ids"], skip_special_tokens=True) == "ka"


@pytest.mark.parametrize(
    ("size", "extra", "message"),
    [
        (257, [], "vocab_size must be at least 258, the special tokens and every byte; got 257"),
        (5000, [], r"the text is enough for a vocabulary of \d+, not of 5000"),
        (300, ["a", "a"], "has 'a' more than once"),
        (300, ["<|pad|>"], "which is a special token"),
        (300, ["a"], "which the vocabulary needs for text"),
    ],
)
def test_what_is_refused(file, tmp_path, size, extra, message):
    with pytest.raises(ValueError, match=message):
        train_gpt_tokenizer(TextLines([file]), tmp_path / "out", size, extra)
    assert not list(tmp_path.iterdir())
