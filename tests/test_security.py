"""What the package never does, held for all of its sources, and shown on files that are made to harm."""

import contextlib
import gzip
import io
import json
import os
import pickle
import shutil
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
import yaml
from source_scan import violations
from transformers import AutoConfig, AutoModel, AutoTokenizer

import hf_lineage
from benchmarks.glue.__main__ import main as fine_tune
from benchmarks.glue.validate import main as validate
from hf_lineage import ElmoConfig, ElmoModel, ElmoTokenizer
from hf_lineage.archives import checked_members, copy_unpacked, most_unpacked
from hf_lineage.auto import FAMILIES
from hf_lineage.cli import main
from hf_lineage.elmo.conversion_elmo import export_elmo_checkpoint, opened_vocabulary
from hf_lineage.elmo.manylangs_elmo import read_state_dict
from hf_lineage.elmo.sources_elmo import opened_source
from hf_lineage.hdf5 import own_dataset
from hf_lineage.pretraining.metrics import write_results
from hf_lineage.settings_file import _Loader, read_settings_file

ROOT = Path(hf_lineage.__file__).parents[1]
PACKAGES = ("hf_lineage", "benchmarks", "tokenizer_training")
SOURCES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
MIB = 1024**2


@pytest.mark.parametrize("package", PACKAGES)
def test_no_source_can_run_what_a_file_holds(package):
    sources = [file for file in SOURCES if file.is_relative_to(ROOT / package)]
    assert len(sources) > 10
    found = [f"{file.relative_to(ROOT)} {what}" for file in sources for what in violations(file.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from dill import loads",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=False)",
        "import torch\ntorch.load(path, weights_only=flag)",
        "from torch import load as read\nread(path)",
        "import numpy as np\nnp.load(path)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import yaml\nyaml.load(text)",
        "import yaml\nyaml.load(text, yaml.Loader)",
        "eval(text)",
        "exec(text)",
        "archive.extractall(folder)",
        "archive.extract(member)",
        "import subprocess\nsubprocess.run(command, shell=True)",
        "import os\nos.system(command)",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
        "AutoModel.from_pretrained(name, trust_remote_code=flag)",
        "import tempfile\ntempfile.mktemp()",
        "import httpx\nhttpx.get(url, verify=False)",
    ],
)
def test_the_scan_finds_each_kind(code):
    assert list(violations(code))


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ntorch.load(path, map_location='cpu', weights_only=True)",
        "import yaml\nyaml.load(text, _Loader)",
        "model.eval()",
        "import re\nre.compile('a')",
        "AutoTokenizer.from_pretrained(name, trust_remote_code=False)",
        "import subprocess\nsubprocess.run([program, argument])",
    ],
)
def test_the_scan_leaves_the_rest_alone(code):
    assert list(violations(code)) == []


def test_settings_files_are_read_by_a_safe_loader(tmp_path):
    assert issubclass(_Loader, yaml.SafeLoader)
    file = tmp_path / "settings.yaml"
    file.write_text(f"seed: !!python/object/apply:os.mkdir ['{tmp_path / 'made'}']\n")
    with pytest.raises(ValueError, match="cannot read"):
        read_settings_file(str(file))
    assert not (tmp_path / "made").exists()


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("form", ["pickle", "torch", "torch before 1.6"])
def test_pickles_run_nothing(form, tmp_path):
    path, made = tmp_path / "encoder.pkl", tmp_path / "made"
    if form == "pickle":
        path.write_bytes(pickle.dumps(Harmful(made)))
    else:
        torch.save({"a": Harmful(made)}, path, _use_new_zipfile_serialization=form == "torch")
    with pytest.raises(ValueError, match="damaged or holds more than weights"):
        read_state_dict(path)
    with pytest.raises(ValueError, match=r"encoder\.pkl|no ELMo model"), opened_source(tmp_path):
        pass
    assert not made.exists()


def test_weights_of_a_model_that_are_a_pickle_run_nothing(tmp_path):
    ElmoConfig(char_cnn_filters=[[1, 4]], hidden_size=8, lstm_hidden_size=6).save_pretrained(tmp_path)
    torch.save({"a": Harmful(tmp_path / "made")}, tmp_path / "pytorch_model.bin")
    with pytest.raises(Exception, match=r"[Ww]eights.only"):
        AutoModel.from_pretrained(tmp_path)
    assert not (tmp_path / "made").exists()


