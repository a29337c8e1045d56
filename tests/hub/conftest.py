from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback_hub import LoopbackHub, use


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A Hub of our own in the place of the real one, with a fresh cache and its user logged in."""
    with LoopbackHub() as server:
        use(server, tmp_path / "cache", monkeypatch)
        yield server


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """huggingface_hub tries again at once, without its pauses of seconds."""
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)


@pytest.fixture
def read_folder() -> Callable[[Path], dict[str, bytes]]:
    """Reads every file of a folder."""

    def read(folder: Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    return read
