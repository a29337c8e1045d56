import sys

import pytest
import torch
import transformers
from transformers import (
    AlbertConfig,
    AlbertTokenizer,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertTokenizer,
    XLNetConfig,
    XLNetTokenizer,
)

from hf_lineage.cli import main

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "num_hidden_layers": 2}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]


@pytest.fixture
def run(monkeypatch, capfd):
    """Runs the command in this process; gives exit status, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["hf-lineage", *map(str, arguments)])
        capfd.readouterr()
        try:
            main()
            status = 0
        except SystemExit as error:
            status = error.code or 0
        return status, *capfd.readouterr()

    return command


@pytest.fixture(params=["albert", "bert"])
def peer(request, tmp_path):
    """A folder with a model of transformers and a tokenizer."""
    config = {
        "albert": AlbertConfig(**SIZES, vocab_size=len(WORDS), embedding_size=8),
        "bert": BertConfig(**SIZES, vocab_size=len(WORDS)),
    }[request.param]
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "peer")
    BertTokenizer(vocab={word: index for index, word in enumerate(WORDS)}).save_pretrained(tmp_path / "peer")
    return tmp_path / "peer"


def test_there_and_back_is_the_same_file(run, peer, tmp_path):
    status, out, err = run("convert", "albert", peer, "--output", tmp_path / "ours")
    assert (status, err) == (0, "")
    assert "LineageAlbertForMaskedLM" in out
    assert "8 tokens" in out
    assert AutoConfig.from_pretrained(tmp_path / "ours").model_type == "lineage_albert"
    card = (tmp_path / "ours" / "README.md").read_text(encoding="utf-8")
    assert "| read from | peer |" in card
    assert f"of the type {AutoConfig.from_pretrained(peer).model_type} |" in card
    assert str(tmp_path) not in card
    status, _, err = run("convert", "albert-export", tmp_path / "ours", "--output", tmp_path / "back")
    assert (status, err) == (0, "")
    weights = [(folder / "model.safetensors").read_bytes() for folder in (peer, tmp_path / "back")]
    assert weights[0] == weights[1]
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path / "back")
    assert type(loaded) is getattr(transformers, AutoConfig.from_pretrained(peer).architectures[0])


def test_a_model_without_tokenizer(run, tmp_path):
    AutoModel.from_config(BertConfig(**SIZES)).save_pretrained(tmp_path / "peer")
    status, out, _ = run("convert", "albert", tmp_path / "peer", "--output", tmp_path / "ours")
    assert status == 0
    assert "no tokenizer" in out
    ids = torch.tensor([[2, 7, 3]])
    with torch.no_grad():
        expected, found = (AutoModel.from_pretrained(tmp_path / name).eval()(ids)[0] for name in ("peer", "ours"))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("direction", ["albert", "albert-export", "xlnet", "xlnet-export"])
def test_a_model_of_another_type_is_refused(run, direction, tmp_path):
    transformers.GPT2Config().save_pretrained(tmp_path / "gpt2")
    status, _, err = run("convert", direction, tmp_path / "gpt2", "--output", tmp_path / "out")
    assert status == 2
    assert "'gpt2'" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_existing_folder_is_kept(run, peer, tmp_path):
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "notes.txt").write_text("mine")
    status, _, err = run("convert", "albert", peer, "--output", tmp_path / "ours")
    assert status == 2
    assert "overwrite" in err
    assert (tmp_path / "ours" / "notes.txt").read_text() == "mine"


def test_an_xlnet_there_and_back_is_the_same_file(run, tmp_path):
    config = XLNetConfig(vocab_size=12, d_model=16, n_head=2, d_inner=24, n_layer=2)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "peer")
    vocab = [(piece, 0.0) for piece in ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")]
    XLNetTokenizer(vocab=[*vocab, ("▁the", -1.0), ("▁cat", -2.0), ("s", -3.0)]).save_pretrained(tmp_path / "peer")
    status, out, err = run("convert", "xlnet", tmp_path / "peer", "--output", tmp_path / "ours")
    assert (status, err) == (0, "")
    assert "LineageXLNetLMHeadModel" in out
    assert "LineageXLNetTokenizer of 12 tokens" in out
    status, out, err = run("convert", "xlnet-export", tmp_path / "ours", "--output", tmp_path / "back")
    assert (status, err) == (0, "")
    assert "XLNetTokenizer of 12 tokens" in out
    weights = [(folder / "model.safetensors").read_bytes() for folder in (tmp_path / "peer", tmp_path / "back")]
    assert weights[0] == weights[1]
    ids = [
        AutoTokenizer.from_pretrained(tmp_path / name)("the cats")["input_ids"] for name in ("peer", "ours", "back")
    ]
    assert ids[0] == ids[1] == ids[2] == [9, 10, 11, 4, 3]


def test_an_albert_gets_the_tokenizer_with_the_published_ids(run, tmp_path):
    config = AlbertConfig(**SIZES, vocab_size=8, embedding_size=8)
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "peer")
    pieces = [(piece, 0.0) for piece in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")]
    AlbertTokenizer(vocab=[*pieces, ("▁the", -1.0), ("▁cat", -2.0), ("s", -3.0)]).save_pretrained(tmp_path / "peer")
    status, out, _ = run("convert", "albert", tmp_path / "peer", "--output", tmp_path / "ours")
    assert status == 0
    assert "LineageAlbertTokenizer of 8 tokens" in out
    assert AutoTokenizer.from_pretrained(tmp_path / "ours")("the", "cats")["token_type_ids"] == [0, 0, 0, 1, 1, 1]
    status, out, _ = run("convert", "albert-export", tmp_path / "ours", "--output", tmp_path / "back")
    assert status == 0
    assert AutoTokenizer.from_pretrained(tmp_path / "back")("the", "cats")["input_ids"] == [2, 5, 3, 6, 7, 3]
