"""Make transformers' own shared test classes importable for the version that is installed.

The wheel of transformers has no tests, its source distribution has the shared ones. They are fetched once per
version into `.cache/upstream/<version>/` of the repository and never committed.
"""

import functools
import importlib
import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest
from filelock import FileLock
from transformers import PreTrainedConfig
from transformers.models.auto import modeling_auto

PACKAGE = "transformers_upstream_tests"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "upstream"
STAND_INS = Path(__file__).resolve().parent / "stand_ins"
DOWNLOAD_SECONDS = 240


def upstream_module(name: str) -> ModuleType:
    """Import one of transformers' shared test modules.

    Where they can be neither found nor fetched the calling test module is skipped; with the environment variable
    `CI` set that is an error instead, so that a run which was to check them cannot pass without them.

    Args:
        name (`str`): Module name without a package, such as `"test_modeling_common"`.

    Returns:
        `ModuleType`: The module, imported from the package `transformers_upstream_tests`.
    """
    try:
        root = unpacked_tests(version("transformers"), CACHE)
    except RuntimeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error), allow_module_level=True)
    _make_importable(root)
    return importlib.import_module(f"{PACKAGE}.{name}")


@functools.cache
def unpacked_tests(transformers_version: str, cache: Path) -> Path:
    """Return the folder that holds the package of upstream tests, fetching it where it is not there yet.

    Args:
        transformers_version (`str`): The release whose tests are wanted.
        cache (`Path`): Folder for the tests of all versions; created if need be.

    Returns:
        `Path`: `<cache>/<transformers_version>`, to be put on `sys.path`.

    Raises:
        `RuntimeError`: The source distribution cannot be downloaded, or has no tests.
    """
    root = cache / transformers_version
    cache.mkdir(parents=True, exist_ok=True)
    # every worker of pytest-xdist comes here at once: the first one fetches, the others wait and find it
    with FileLock(cache / f"{transformers_version}.lock"):
        if not root.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                archive = download_sdist(transformers_version, Path(scratch) / "sdist")
                unpack_tests(archive, Path(scratch) / "unpacked" / PACKAGE)
                os.replace(Path(scratch) / "unpacked", root)
    return root


def download_sdist(transformers_version: str, destination: Path) -> Path:
    """Download the source distribution of one release of transformers with pip.

    Args:
        transformers_version (`str`): The release.
        destination (`Path`): A folder of its own for the archive; created by pip.

    Returns:
        `Path`: The archive.

    Raises:
        `RuntimeError`: pip fails or takes too long.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "2"]
    # only transformers itself from source: pip builds its metadata, and what that build needs may come as wheels
    command += ["--no-deps", "--no-binary", "transformers", "--dest", str(destination)]
    command += [f"transformers=={transformers_version}"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)
        (archive,) = destination.glob("transformers-*.tar.gz")
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[-1:] or [f"exit status {error.returncode}"]
    except subprocess.TimeoutExpired:
        reason = [f"pip took longer than {DOWNLOAD_SECONDS} seconds"]
    except ValueError:
        reason = [f"pip left {sorted(path.name for path in destination.iterdir())}, not one .tar.gz"]
    else:
        return archive
    raise RuntimeError(f"the tests of transformers {transformers_version} cannot be fetched: {reason[0]}")


def unpack_tests(archive: Path, package: Path) -> None:
    """Write the shared test modules of a source distribution as a package.

    Args:
        archive (`Path`): A `.tar.gz` of transformers.
        package (`Path`): Folder of the new package.

    Raises:
        `RuntimeError`: The archive has no `tests/test_*.py`.
    """
    (package / "fixtures").mkdir(parents=True)
    # opened by their paths: the first by the module of ConfigTester, the second by TokenizerTesterMixin, which
    # makes no use of what it reads
    (package / "__init__.py").touch()
    (package / "fixtures" / "sample_text.txt").touch()
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            # Reading members and naming the files ourselves is safe on every Python; the first releases of 3.10 have
            # no extraction filters.
            if member.isfile() and path.match("transformers-*/tests/test_*.py"):
                (package / path.name).write_bytes(tar.extractfile(member).read())
    if not (package / "test_modeling_common.py").is_file():
        raise RuntimeError(f"{archive.name} holds no tests/test_modeling_common.py")


def register_labels(config_class: type[PreTrainedConfig]) -> None:
    """Tell the shared tests which labels the models of one configuration take.

    `ModelTesterMixin` looks class names up in tables of the built-in models, which `AutoModel.register` leaves as
    they are. Its own names for those tables are bound to copies that also hold the registered classes; the tables
    of transformers do not change.

    Args:
        config_class (`type[PreTrainedConfig]`): A configuration whose models are registered with the auto classes.

    Raises:
        `ValueError`: No model is registered for `config_class`.
    """
    common = upstream_module("test_modeling_common")
    registered = 0
    for name in [name for name in vars(common) if name.startswith("MODEL_") and name.endswith("_MAPPING_NAMES")]:
        mapping = getattr(modeling_auto, name.removesuffix("_NAMES"))
        if config_class in mapping:
            setattr(common, name, {**getattr(common, name), config_class.model_type: mapping[config_class].__name__})
            registered += 1
    if not registered:
        raise ValueError(f"no model class is registered for {config_class.__name__}; expected at least AutoModel")


@functools.cache
def _make_importable(root: Path) -> None:
    sys.path.insert(0, str(root))
    # the mixins check with plain `assert`: have pytest explain those as it does ours
    pytest.register_assert_rewrite(PACKAGE)
    package = importlib.import_module(PACKAGE)
    # where the subpackages are found that the source distribution lacks
    package.__path__.append(str(STAND_INS))
