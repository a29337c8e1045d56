"""The folder that an output is made in, which outlives a kill."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..files import atomic_file
from .outputs import move_into_place
from .survey import Survey

_VERSION = 1  # of the files in the folder


class WorkFolder:
    """The folder `OUTPUT.partial` beside an output, and the state of the run that makes it.

    Args:
        output: What the run makes.

    Attributes:
        path: The folder.
        windows: Number of windows that are done; `None` before the output is prepared.
    """

    def __init__(self, output: Path):
        self._output = output
        self.path = output.with_name(f"{output.name}.partial")
        self.windows: int | None = None
        self._state_file = self.path / "state.json"
        self._state: dict[str, Any] = {}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other runs away, and leaves no folder that there is nothing to go on from.

        Raises:
            ValueError: If another run is making the same output, or something else has the folder's name.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} must be free for a folder to work in, but it is a file")
        self.path.mkdir(exist_ok=True)
        lock = FileLock(self.path / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise ValueError(f"another run is writing {self._output}") from error
        try:
            yield
        finally:
            if not self._state_file.exists():
                shutil.rmtree(self.path)
            lock.release()

    def begin(self, settings: dict[str, Any], overwrite: bool, look: Callable[[], Survey]) -> Survey:
        """Finds out whether an earlier run has begun the same.

        Args:
            settings: What decides what is made; plain JSON values.
            overwrite: Whether what was begun with other settings may be given up.
            look: Surveys the input.

        Raises:
            ValueError: If an earlier run had other settings or another input, and must not be given up.
        """
        earlier = self._read()
        if earlier is None:
            self._clear()
        found = look()
        self._state = {"version": _VERSION, "settings": _plain({**settings, "input": found.digest})}
        if earlier is not None:
            differences = _differences(earlier, self._state)
            if not differences:
                self.windows = earlier["windows"]
            elif overwrite:
                self._clear()
                found = look()
            else:
                raise ValueError(
                    f"{self.path} was begun with other arguments ({', '.join(differences)}): give the same, remove "
                    "it, or start anew (--overwrite)"
                )
        return found

    def save(self, windows: int, **more: Any) -> None:
        """Notes how many windows are done."""
        self.windows = windows
        with atomic_file(self._state_file) as temporary:
            temporary.write_text(json.dumps({**self._state, "windows": windows, **more}), encoding="utf-8")

    def finish(self, made: Path, result: dict[str, int]) -> None:
        """Gives what was made its final name."""
        self.save(self.windows or 0, made=made.name, result=result)
        move_into_place(made, self._output)
        self._clear()

    def give_up(self) -> None:
        """Makes that no run goes on from here."""
        self._state_file.unlink()

    def finished(self, settings: dict[str, Any]) -> dict[str, int] | None:
        """Does what an earlier run, killed in `finish`, has left to do.

        Args:
            settings: As in `begin`.

        Returns:
            Its result, if it had the same settings; `None` if not, or if there was no such run.
        """
        state = self._read()
        if state is None or "made" not in state:
            return None
        made = self.path / state["made"]
        if made.exists():
            move_into_place(made, self._output)
        self._clear()
        expected = _plain({**settings, "input": state["settings"]["input"]})
        return state["result"] if self._output.exists() and state["settings"] == expected else None

    def _read(self) -> dict[str, Any] | None:
        try:
            state = json.loads(self._state_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{self._state_file} is damaged: remove {self.path}") from error
        return state

    def _clear(self) -> None:
        """Removes everything but the lock, what the state is of before the state itself."""
        for path in sorted(self.path.iterdir(), key=lambda path: path == self._state_file):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they are when they have been written and read."""
    return json.loads(json.dumps(settings))


def _differences(earlier: dict[str, Any], now: dict[str, Any]) -> list[str]:
    if earlier.get("version") != now["version"]:
        return ["version of the package"]
    before, after = earlier["settings"], now["settings"]
    return [
        name if name in ("input", "model") else f"{name}: {before.get(name)!r}, now {after.get(name)!r}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


__all__ = ["WorkFolder"]
