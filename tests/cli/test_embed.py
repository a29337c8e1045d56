import h5py
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from hf_lineage import ElmoConfig, ElmoEmbedder, ElmoModel, ElmoTokenizer
from hf_lineage.cli import app, main

FIELDS = {"char_cnn_filters": [[1, 4], [2, 8]], "num_highway_layers": 1, "hidden_size": 16, "lstm_hidden_size": 12}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model, a text and a vocabulary, to work in."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    ElmoModel(ElmoConfig(**FIELDS)).save_pretrained("model")
    ElmoTokenizer().save_pretrained("model")
    (tmp_path / "in.txt").write_text("The cat isn't in.\n\nThe the cat\n")
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nThe\ncat\n")
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result


def test_a_text_is_embedded(folder):
    result = run("embed", "model", "in.txt", "out.hdf5", "--tokenize", "words", "--layers", "top", "--device", "cpu")
    assert "out.hdf5: 3 sentences, 9 tokens, " in result.output
    assert " tokens/s, " in result.output
    expected = ElmoEmbedder.from_pretrained("model", layers="top").embed_batch(
        [["The", "cat", "is", "n't", "in", "."], [], ["The", "the", "cat"]]
    )
    with h5py.File("out.hdf5") as file:
        assert len(file) == 4
        for number, vectors in enumerate(expected):
            np.testing.assert_allclose(file[str(number)][...], vectors, atol=1e-6)


def test_a_vocabulary_cache_changes_nothing(folder):
    assert "cache.hdf5: 5 words, vectors of 8" in run("elmo-cache", "model", "vocab.txt", "cache.hdf5").output
    run("embed", "model", "in.txt", "plain.hdf5", "--forget-sentences")
    result = run("embed", "model", "in.txt", "cached.hdf5", "--forget-sentences", "--vocabulary-cache", "cache.hdf5")
    assert "57.1% of the words known from before" in result.output  # the boundaries, The and cat of seven
    assert (folder / "plain.hdf5").read_bytes() == (folder / "cached.hdf5").read_bytes()


def test_half_precision(folder):
    for dtype in ("float32", "bfloat16"):
        run("embed", "model", "in.txt", f"{dtype}.npy", "--dtype", dtype, "--device", "cpu")
    exact, half = (np.load(folder / f"{dtype}.npy" / "vectors.npy") for dtype in ("float32", "bfloat16"))
    assert exact.dtype == half.dtype == np.float32
    assert 0 < np.linalg.norm(half - exact) < 0.02 * np.linalg.norm(exact)


def test_progress_is_quiet_off_terminals(folder, capfd):
    run("embed", "model", "in.txt", "out.npy")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed", "model", "absent.txt", "out.hdf5"], "no text file absent.txt"),
        (["embed", "model", "in.txt", "out"], "out does not tell its format"),
        (["embed", "model", "in.txt", "out.hdf5", "--layers", "both"], "layers must be one of"),
        (["embed", "model", "in.txt", "out.hdf5", "--device", "abacus"], "no device 'abacus'"),
        (["embed", "model", "in.txt", "out.hdf5", "--dtype", "int8"], "dtype must be one of float32, bfloat16"),
        (["embed", "./absent", "in.txt", "out.hdf5"], "no folder ./absent"),
        (["embed", "model", "in.txt", "in.txt", "--format", "npy"], "in.txt exists"),
        (["elmo-cache", "model", "vocab.txt", "cache.txt"], "must end in .hdf5, .h5, .safetensors"),
        (["elmo-cache", "model", "vocab.txt", "vocab.hdf5"], "vocab.hdf5 exists"),
        (["elmo-cache", "model", "in.txt", "cache.hdf5"], "in.txt: line 2 is blank"),
    ],
)
def test_errors_are_one_line(arguments, message, folder, monkeypatch, capfd):
    (folder / "vocab.hdf5").write_text("")
    monkeypatch.setattr("sys.argv", ["hf-lineage", *arguments])
    with pytest.raises(SystemExit) as error:
        main()
    errors = capfd.readouterr().err
    assert error.value.code == 2
    assert errors.startswith("hf-lineage: ")
    assert message in errors
    assert len(errors.splitlines()) == 1, errors
