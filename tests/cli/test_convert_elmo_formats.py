import json
import re
import runpy
import sys
import zipfile
from pathlib import Path

import h5py
import pytest
import reference_manylangs as reference
import torch
from huggingface_hub import ModelCard
from reference_elmo import random_arrays

from hf_lineage.cli import main


@pytest.fixture
def run(monkeypatch, capfd):
    """Runs `hf-lineage convert elmo` in this process; gives exit status, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["hf-lineage", "convert", "elmo", *map(str, arguments)])
        capfd.readouterr()
        try:
            main()
            status = 0
        except SystemExit as error:
            status = error.code or 0
        return status, *capfd.readouterr()

    return command


@pytest.fixture
def manylangs(tmp_path):
    configuration = reference.configuration()
    chars, words = reference.dictionaries("今天好", ["今天"])
    arrays = reference.random_weights(configuration, chars, words)
    return reference.write_folder(tmp_path / "zh.model", configuration, chars, words, *arrays)


@pytest.fixture
def nlpl(tmp_path):
    options = {
        "lstm": {"projection_dim": 6, "cell_clip": 3, "proj_clip": 3, "dim": 10, "n_layers": 2},
        "char_cnn": {
            "activation": "relu",
            "filters": [[1, 4], [2, 5]],
            "n_highway": 1,
            "embedding": {"dim": 4},
            "n_characters": 262,
            "max_characters_per_token": 50,
        },
    }
    with h5py.File(tmp_path / "model.hdf5", "w") as file:
        for name, array in random_arrays(options).items():
            file[name] = array
    with zipfile.ZipFile(tmp_path / "7.zip", "w") as archive:
        archive.writestr("options.json", json.dumps(options))
        archive.writestr("meta.json", json.dumps({"id": 7, "handle": "x", "corpus": [{"language": "nor"}]}))
        archive.writestr("vocab.txt", "<S>\n</S>\n<UNK>\nog\n")
        archive.write(tmp_path / "model.hdf5", "model.hdf5")
    return tmp_path / "7.zip"


def test_what_was_found_is_told(manylangs, nlpl, tmp_path, run):
    status, said, errors = run(manylangs, "--output", tmp_path / "one", "--language", "zh")
    assert status == 0, errors
    for fact in (
        "format: ELMoForManyLangs",
        "files: token_embedder.pkl, encoder.pkl, char.dic, word.dic, cnn_50_100_512_4096_sample.json",
        "language: zh",
        "2 LSTM layers of 2 x 10",
        "vectors of 12, 3 layers",
        "3 Unicode characters of a dictionary, 10 of a word at most",
        "words of the input: 5 in the dictionary",
    ):
        assert fact in said
    status, said, errors = run(nlpl, "--output", tmp_path / "two")
    assert status == 0, errors
    for fact in ("format: bilm-tf", "language: nor", "UTF-8 bytes", "4 words in the vocabulary"):
        assert fact in said


@pytest.mark.parametrize("which", ["manylangs", "nlpl"])
def test_the_model_card_is_true_and_its_listing_works(which, request, tmp_path, run, monkeypatch):
    source = request.getfixturevalue(which)
    assert run(source, "--output", tmp_path / "my-model")[0] == 0
    text = (tmp_path / "my-model" / "README.md").read_text(encoding="utf-8")
    data = ModelCard(text).data
    assert (data.library_name, data.tags, data.license) == ("transformers", ["elmo"], None)
    assert data.language == (None if which == "manylangs" else ["nor"])
    assert "conversion knows nothing of a license" in text
    assert str(tmp_path) not in text
    assert ("che-etal-2018" in text) == (which == "manylangs")
    monkeypatch.chdir(tmp_path)
    (listing,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    Path("listing.py").write_text(listing, encoding="utf-8")
    found = runpy.run_path("listing.py")
    total = sum(parameter.numel() for parameter in found["model"].parameters())
    assert f"| total | {total:,} |" in text
    shape = tuple(found["outputs"].last_hidden_state.shape)
    assert f"last_hidden_state  # {shape}: the mix" in text
    assert f"hidden_states  # {len(found['outputs'].hidden_states)} layers" in text


def test_token_embeddings(nlpl, tmp_path, run):
    with h5py.File(tmp_path / "cache.hdf5", "w") as file:
        file["embedding"] = torch.randn(4, 6).numpy()
    status, said, errors = run(nlpl, "--token-embeddings", tmp_path / "cache.hdf5", "--output", tmp_path / "one")
    assert status == 0, errors
    assert "characters: not read" in said
    assert "words of the input: 4 in the dictionary" in said


def test_a_folder_that_holds_nothing_known_is_one_line(tmp_path, run):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "vectors.txt").write_text("the 0.1 0.2\n")
    status, said, errors = run(tmp_path / "source", "--output", tmp_path / "model")
    assert (status, said) == (2, "")
    assert re.fullmatch(r"hf-lineage: .*found: vectors.txt \(text\); known are options .*\n", errors)
    assert not (tmp_path / "model").exists()


def test_a_softmax_that_cannot_be_read_is_refused(manylangs, nlpl, tmp_path, run):
    for source, given in ((manylangs, ()), (nlpl, ("--token-embeddings", tmp_path / "cache.hdf5"))):
        status, said, errors = run(source, *given, "--softmax", "--output", tmp_path / "model")
        assert (status, said) == (2, "")
        assert "softmax" in errors
        assert not (tmp_path / "model").exists()