@pytest.fixture
def with_code(tmp_path):
    """The folder of a model of a type, with code beside it that makes a folder when it is imported."""

    def make(model_type: str) -> Path:
        folder = tmp_path / "model"
        folder.mkdir()
        code = f"import os\nos.mkdir({str(tmp_path / 'made')!r})\nclass Config: pass\nclass Model: pass\n"
        (folder / "code.py").write_text(code)
        (folder / "code_tokenizer.py").write_text(code)
        auto_map = {"AutoConfig": "code.Config", "AutoModel": "code.Model"}
        (folder / "config.json").write_text(json.dumps({"model_type": model_type, "auto_map": auto_map}))
        tokenizer = {"auto_map": {"AutoTokenizer": ["code_tokenizer.Model", None]}, "tokenizer_class": "Model"}
        (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
        return folder

    return make


@pytest.mark.parametrize("model_type", [*FAMILIES, "none-such"])
def test_code_beside_a_model_does_not_run_unasked(model_type, with_code, tmp_path, monkeypatch, capfd):
    folder = with_code(model_type)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))  # nobody is asked
    loads = [AutoConfig.from_pretrained, AutoModel.from_pretrained, AutoTokenizer.from_pretrained]
    for load in loads:
        with contextlib.suppress(ValueError, OSError, EOFError, ImportError):
            load(folder)
    for command in ("info", "card", "embed"):
        given = [str(folder), "x.txt", str(tmp_path / "x.hdf5")] if command == "embed" else [str(folder)]
        monkeypatch.setattr(sys, "argv", ["hf-lineage", command, *given])
        (tmp_path / "x.txt").write_text("a b\n")
        monkeypatch.chdir(tmp_path)
        with contextlib.suppress(EOFError):
            run_cli()
    capfd.readouterr()
    assert not (tmp_path / "made").exists()


def run_cli() -> int:
    """Runs `hf-lineage` with `sys.argv` in this process."""
    try:
        main()
    except SystemExit as error:
        return error.code or 0
    return 0


@pytest.fixture
def low_limit(monkeypatch):
    """What a packed file may always become, as low as tests can fill in no time."""
    assert most_unpacked(0) == 256 * MIB
    assert most_unpacked(4 * MIB) == 800 * MIB
    monkeypatch.setattr("hf_lineage.archives._ALWAYS_ALLOWED", MIB)
    return MIB


def test_a_bomb_is_not_unpacked(low_limit, tmp_path):
    path = tmp_path / "vocab.txt.gz"
    path.write_bytes(gzip.compress(b"a" * (low_limit + 1)))
    with pytest.raises(ValueError, match="more than the 1,048,576 bytes that are allowed"), opened_vocabulary(path):
        pass
    with pytest.raises(ValueError, match="more than the 1,048,576 bytes"), opened_source(tmp_path):
        pass


def test_a_zip_whose_files_would_fill_a_disk_is_refused_before_it_is_unpacked(low_limit, tmp_path):
    path = tmp_path / "7.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", b"a" * (low_limit + 1))
    with pytest.raises(ValueError, match=r"7.zip: a.txt would be unpacked to 1,048,577 bytes"), opened_source(path):
        pass
    assert validate([str(path)]) == 2


def test_many_files_of_a_zip_count_together(monkeypatch, tmp_path):
    monkeypatch.setattr("hf_lineage.archives._ALWAYS_ALLOWED", 1000)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5):
            archive.writestr(f"{number}.txt", b"a" * 900)
        archive.writestr("folder/", b"")
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        packed = sum(member.compress_size for member in archive.infolist())
        assert most_unpacked(packed) >= 4500
        monkeypatch.setattr("hf_lineage.archives._LARGEST_RATIO", 1)
        with pytest.raises(ValueError, match="all its files would be unpacked to 4,500 bytes"):
            checked_members(archive, "x.zip")


def test_a_full_disk_is_said_before_it_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(ValueError, match="no room to unpack x"):
        copy_unpacked(io.BytesIO(b"abc"), io.BytesIO(), 3, "x", tmp_path)


def test_links_in_a_zip_are_not_made(tmp_path):
    path = tmp_path / "7.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("options.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(ValueError, match=r"found: options.json \(text\)"), opened_source(path):
        pass


@pytest.fixture
def outside(tmp_path):
    """Files that an HDF5 file may try to read."""
    np.arange(64, dtype="float32").tofile(tmp_path / "secret.bin")
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["group/embedding"] = np.zeros((8, 8), "float32")
    return tmp_path


