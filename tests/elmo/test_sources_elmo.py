import gzip
import json
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_elmo import random_arrays

from hf_lineage.elmo.convert_elmo import BILM, convert_elmo_source
from hf_lineage.elmo.sources_elmo import GZIP_MAGIC, HDF5_MAGIC, TORCH_MAGICS, kind_of, opened_source

VOCABULARY = "<S>\n</S>\n<UNK>\n和平\n"


@pytest.fixture
def folder(options, write_checkpoint, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in write_checkpoint(options, random_arrays(options)):
        file.rename(folder / file.name)
    return folder


@pytest.mark.parametrize("how", ["folder", "renamed", "zip"])
def test_a_bilm_is_found_by_what_its_files_hold(how, folder, tmp_path):
    (folder / "vocab.txt.gz").write_bytes(gzip.compress(VOCABULARY.encode()))
    (folder / "meta.json").write_text(
        json.dumps({"id": 7, "handle": "7.zip", "corpus": [{"language": "zho"}, {"language": "eng"}]})
    )
    (folder / "model.ckpt.data").write_bytes(bytes(range(256)) * 100)
    source = folder
    if how == "renamed":
        for number, file in enumerate(sorted(folder.iterdir())):
            file.rename(folder / str(number))
    if how == "zip":
        source = tmp_path / "7.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for file in folder.iterdir():
                archive.write(file, f"../../{file.name}")
    before = sorted(tmp_path.parent.iterdir())
    converted = convert_elmo_source(source)
    assert converted.format == BILM
    assert converted.languages == ["eng", "zho"]
    assert converted.model.config.vocab_size == 4
    assert list(converted.tokenizer.word_vocabulary)[-1] == "和平"
    assert sorted(tmp_path.parent.iterdir()) == before


def test_a_vocabulary_that_is_not_used_is_told(folder):
    (folder / "vocab.txt").write_text("the\ncat\n")
    converted = convert_elmo_source(folder)
    assert converted.notes == ["vocab.txt was not used: no vocabulary, as it does not begin with <S>, </S>, <UNK>"]
    assert not converted.tokenizer.word_vocabulary


def test_names_in_a_zip_lead_nowhere(folder, tmp_path):
    archive = tmp_path / "7.zip"
    names = ["../../../escaped-options", str(tmp_path / "absolute-weights"), "..\\..\\escaped"]
    with zipfile.ZipFile(archive, "w") as file:
        file.write(folder / "options.json", names[0])
        file.write(folder / "weights.hdf5", names[1])
        file.writestr(names[2], "text")
    with opened_source(archive) as source:
        places = {path.parent for path in source.found.values()}
        assert len(places) == 1
        assert all(path.name[0].isdigit() for path in source.found.values())
        assert source.names["options of a biLM"] == names[0]
    assert not any(place.exists() for place in places)
    assert not (tmp_path / "absolute-weights").exists()


def test_allennlp_folder_with_much_else(shared):
    with opened_source(shared / "fixtures/elmo/allennlp") as source:
        assert source.format == "bilm"
        assert sorted(source.names.values()) == ["lm_weights.hdf5", "options.json"]


REFUSED = {
    "nothing": ({}, "holds no ELMo model that is known; found: nothing; known are options"),
    "other things": (
        {"a.txt": b"text", "b.bin": b"\x00\x01\xff", "c.json": b'{"a": 1}', "d.json": b'{"a": '},
        r"found: a.txt \(text\), b.bin \(a binary file of an unknown kind\), c.json \(other JSON\), d.json \(damaged",
    ),
    "a model of transformers": ({"config.json": b'{"model_type": "elmo"}'}, "config.json.*nothing to convert"),
    "options alone": ({"o.json": b'{"lstm": {}}'}, r"found: o.json \(options of a biLM\)"),
    "damaged HDF5": ({"w.hdf5": HDF5_MAGIC + b"more"}, "w.hdf5 is not a complete HDF5 file"),
    "damaged gzip": ({"vocab.txt.gz": gzip.compress(b"abc" * 99)[:-9]}, "vocab.txt.gz is damaged"),
    "damaged pickle": ({"e.pkl": TORCH_MAGICS[0] + b"more"}, "e.pkl is damaged or holds more than weights"),
    "a zip in a folder": ({"x": b"PK\x03\x04"}, "x is damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_what_was_found_and_what_is_known_is_said(case, packed, tmp_path):
    files, message = REFUSED[case]
    source = tmp_path / ("s.zip" if packed else "s")
    if packed:
        with zipfile.ZipFile(source, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        source.mkdir()
        for name, content in files.items():
            (source / name).write_bytes(content)
    with pytest.raises(ValueError, match=message), opened_source(source):
        pass


def test_several_models_are_refused(folder):
    (folder / "again.hdf5").write_bytes((folder / "weights.hdf5").read_bytes())
    with pytest.raises(ValueError, match=r"several times \(again.hdf5, weights.hdf5\)"), opened_source(folder):
        pass
    (folder / "again.hdf5").unlink()
    torch.save({"projection.weight": torch.ones(2)}, folder / "t.pkl")
    with pytest.raises(ValueError, match="holds two models"), opened_source(folder):
        pass


def test_too_many_files_are_no_model(tmp_path):
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        for number in range(201):
            archive.writestr(str(number), "")
    with pytest.raises(ValueError, match="more than 200 files"), opened_source(tmp_path / "s.zip"):
        pass


def test_hdf5_of_other_things(tmp_path):
    for name, dataset, kind in (("a", "embedding", "token embeddings"), ("b", "0", "HDF5 of something else")):
        with h5py.File(tmp_path / name, "w") as file:
            file[dataset] = np.zeros((2, 3), dtype=np.float32)
        assert kind_of(tmp_path / name) == kind


@given(
    st.sampled_from([b"", HDF5_MAGIC, GZIP_MAGIC, *TORCH_MAGICS, b"{", b"<S>\n", b"a\t1\n"]), st.binary(max_size=300)
)
@settings(max_examples=200, deadline=None)
def test_any_file_has_a_kind_or_is_refused(beginning, rest):

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(beginning + rest)
        try:
            kind = kind_of(path, "file")
        except ValueError as error:
            assert str(error).startswith("file ")  # noqa: PT017
        else:
            assert kind
        with pytest.raises(ValueError, match="file"), opened_source(path):
            pass
