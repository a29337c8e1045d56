from collections.abc import Callable, Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants
from loopback_hub import LoopbackHub
from transformers.utils import hub as transformers_hub

TOKEN = "hf_aTokenThatMustNotShow"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A Hub of our own in the place of the real one, with a fresh cache and its user logged in."""
    with LoopbackHub(TOKEN) as server:
        use(server, tmp_path / "cache", monkeypatch)
        yield server


def use(server: LoopbackHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes huggingface_hub and transformers talk to a server; they read the environment when they are imported."""
    for name, value in {
        "ENDPOINT": server.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": server.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(cache),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,  # its protocol is another one, which this server does not speak
        "HF_TOKEN_PATH": str(cache / "no token"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr(huggingface_hub.hf_api.api, "endpoint", server.url)
    monkeypatch.setattr(transformers_hub, "_hf_api", None)
    monkeypatch.setenv("HF_TOKEN", server.token)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """huggingface_hub tries again at once, without its pauses of seconds."""
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def read_folder() -> Callable[[Path], dict[str, bytes]]:
    return snapshot
