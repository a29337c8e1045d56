"""Writing files and folders so that a kill at any moment leaves nothing half-written under a final name."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_file(path: str | os.PathLike) -> Iterator[Path]:
    """Gives a temporary file beside `path` to write to, and renames it to `path` if the block ends well.

    Raises:
        ValueError: If there is no folder for it, or a folder of that name.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield Path(temporary)
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's files are private
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike, overwrite: bool = False) -> Iterator[Path]:
    """Gives a temporary folder beside `path` to fill, and renames it to `path` if the block ends well.

    Args:
        path: The folder; missing parents are made.
        overwrite: Whether a folder that stands there already, with something in it, may be replaced.

    Raises:
        ValueError: If something stands there and may not be replaced, or nothing can be written there.
    """
    path = Path(path).resolve()  # of a link, the folder that it leads to is replaced
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} must be a folder, but a file of that name exists")
    if path.is_dir() and any(path.iterdir()) and not overwrite:
        raise ValueError(f"{path} exists and is not empty: choose another folder, or overwrite it (--overwrite)")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    except OSError as error:
        file = next((parent for parent in path.parents if parent.exists() and not parent.is_dir()), None)
        reason = error.strerror if file is None else f"{file} is a file"
        raise ValueError(f"cannot write {path}: {reason}") from error
    try:
        yield temporary
        os.chmod(temporary, 0o777 & ~_umask())
        if overwrite and path.exists():
            replace_folder(temporary, path)
        else:
            os.replace(temporary, path)  # fails if something was put there meanwhile
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def replace_folder(new: Path, path: Path) -> None:
    """Puts a file or folder in the place of a folder, which is removed when the other is there."""
    old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    os.replace(path, old)
    try:
        os.replace(new, path)
    except OSError:
        os.replace(old, path)
        raise
    shutil.rmtree(old)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


__all__ = ["atomic_file", "atomic_folder", "replace_folder"]
