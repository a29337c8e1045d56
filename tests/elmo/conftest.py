import json

import h5py
import pytest

from hf_lineage import ElmoConfig, ElmoTokenizer

TINY = {
    "char_embedding_size": 4,
    "char_cnn_filters": [[1, 4], [2, 6], [3, 8]],
    "num_highway_layers": 1,
    "hidden_size": 16,
    "lstm_hidden_size": 12,
    "num_hidden_layers": 2,
    "classifier_hidden_size": 10,
    "dropout": 0.0,
    "classifier_dropout": 0.0,
}


@pytest.fixture
def tiny():
    """Makes a tiny configuration."""

    def make(**fields) -> ElmoConfig:
        return ElmoConfig(**{**TINY, **fields})

    return make


@pytest.fixture(scope="session")
def tokenizer() -> ElmoTokenizer:
    return ElmoTokenizer(text_split="whitespace")


@pytest.fixture
def options() -> dict:
    """Options of a small model in the original format."""
    return {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": 6,
            "cell_clip": 0.8,
            "proj_clip": 0.5,
            "dim": 10,
            "n_layers": 2,
        },
        "char_cnn": {
            "activation": "relu",
            "filters": [[1, 4], [2, 5], [3, 6]],
            "n_highway": 1,
            "embedding": {"dim": 4},
            "n_characters": 262,
            "max_characters_per_token": 50,
        },
    }


@pytest.fixture
def write_checkpoint(tmp_path):
    """Writes options and arrays to files and returns their paths."""

    def write(options: dict, arrays: dict):
        options_file, weight_file = tmp_path / "options.json", tmp_path / "weights.hdf5"
        options_file.write_text(json.dumps(options), encoding="utf-8")
        with h5py.File(weight_file, "w") as file:
            for name, array in arrays.items():
                file[name] = array
        return options_file, weight_file

    return write
