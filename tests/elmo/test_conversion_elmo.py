import copy
import json

import h5py
import numpy as np
import pytest
import torch
from reference_elmo import layers as reference_layers
from reference_elmo import random_arrays

from hf_lineage import ElmoModel, convert_elmo_checkpoint, export_elmo_checkpoint

SENTENCE = ["Ünïcödé", "is", "", "a" * 70, "和平", "."]

VARIATIONS = {
    "as is": {},
    "no skip connections": {"lstm.use_skip_connections": False},
    "no projection": {"lstm.dim": 6},
    "no highway": {"char_cnn.n_highway": 0},
    "no character projection": {"char_cnn.filters": [[1, 2], [2, 4]]},
    "short words": {"char_cnn.max_characters_per_token": 11},
    "long words": {"char_cnn.max_characters_per_token": 90},
    "one layer": {"lstm.n_layers": 1},
    "three layers": {"lstm.n_layers": 3},
    "no clipping": {"lstm.cell_clip": None, "lstm.proj_clip": 0},
    "tanh": {"char_cnn.activation": "tanh"},
    "training options": {"char_cnn.n_characters": 261, "n_tokens_vocab": 32, "bidirectional": True},
}


def varied(options, changes):
    options = copy.deepcopy(options)
    for path, value in changes.items():
        *parents, key = path.split(".")
        place = options
        for parent in parents:
            place = place[parent]
        place[key] = value
    return options


def read_arrays(path):
    arrays = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: arrays.update({name: item[...]}) if hasattr(item, "shape") else None)
    return arrays


@pytest.mark.parametrize("changes", VARIATIONS.values(), ids=VARIATIONS.keys())
def test_layers_follow_the_equations_and_export_is_bit_equal(changes, options, write_checkpoint, tmp_path, tokenizer):
    options = varied(options, changes)
    arrays = random_arrays(options)
    model = convert_elmo_checkpoint(*write_checkpoint(options, arrays))
    length = options["char_cnn"]["max_characters_per_token"]
    tokenizer = type(tokenizer)(max_characters_per_token=length)
    inputs = tokenizer(SENTENCE, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        found = torch.cat(model(**inputs, output_hidden_states=True).hidden_states).numpy()
    expected = reference_layers(arrays, options, SENTENCE)[:, 1:-1]
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-4)

    export_elmo_checkpoint(model, tmp_path / "o.json", tmp_path / "w.hdf5")
    exported = read_arrays(tmp_path / "w.hdf5")
    assert exported.keys() == arrays.keys()
    assert all(np.array_equal(exported[name], arrays[name]) for name in arrays)
    assert all(exported[name].dtype == np.float32 for name in arrays)
    again = convert_elmo_checkpoint(tmp_path / "o.json", tmp_path / "w.hdf5")
    assert again.config.to_dict() == model.config.to_dict()
    assert all(torch.equal(one, other) for one, other in zip(again.parameters(), model.parameters(), strict=True))


def test_allennlp_fixture_is_exported_bit_equal(shared, tmp_path):
    folder = shared / "fixtures/elmo/allennlp"
    model = convert_elmo_checkpoint(folder / "options.json", folder / "lm_weights.hdf5")
    model.save_pretrained(tmp_path / "model")
    model = ElmoModel.from_pretrained(tmp_path / "model")
    export_elmo_checkpoint(model, tmp_path / "o.json", tmp_path / "w.hdf5")
    original, exported = read_arrays(folder / "lm_weights.hdf5"), read_arrays(tmp_path / "w.hdf5")
    assert len(original) == 33
    assert original.keys() == exported.keys()
    assert all(np.array_equal(original[name], exported[name]) for name in original)
    given, written = json.loads((folder / "options.json").read_text()), json.loads((tmp_path / "o.json").read_text())
    assert {name: written[name] for name in given} == given


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"char_cnn": None}, "char_cnn"),
        ({"bidirectional": False}, "bidirectional"),
        ({"char_cnn.n_characters": 260}, "n_characters.*261"),
        ({"lstm.projection_dim": 11}, "projection_dim.*dim"),
        ({"char_cnn.filters": [[1, 4], [60, 5]]}, "60.*50"),
        ({"char_cnn.activation": "gelu"}, "char_cnn_activation.*'relu', 'tanh'.*gelu"),
        ({"lstm.n_layers": 0}, "num_hidden_layers"),
    ],
)
def test_contradictory_options_are_refused(changes, message, options, write_checkpoint):
    paths = write_checkpoint(varied(options, changes), random_arrays(options))
    with pytest.raises(ValueError, match=message):
        convert_elmo_checkpoint(*paths)


