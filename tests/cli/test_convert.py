import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from reference_elmo import random_arrays
from transformers import AutoModel, AutoTokenizer

import hf_lineage
from hf_lineage import ElmoConfig, ElmoForPreTraining, ElmoModel, ElmoTokenizer, convert_elmo_checkpoint
from hf_lineage.cli import main

REPOSITORY = str(Path(hf_lineage.__file__).parents[1])
SENTENCES = ["Isn't it a naïve test ?", "北京", "a" * 60]
WORDS = ["<S>", "</S>", "<UNK>", "the", "北京", "naïve"]


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


@pytest.fixture
def checkpoint(tmp_path):
    options = {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": 6,
            "cell_clip": 3,
            "proj_clip": 3,
            "dim": 10,
            "n_layers": 2,
        },
        "char_cnn": {
            "activation": "relu",
            "filters": [[1, 4], [2, 5]],
            "n_highway": 1,
            "embedding": {"dim": 4},
            "n_characters": 262,
            "max_characters_per_token": 30,
        },
        "n_tokens_vocab": len(WORDS),
    }
    (tmp_path / "options.json").write_text(json.dumps(options))
    with h5py.File(tmp_path / "weights.hdf5", "w") as file:
        for name, array in random_arrays(options).items():
            file[name] = array
    (tmp_path / "words.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    (tmp_path / "words.txt.gz").write_bytes(gzip.compress((tmp_path / "words.txt").read_bytes()))
    return tmp_path


@pytest.fixture
def both(checkpoint):
    return "--options", checkpoint / "options.json", "--weights", checkpoint / "weights.hdf5"


@torch.no_grad()
def vectors(model, tokenizer):
    return model.eval()(**tokenizer(SENTENCES, padding=True, return_tensors="pt")).last_hidden_state


def check_converted(folder, checkpoint, words):
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert type(model) is ElmoModel
    assert type(tokenizer) is ElmoTokenizer
    expected = convert_elmo_checkpoint(checkpoint / "options.json", checkpoint / "weights.hdf5")
    assert torch.equal(vectors(model, tokenizer), vectors(expected, ElmoTokenizer(max_characters_per_token=30)))
    assert list(tokenizer.word_vocabulary) == words
    assert str(checkpoint) not in "".join(path.read_text() for path in Path(folder).glob("*.json"))
    assert not list(Path(folder).parent.glob(".*"))


@pytest.mark.parametrize("vocabulary", [None, "words.txt", "words.txt.gz"])
def test_options_and_weights(vocabulary, checkpoint, both, run):
    output = checkpoint / "new/model"
    given = [] if vocabulary is None else ["--vocabulary", checkpoint / vocabulary]
    status, said, errors = run("convert", "elmo", *both, *given, "--output", output)
    assert status == 0, errors
    check_converted(output, checkpoint, WORDS if vocabulary else [])
    model = AutoModel.from_pretrained(output)
    assert f"parameters: {sum(parameter.numel() for parameter in model.parameters()):,} (" in said
    assert "2 LSTM layers of 2 x 10" in said
    assert "vectors of 12, 3 layers" in said
    assert (f"{len(WORDS)} words in the vocabulary" if vocabulary else "no words in the vocabulary") in said


@pytest.mark.parametrize("packed", ["words.txt", "words.txt.gz", None])
def test_archive(packed, checkpoint, run):
    with zipfile.ZipFile(checkpoint / "7.zip", "w") as file:
        file.write(checkpoint / "options.json", "options.json")
        file.write(checkpoint / "weights.hdf5", "model.hdf5")
        if packed:
            file.write(checkpoint / packed, packed.replace("words", "vocab"))
    status, _, errors = run("convert", "elmo", checkpoint / "7.zip", "--output", checkpoint / "model")
    assert status == 0, errors
    check_converted(checkpoint / "model", checkpoint, WORDS if packed else [])


def test_a_folder_is_overwritten_only_if_told(checkpoint, both, run):
    output = checkpoint / "model"
    output.mkdir()
    (output / "precious").touch()
    status, said, errors = run("convert", "elmo", *both, "--output", output)
    assert (status, said) == (2, "")
    assert "not empty" in errors
    assert "--overwrite" in errors
    assert [path.name for path in output.iterdir()] == ["precious"]
    assert run("convert", "elmo", *both, "--output", output, "--overwrite")[0] == 0
    check_converted(output, checkpoint, [])
    assert not (output / "precious").exists()


def test_export_gives_the_files_back(checkpoint, both, run):
    run("convert", "elmo", *both, "--output", checkpoint / "model")
    target = ("--options", checkpoint / "o.json", "--weights", checkpoint / "w.hdf5")
    status, said, errors = run("convert", "elmo-export", checkpoint / "model", *target)
    assert status == 0, errors
    assert "o.json" in said
    options = json.loads((checkpoint / "options.json").read_text())
    exported = json.loads((checkpoint / "o.json").read_text())
    assert {name: exported[name] for name in options} == options
    arrays = random_arrays(options)
    with h5py.File(checkpoint / "w.hdf5") as file:
        assert all(np.array_equal(file[name][...], array) for name, array in arrays.items())


WRONG = {
    "nothing": ([], "give SOURCE alone, or both --options and --weights"),
    "options alone": (["--options", "options.json"], "give SOURCE alone, or both --options and --weights"),
    "weights alone": (["--weights", "weights.hdf5"], "give SOURCE alone, or both --options and --weights"),
    "all": (
        ["7.zip", "--options", "options.json", "--weights", "weights.hdf5"],
        "give SOURCE alone, or both --options and --weights",
    ),
    "archive and options": (["7.zip", "--options", "options.json"], "give SOURCE alone"),
    "absent options": (["--options", "absent.json", "--weights", "weights.hdf5"], "no file .*absent.json"),
    "absent weights": (["--options", "options.json", "--weights", "absent.hdf5"], "no file .*absent.hdf5"),
    "a folder for options": (["--options", ".", "--weights", "weights.hdf5"], "no file"),
    "exchanged": (["--options", "weights.hdf5", "--weights", "options.json"], "not a JSON file"),
    "absent archive": (["absent.zip"], "absent.zip"),
    "options for a source": (
        ["options.json"],
        r"no ELMo model that is known; found: options.json \(options of a biLM\)",
    ),
    "absent vocabulary": (
        ["--options", "options.json", "--weights", "weights.hdf5", "--vocabulary", "absent.txt"],
        "no vocabulary file absent.txt",
    ),
    "no vocabulary": (
        ["--options", "options.json", "--weights", "weights.hdf5", "--vocabulary", "options.json"],
        "options.json must begin with the lines <S>, </S>, <UNK>",
    ),
    "vocabulary of another size": (
        ["--options", "options.json", "--weights", "weights.hdf5", "--vocabulary", "short.txt"],
        "short.txt.* 4 .*6",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_one_line_and_leave_nothing(case, checkpoint, run, monkeypatch):
    arguments, message = WRONG[case]
    monkeypatch.chdir(checkpoint)
    (checkpoint / "short.txt").write_text("<S>\n</S>\n<UNK>\na\n")
    before = sorted(checkpoint.iterdir())
    status, said, errors = run("convert", "elmo", *arguments, "--output", "model")
    assert (status, said) == (2, "")
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("hf-lineage: ")
    assert re.search(message, errors), errors
    assert sorted(checkpoint.iterdir()) == before


@pytest.mark.parametrize("what", ["vocabulary", "weights", "directory"])
def test_damaged_archives_are_refused(what, checkpoint, run):
    archive = checkpoint / "7.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(checkpoint / "options.json", "options.json")
        file.write(checkpoint / "weights.hdf5", "model.hdf5")
        packed = (checkpoint / "words.txt.gz").read_bytes()
        file.writestr("vocab.txt.gz", packed[: len(packed) // 2] if what == "vocabulary" else packed)
        start = file.getinfo("model.hdf5").header_offset
    content = bytearray(archive.read_bytes())
    if what == "weights":
        content[start + 2000] ^= 0xFF
    archive.write_bytes(content[: len(content) // 2] if what == "directory" else content)
    status, said, errors = run("convert", "elmo", archive, "--output", checkpoint / "model")
    assert (status, said) == (2, "")
    assert re.fullmatch(r"hf-lineage: .*7\.zip.*\n", errors), errors
    assert not (checkpoint / "model").exists()


def test_the_vocabulary_gives_the_size_of_the_softmax(checkpoint, both, run):
    options = json.loads((checkpoint / "options.json").read_text())
    del options["n_tokens_vocab"]
    (checkpoint / "options.json").write_text(json.dumps(options))
    run("convert", "elmo", *both, "--vocabulary", checkpoint / "words.txt", "--output", checkpoint / "model")
    assert AutoModel.from_pretrained(checkpoint / "model").config.vocab_size == len(WORDS)


@pytest.mark.parametrize(
    "what", ["absent folder", "empty folder", "another model", "damaged weights", "absent target folder"]
)
def test_errors_of_the_export_are_one_line(what, checkpoint, both, run, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model, target = checkpoint / "model", checkpoint
    if what == "empty folder":
        model.mkdir()
    elif what == "another model":
        model.mkdir()
        (model / "config.json").write_text('{"model_type": "bert"}')
    elif what == "damaged weights":
        run("convert", "elmo", *both, "--output", model)
        (model / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:1000])
    elif what == "absent target folder":
        run("convert", "elmo", *both, "--output", model)
        target = checkpoint / "absent"
    status, said, errors = run(
        "convert", "elmo-export", model, "--options", target / "o.json", "--weights", target / "w.hdf5"
    )
    assert (status, said) == (2, "")
    lines = [line for line in errors.splitlines() if not line.startswith("Loading weights")]
    assert len([line for line in lines if line]) == 1, errors
    assert lines[-1].startswith("hf-lineage: ")
    assert not (checkpoint / "o.json").exists()
    assert not (checkpoint / "w.hdf5").exists()


def test_the_command_itself(checkpoint):
    code = "from hf_lineage.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": REPOSITORY, "COLUMNS": "100"}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, env=environment
        )

    result = run("--help")
    assert result.returncode == 0
    assert "convert" in result.stdout
    assert "info" in result.stdout
    result = run("convert", "elmo", "absent.zip", "--output", str(checkpoint / "model"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("hf-lineage: ")
    assert len(result.stderr.splitlines()) == 1


def test_the_softmax_goes_out_and_comes_back(run, tmp_path):
    config = ElmoConfig(hidden_size=12, lstm_hidden_size=10, char_cnn_filters=[[1, 4], [2, 5]], vocab_size=len(WORDS))
    model = ElmoForPreTraining(config)
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "words.txt").write_text("".join(f"{word}\n" for word in WORDS))
    files = ("--options", tmp_path / "o.json", "--weights", tmp_path / "w.hdf5")
    assert run("convert", "elmo-export", tmp_path / "model", *files, "--softmax")[0] == 0
    back = ("convert", "elmo", *files, "--softmax", "--vocabulary", tmp_path / "words.txt")
    assert run(*back, "--output", tmp_path / "back")[0] == 0
    found = ElmoForPreTraining.from_pretrained(tmp_path / "back").state_dict()
    assert all(torch.equal(found[name], value) for name, value in model.state_dict().items())
    with zipfile.ZipFile(tmp_path / "7.zip", "w") as archive:
        archive.write(tmp_path / "o.json", "options.json")
        archive.write(tmp_path / "w.hdf5", "model.hdf5")
        archive.writestr("vocab.txt", "<S>\n</S>\n<UNK>\n")
    packed = ("convert", "elmo", tmp_path / "7.zip", "--softmax")
    given = ("--vocabulary", tmp_path / "words.txt", "--output", tmp_path / "from-zip")
    status, said, error = run(*packed, *given)
    assert status == 0, error
    assert "lm_head" in said
    assert "the softmax over words was read" in said
    found = ElmoForPreTraining.from_pretrained(tmp_path / "from-zip").state_dict()
    assert all(torch.equal(found[name], value) for name, value in model.state_dict().items())
    # the archive's own vocabulary is of another size, which its softmax contradicts
    status, _, error = run(*packed, "--output", tmp_path / "none")
    assert status != 0
    assert "has 3 words, the options say 6" in error
    assert run(*packed[:-1], "--output", tmp_path / "none")[0] == 0
    assert run("convert", "elmo-export", tmp_path / "model", *files, "--overwrite")[0] == 0
    status, _, error = run(*back, "--output", tmp_path / "absent")
    assert status != 0
    assert "no dataset softmax/W" in error
