"""Unpacking what others have packed: never more than is plausible, and never under names that they chose."""

import shutil
import zipfile
from pathlib import Path
from typing import IO, Protocol

_ALWAYS_ALLOWED = 256 * 1024**2
# Weights hardly shrink and text does so by ten at most; deflate can make a thousand times of nothing
_LARGEST_RATIO = 200
_BLOCK = 1024**2


class Readable(Protocol):
    """What gives bytes, such as a decompressor."""

    def read(self, size: int, /) -> bytes:
        """Returns so many bytes, or fewer at the end."""


def most_unpacked(packed_size: int) -> int:
    """Returns how many bytes may plausibly come out of so many packed ones: 256 MiB, or 200 times as many."""
    return max(_ALWAYS_ALLOWED, _LARGEST_RATIO * packed_size)


def checked_members(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    """Returns the files of a zip, folders left out.

    Args:
        archive: The zip.
        name: Its name in errors.

    Raises:
        ValueError: If they would be implausibly large: such an archive is made to fill disks.
    """
    members = [member for member in archive.infolist() if not member.is_dir()]
    packed = sum(member.compress_size for member in members)
    for what, size, most in [
        *((member.filename, member.file_size, most_unpacked(member.compress_size)) for member in members),
        ("all its files", sum(member.file_size for member in members), most_unpacked(packed)),
    ]:
        if size > most:
            raise ValueError(f"{name}: {what} would be unpacked to {size:,} bytes, more than the {most:,} allowed")
    return members


def copy_unpacked(source: Readable, target: IO[bytes], packed_size: int, name: str, folder: Path) -> None:
    """Copies what a decompressor gives.

    Args:
        source: The decompressor.
        target: Where it goes.
        packed_size: Bytes of what it decompresses.
        name: Its name in errors.
        folder: On the disk that it goes to.

    Raises:
        ValueError: If there is implausibly much of it, or no room for it.
    """
    most, written = most_unpacked(packed_size), 0
    while block := source.read(_BLOCK):
        written += len(block)
        if written > most:
            raise ValueError(f"{name} is unpacked to more than the {most:,} bytes that are allowed")
        if len(block) > shutil.disk_usage(folder).free:
            raise ValueError(f"there is no room to unpack {name} in {folder}")
        target.write(block)


__all__ = ["checked_members", "copy_unpacked", "most_unpacked"]
