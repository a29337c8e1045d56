"""`hf-lineage` as the documentation has it, run on small models: the commands of a page one after the other."""

import gzip
import sys
import zipfile
from itertools import pairwise
from pathlib import Path

import h5py
import pytest
import reference_manylangs
import torch
from docs_commands import commands_in
from docs_pages import blocks
from transformers import AlbertConfig, AlbertModel, BertConfig, BertModel, BertTokenizer, XLNetConfig, XLNetModel

from hf_lineage import ElmoConfig, ElmoForPreTraining, ElmoModel, ElmoTokenizer, export_elmo_checkpoint
from hf_lineage.cli import main

GUIDES = "albert converting elmo_formats elmo_pretraining embedding xlnet".split()
NOT_RUN = {"card", "push"}  # of other models, and to a Hub: tests/hub
PAGES = ["README.md", *(f"docs/{name}.md" for name in GUIDES)]
ELMO = {"hidden_size": 12, "lstm_hidden_size": 10, "char_embedding_size": 4, "char_cnn_filters": [[1, 4], [2, 5]]}
WORDS = ["<S>", "</S>", "<UNK>", "the", "jam", "is", "sweet"]
XLNET = {"vocab_size": 20, "d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 8}
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with all that the commands read, under the names that they have."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    write_texts()
    write_originals()
    for path, model in {
        "path/to/albert-or-bert": AlbertModel(AlbertConfig(**SIZES, vocab_size=20, embedding_size=8)),
        "path/to/transformers-xlnet": XLNetModel(
            XLNetConfig(vocab_size=20, d_model=8, n_layer=1, n_head=2, d_inner=8)
        ),
        "path/to/bert": BertModel(BertConfig(**SIZES, vocab_size=20)),
        "runs/elmo/model": ElmoForPreTraining(ElmoConfig(**ELMO, vocab_size=len(WORDS))),
    }.items():
        model.save_pretrained(path)
    BertTokenizer(vocab={"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}).save_pretrained("path/to/bert")
    return tmp_path


def write_texts() -> None:
    Path("corpus.txt").write_text("The jam is sweet .\nA jam .\n", encoding="utf-8")
    with gzip.open("corpus.txt.gz", "wt", encoding="utf-8") as file:
        file.write("The jam is sweet.\n")
    Path("train.conllu").write_text("1\tThe\n2\tjam\n\n1\tSweet\n", encoding="utf-8")
    Path("vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")


def write_originals() -> None:
    """ELMo in the formats that are converted."""
    options, weights = Path("options.json"), Path("weights.hdf5")
    export_elmo_checkpoint(ElmoModel(ElmoConfig(**ELMO)), options, weights)
    with zipfile.ZipFile("144.zip", "w") as archive:
        archive.write(options)
        archive.write(weights, "model.hdf5")
    Path("allennlp-folder").mkdir()
    for file in (options, weights):
        Path("allennlp-folder", file.name).write_bytes(file.read_bytes())
    with h5py.File("cache.hdf5", "w") as file:
        file["embedding"] = torch.randn(len(WORDS), ELMO["hidden_size"] // 2).numpy()
    configuration = reference_manylangs.configuration()
    dictionaries = reference_manylangs.dictionaries("今天好", ["今天"])
    arrays = reference_manylangs.random_weights(configuration, *dictionaries)
    reference_manylangs.write_folder(Path("zh.model"), configuration, *dictionaries, *arrays)


@pytest.mark.parametrize("page", PAGES)
def test_commands_run_one_after_the_other(page, folder, monkeypatch, capsys):
    commands = [words for block in blocks("bash", page) for words in commands_in(block) if words[0] == "hf-lineage"]
    assert commands
    for words in commands:
        if words[1] in NOT_RUN:
            continue
        outputs = outputs_of(words)
        if "path/to/elmo" in words and Path("path/to/elmo") not in outputs:
            make_elmo(Path("path/to/elmo"))
        if "elmo-export" in words:
            for path in outputs:
                path.unlink(missing_ok=True)  # what an earlier command has read
        monkeypatch.setattr(sys, "argv", words)
        assert status_of_main() == 0, f"{' '.join(words)}: {capsys.readouterr().err}"
        for path in outputs:
            assert path.exists(), f"{' '.join(words)} has not written {path}"


def status_of_main() -> int:
    try:
        main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def outputs_of(words: list[str]) -> list[Path]:
    """What a command is to write."""
    if words[1] in ("embed", "elmo-cache"):
        return [Path(words[4])]
    names = ("--options", "--weights") if "elmo-export" in words else ("--output",)
    return [Path(after) for name, after in pairwise(words) if name in names]


def make_elmo(folder: Path) -> None:
    """Saves a model where no command has yet."""
    if not folder.exists():
        ElmoModel(ElmoConfig(**ELMO)).save_pretrained(folder)
        ElmoTokenizer().save_pretrained(folder)