@pytest.mark.parametrize(
    "path", ["lstm", "lstm.dim", "lstm.projection_dim", "lstm.n_layers", "char_cnn.filters", "char_cnn.embedding.dim"]
)
def test_a_missing_option_is_named(path, options, write_checkpoint):
    arrays = random_arrays(options)
    *parents, key = path.split(".")
    place = options
    for parent in parents:
        place = place[parent]
    del place[key]
    with pytest.raises(ValueError, match=f"'{path}'|'{path.split('.')[0]}'"):
        convert_elmo_checkpoint(*write_checkpoint(options, arrays))


def test_every_missing_or_misshapen_dataset_is_named(options, write_checkpoint):
    arrays = random_arrays(options)
    for name, array in arrays.items():
        without = {other: value for other, value in arrays.items() if other != name}
        with pytest.raises(ValueError, match=f"no dataset {name}"):
            convert_elmo_checkpoint(*write_checkpoint(options, without))
        with pytest.raises(ValueError, match=f"dataset {name} has shape"):
            convert_elmo_checkpoint(*write_checkpoint(options, {**arrays, name: array[..., :-1]}))


def test_datasets_of_another_model_are_refused(options, write_checkpoint):
    arrays = random_arrays(varied(options, {"lstm.n_layers": 3}))
    with pytest.raises(ValueError, match="Cell2"):
        convert_elmo_checkpoint(*write_checkpoint(options, arrays))


def test_unreadable_files_are_refused(options, write_checkpoint, tmp_path):
    options_file, weight_file = write_checkpoint(options, random_arrays(options))
    whole = weight_file.read_bytes()
    weight_file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not a complete HDF5 file"):
        convert_elmo_checkpoint(options_file, weight_file)
    options_file.write_text('{"lstm": ')
    with pytest.raises(ValueError, match="not a JSON file"):
        convert_elmo_checkpoint(options_file, weight_file)
    with pytest.raises(ValueError, match="no file"):
        convert_elmo_checkpoint(options_file, tmp_path / "absent.hdf5")
    (tmp_path / "encoder.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(ValueError, match="pickle"):
        convert_elmo_checkpoint(options_file, tmp_path / "encoder.pkl")


def test_a_failed_export_leaves_what_was_there(options, write_checkpoint, tmp_path, monkeypatch):
    model = convert_elmo_checkpoint(*write_checkpoint(options, random_arrays(options)))
    target = tmp_path / "out"
    target.mkdir()
    (target / "w.hdf5").write_bytes(b"before")

    def fail(self, *args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    with pytest.raises(OSError, match="disk full"):
        export_elmo_checkpoint(model, target / "o.json", target / "w.hdf5")
    assert [path.name for path in target.iterdir()] == ["w.hdf5"]
    assert (target / "w.hdf5").read_bytes() == b"before"


@pytest.mark.parametrize("which", ["options", "weights"])
@pytest.mark.parametrize("wrong", ["no folder", "a folder"])
def test_an_export_writes_both_files_or_none(which, wrong, options, write_checkpoint, tmp_path):
    model = convert_elmo_checkpoint(*write_checkpoint(options, random_arrays(options)))
    target = tmp_path / "out"
    (target / "taken").mkdir(parents=True)
    paths = {"options": target / "o.json", "weights": target / "w.hdf5"}
    paths[which] = target / ("absent/file" if wrong == "no folder" else "taken")
    with pytest.raises(ValueError, match="cannot write"):
        export_elmo_checkpoint(model, paths["options"], paths["weights"])
    assert [path.name for path in target.iterdir()] == ["taken"]


def test_an_export_that_could_not_be_read_back_is_refused(options, write_checkpoint, tmp_path, tiny):
    model = convert_elmo_checkpoint(*write_checkpoint(options, random_arrays(options)))
    with pytest.raises(ValueError, match="two files"):
        export_elmo_checkpoint(model, tmp_path / "same", tmp_path / "same")
    wide = ElmoModel(tiny(hidden_size=64, lstm_hidden_size=16))
    with pytest.raises(ValueError, match="projects down"):
        export_elmo_checkpoint(wide, tmp_path / "o.json", tmp_path / "w.hdf5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["options.json", "weights.hdf5"]
