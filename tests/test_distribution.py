"""The wheel and the sdist: what is in them, and that the wheel alone does what the README promises."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import hf_lineage
from hf_lineage.auto import FAMILIES
from hf_lineage.hub.family_card import family_card

ROOT = Path(__file__).parents[1]
NOT_PACKED = {".ci/run"}
PACKAGES = ("hf_lineage", "tokenizer_training", "benchmarks")
COMMANDS = (
    "hf_lineage.pretraining",
    "tokenizer_training",
    "benchmarks.glue",
    "benchmarks.report",
    "benchmarks.speed",
    "benchmarks.minisuite",
)
SMOKE_TEST = """
import contextlib, importlib.metadata, importlib.util, io, json, runpy, sys, tempfile
from pathlib import Path

environment, commands = Path(sys.argv[1]).resolve(), json.loads(sys.argv[2])
for package in ("hf_lineage", "tokenizer_training", "benchmarks"):
    assert environment in Path(importlib.util.find_spec(package).origin).resolve().parents, package
assert importlib.metadata.version("hf-lineage") == importlib.import_module("hf_lineage").__version__

import hf_lineage, torch
from transformers import AutoModel
from hf_lineage.auto import FAMILIES
from hf_lineage.hub.model_card import create_model_card

torch.set_num_threads(1)
sizes = {
    "elmo": {"char_cnn_filters": [[1, 4]], "hidden_size": 8, "lstm_hidden_size": 6},
    "lineage_albert": {"vocab_size": 9, "embedding_size": 4, "hidden_size": 8, "num_attention_heads": 2},
    "lineage_xlnet": {"vocab_size": 9, "d_model": 8, "n_head": 2, "d_inner": 8, "n_layer": 1},
}
assert sizes.keys() == FAMILIES.keys()
for model_type, family in FAMILIES.items():
    folder = Path(tempfile.mkdtemp())
    config = getattr(hf_lineage, family.config[1])(**sizes[model_type])
    model = AutoModel.from_config(config).eval()
    model.save_pretrained(folder)
    ids = torch.ones((1, 3, 50) if model_type == "elmo" else (1, 3), dtype=torch.long)
    with torch.no_grad():
        both = (model, AutoModel.from_pretrained(folder))
        expected, found = (each(input_ids=ids).last_hidden_state for each in both)
    weights = (each.state_dict() for each in both)
    assert all(torch.equal(saved, loaded) for saved, loaded in zip(*map(dict.values, weights))), model_type
    # weights that are mapped from a file lie at other addresses, where kernels may add in another order
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert str(create_model_card(folder)).startswith("---")
for command in commands:
    said = io.StringIO()
    sys.argv = [command, "--help"]
    with contextlib.redirect_stdout(said):
        try:
            runpy.run_module(command, run_name="__main__", alter_sys=True)
        except SystemExit as error:
            assert not error.code, (command, error.code)
    assert "--" in said.getvalue(), command
print("passed")
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """The files of the checkout."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a checkout, to know its files")
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}


def test_the_sdist_has_the_files_of_the_checkout_and_nothing_else(packed, tracked):
    with tarfile.open(packed[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    untracked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True
    )
    assert names - set(untracked.stdout.splitlines()) == tracked - NOT_PACKED | {"PKG-INFO"}


def test_the_wheel_has_the_packages_and_nothing_else(packed, tracked):
    with zipfile.ZipFile(packed[1]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in names} == set(PACKAGES)
    assert {name for name in tracked if name.startswith(tuple(f"{package}/" for package in PACKAGES))} <= names
    assert {
        "hf_lineage/py.typed",
        "hf_lineage/hub/model_card.md.j2",
        "benchmarks/report/templates/page.html.j2",
    } <= names


def test_the_wheel_alone_passes_a_smoke_test(packed, tmp_path):
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=os.name != "nt")
    scheme = sysconfig.get_preferred_scheme("prefix")
    paths = sysconfig.get_paths(scheme, vars={"base": str(environment), "platbase": str(environment)})
    scripts = Path(paths["scripts"])
    python = scripts / Path(sys.executable).name
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, str(packed[1])], check=True)
    # What the package needs is that of this environment: without its .pth files, so without the checkout
    Path(paths["purelib"], "needs.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    script = tmp_path / "smoke.py"
    script.write_text(SMOKE_TEST, encoding="utf-8")
    command = [str(python), "-I", str(script), str(environment), json.dumps(COMMANDS)]
    done = subprocess.run(command, capture_output=True, text=True, env=clean, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "passed"
    done = subprocess.run([scripts / "hf-lineage", "--help"], capture_output=True, text=True, env=clean, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for command in ("info", "card", "convert", "embed", "elmo-cache", "push"):
        assert command in done.stdout


def test_the_citation_is_that_of_the_package_and_of_the_papers_in_cards():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["title"], citation["license"]) == ("hf-lineage", "Apache-2.0")
    assert citation["version"] == hf_lineage.__version__
    cited = {reference["url"] for reference in citation["references"]}
    fields = {"elmo": {"char_vocabulary": "dictionary"}, "lineage_albert": {"share_parameters": "none"}}
    in_cards = "".join(
        paper
        for model_type, family in FAMILIES.items()
        for paper in family_card(model_type).citations(
            getattr(hf_lineage, family.config[1])(**fields.get(model_type, {}))
        )
    )
    for reference in citation["references"]:
        assert {"type", "title", "authors", "year", "collection-title", "url"} == set(reference)
        assert reference["authors"][0]["family-names"] in in_cards
    assert len(cited) == in_cards.count("@inproceedings") == sum(url in in_cards for url in cited)
