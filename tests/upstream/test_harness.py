import io
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from . import harness

pytestmark = pytest.mark.upstream

RELEASE = "5.99.0"


def write_sdist(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            content = f"# {name}".encode()
            member = tarfile.TarInfo(f"transformers-{RELEASE}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_only_the_shared_tests_are_unpacked(tmp_path):
    archive = write_sdist(
        tmp_path / f"transformers-{RELEASE}.tar.gz",
        "setup.py",
        "src/transformers/testing_utils.py",
        "tests/test_modeling_common.py",
        "tests/utils/test_deeper.py",
        "tests/../../test_outside.py",
    )
    package = tmp_path / "unpacked" / "package"

    harness.unpack_tests(archive, package)

    assert (package / "test_modeling_common.py").read_text() == "# tests/test_modeling_common.py"
    assert [path.name for path in package.glob("**/*.py") if path.stat().st_size] == ["test_modeling_common.py"]
    assert not list(tmp_path.glob("**/test_outside.py"))


def test_an_archive_without_the_shared_tests_is_refused(tmp_path):
    archive = write_sdist(tmp_path / f"transformers-{RELEASE}.tar.gz", "setup.py")

    with pytest.raises(RuntimeError, match=r"holds no tests/test_modeling_common\.py"):
        harness.unpack_tests(archive, tmp_path / "package")


def test_many_workers_fetch_once(tmp_path, monkeypatch):
    downloads = []

    def download(release, destination):
        downloads.append(release)
        return write_sdist(destination / "sdist.tar.gz", "tests/test_modeling_common.py")

    monkeypatch.setattr(harness, "download_sdist", download)
    with ThreadPoolExecutor(8) as pool:
        roots = set(pool.map(lambda _: harness.unpacked_tests.__wrapped__(RELEASE, tmp_path / "cache"), range(8)))

    assert downloads == [RELEASE]
    assert roots == {tmp_path / "cache" / RELEASE}
    assert (tmp_path / "cache" / RELEASE / harness.PACKAGE / "test_modeling_common.py").is_file()


def test_a_failed_fetch_leaves_nothing_that_looks_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "download_sdist", lambda release, destination: write_sdist(destination / "a", "b"))

    with pytest.raises(RuntimeError, match="holds no"):
        harness.unpacked_tests(RELEASE, tmp_path)

    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_the_reason_of_pip_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    with pytest.raises(RuntimeError, match=rf"transformers {RELEASE} cannot be fetched: .*No matching distribution"):
        harness.download_sdist(RELEASE, tmp_path / "sdist")


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", RuntimeError)])
def test_without_the_tests_a_run_skips_and_a_ci_run_fails(ci, outcome, monkeypatch):
    def unpacked_tests(release, cache):
        raise RuntimeError("no network")

    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(harness, "unpacked_tests", unpacked_tests)

    with pytest.raises(outcome, match="no network"):
        harness.upstream_module("test_modeling_common")


class UnregisteredConfig(PreTrainedConfig):
    model_type = "upstream_harness_unregistered"


class RegisteredConfig(PreTrainedConfig):
    model_type = "upstream_harness_registered"


class RegisteredModel(PreTrainedModel):
    config_class = RegisteredConfig


def test_labels_need_registered_models():
    with pytest.raises(ValueError, match="no model class is registered for UnregisteredConfig"):
        harness.register_labels(UnregisteredConfig)


def test_labels_are_registered_for_the_shared_tests_alone():
    common = harness.upstream_module("test_modeling_common")
    AutoModel.register(RegisteredConfig, RegisteredModel)

    harness.register_labels(RegisteredConfig)

    assert common.MODEL_MAPPING_NAMES[RegisteredConfig.model_type] == "RegisteredModel"
    assert common.MODEL_MAPPING_NAMES["bert"] == "BertModel"
    assert RegisteredConfig.model_type not in MODEL_MAPPING_NAMES