@pytest.mark.parametrize("kind", ["external storage", "virtual", "external link", "soft link to it", "group"])
def test_hdf5_that_refers_to_other_files_is_refused(kind, outside):
    path, secret = outside / "x.hdf5", str(outside / "secret.bin")
    with h5py.File(path, "w") as file:
        if kind == "external storage":
            file.create_dataset("embedding", (8, 8), "float32", external=[(secret, 0, 256)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((8, 8), "float32")
            layout[:] = h5py.VirtualSource(str(outside / "other.hdf5"), "group/embedding", (8, 8))
            file.create_virtual_dataset("embedding", layout)
        elif kind == "external link":
            file["embedding"] = h5py.ExternalLink(str(outside / "other.hdf5"), "group/embedding")
        elif kind == "soft link to it":
            file["there"] = h5py.ExternalLink(str(outside / "other.hdf5"), "group")
            file["embedding"] = h5py.SoftLink("/there/embedding")
        else:
            file.create_group("embedding")
    with h5py.File(path) as file, pytest.raises(ValueError, match=r"other files|another file|no dataset embedding"):
        own_dataset(file, "embedding", path)


def test_hdf5_with_a_shape_that_it_does_not_hold_is_refused(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("embedding", (1 << 30, 1 << 10), "float32", chunks=(1, 1024))
        file["small"] = np.zeros(3)
    with h5py.File(tmp_path / "x.hdf5") as file:
        with pytest.raises(ValueError, match="0 bytes for the 4,398,046,511,104 of its shape"):
            own_dataset(file, "embedding", "x.hdf5")
        assert own_dataset(file, "small", "x.hdf5").shape == (3,)


def test_weights_of_the_original_format_in_other_files_are_not_read(outside, monkeypatch, capfd):
    """Otherwise a model that is converted and published would show what was on the disk."""
    config = ElmoConfig(char_cnn_filters=[[1, 5]], hidden_size=8, lstm_hidden_size=6, char_embedding_size=4)
    options, weights = outside / "options.json", outside / "weights.hdf5"
    export_elmo_checkpoint(ElmoModel(config), options, weights)
    with h5py.File(weights, "a") as file:
        shape = file["CNN_proj/W_proj"].shape
        del file["CNN_proj/W_proj"]
        size = 4 * int(np.prod(shape))
        file.create_dataset("CNN_proj/W_proj", shape, "float32", external=[(str(outside / "secret.bin"), 0, size)])
    given = ["--options", str(options), "--weights", str(weights), "--output", str(outside / "model")]
    monkeypatch.setattr(sys, "argv", ["hf-lineage", "convert", "elmo", *given])
    assert run_cli() == 2
    assert "W_proj has its numbers in other files" in capfd.readouterr().err


TOKEN = "hf_" + "Zz9" * 11


def test_no_token_is_in_results_logs_or_cards(tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("MY_API_KEY", "another-secret-value")
    arguments = [
        "--model_name_or_path", "albert-tiny", "--task_name", "sentiment", "--suite", "minisuite", "--max_length", "8",
        "--output_dir", str(tmp_path / "out"), "--max_train_samples", "32", "--num_train_epochs", "1",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "benchmarks.glue", *arguments, f"--note={TOKEN}"])
    caplog.set_level("DEBUG")
    fine_tune(arguments)
    (results,) = (tmp_path / "out").rglob("results.json")
    monkeypatch.setattr(sys, "argv", ["hf-lineage", "card", str(results.parent / "model"), "--write"])
    assert run_cli() == 0
    written = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert {"results.json", "README.md", "config.json"} <= {file.name for file in written}
    captured = capfd.readouterr()
    texts = [file.read_bytes() for file in written] + [
        text.encode() for text in (captured.out, captured.err, caplog.text)
    ]
    for text in texts:
        for secret in (TOKEN, "another-secret-value"):
            assert secret.encode() not in text
    assert json.loads(results.read_text())["command"][-1] == "--note=***"


def test_pretraining_writes_no_token(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(sys, "orig_argv", ["python", f"--train_files={TOKEN}", "--hub_token", "short"])
    write_results(tmp_path, {"arguments": {"train_files": [f"https://me:pw@host/{TOKEN}"], "seed": 1}})
    text = next(tmp_path.iterdir()).read_text()
    assert TOKEN not in text
    assert "short" not in text
    assert "me:pw" not in text
    assert json.loads(text)["arguments"] == {"train_files": ["https://***@host/***"], "seed": 1}


def test_a_tokenizer_writes_only_where_it_is_told(tmp_path):
    """Names of its vocabulary files are its own, whatever a configuration says."""
    folder = tmp_path / "model"
    ElmoTokenizer().save_pretrained(folder)
    content = json.loads((folder / "tokenizer_config.json").read_text())
    content["vocab_file"] = str(tmp_path / "escaped.txt")
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    with contextlib.suppress(OSError, ValueError):
        AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    assert not (tmp_path / "escaped.txt").exists()
