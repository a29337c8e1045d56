"""Folders that a run can go on from: written whole or not at all, and read only if they are whole."""

import hashlib
import json
import logging
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..files import atomic_folder

_CHECKSUMS_FILE = "checksums.json"
_PREFIX = "step-"

logger = logging.getLogger(__name__)


def save_checkpoint(folder: Path, step: int, fill: Callable[[Path], None], limit: int) -> Path:
    """Writes a checkpoint, and removes old ones only when it is there.

    Args:
        folder: Folder of all checkpoints of a run.
        step: Number of optimizer steps that are done.
        fill: Writes the checkpoint's files into the folder that it is given.
        limit: How many checkpoints are kept.

    Returns:
        The checkpoint.
    """
    path = folder / f"{_PREFIX}{step:08d}"
    with atomic_folder(path, overwrite=True) as temporary:
        fill(temporary)
        digests = {str(file.relative_to(temporary)): _digest(file) for file in _files(temporary)}
        (temporary / _CHECKSUMS_FILE).write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")
    # Later steps are of damaged checkpoints: they do not take the place of good ones.
    earlier = [other for other in _checkpoints(folder) if checkpoint_step(other) <= step]
    for other in earlier[:-limit]:
        _remove(other)
    return path


def latest_checkpoint(folder: Path) -> Path | None:
    """Returns the newest checkpoint that is whole, and says which newer ones are not.

    Args:
        folder: Folder of all checkpoints of a run.

    Returns:
        The checkpoint; `None` if there has been none.

    Raises:
        ValueError: If there are checkpoints, but none is whole.
    """
    _remove_leftovers(folder)
    paths = _checkpoints(folder)
    for path in reversed(paths):
        damage = _find_damage(path)
        if damage is None:
            return path
        logger.warning("The checkpoint %s is damaged (%s); looking for the one before it", path, damage)
    if paths:
        raise ValueError(
            f"All checkpoints in {folder} are damaged: {', '.join(path.name for path in paths)}. Restore one, or "
            "start anew with --overwrite_output_dir"
        )
    return None


def checkpoint_step(path: Path) -> int:
    """Returns the number of optimizer steps after which a checkpoint was written."""
    return int(path.name.removeprefix(_PREFIX))


def remove_checkpoints(folder: Path) -> None:
    """Removes all checkpoints of a run, the oldest first."""
    _remove_leftovers(folder)
    for path in _checkpoints(folder):
        _remove(path)


def random_state(device: torch.device) -> dict[str, Any]:
    """Returns the state of this process's random generators: python's, numpy's, torch's and the device's."""
    numpy_state = np.random.get_state(legacy=False)
    return {
        "python": random.getstate(),
        "numpy": {**numpy_state, "state": {**numpy_state["state"], "key": numpy_state["state"]["key"].tolist()}},
        "torch": torch.get_rng_state(),
        "device": None if device.type == "cpu" else torch.get_device_module(device).get_rng_state(device),
    }


def set_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Sets this process's random generators to what `random_state` returned.

    Raises:
        ValueError: If the state is of another kind of device.
    """
    if (state["device"] is None) != (device.type == "cpu"):
        raise ValueError(f"The checkpoint's random state is of another kind of device than {device}")
    random.setstate(state["python"])
    key = np.array(state["numpy"]["state"]["key"], dtype=np.uint32)
    np.random.set_state({**state["numpy"], "state": {**state["numpy"]["state"], "key": key}})
    torch.set_rng_state(state["torch"])
    if state["device"] is not None:
        torch.get_device_module(device).set_rng_state(state["device"], device)


def _checkpoints(folder: Path) -> list[Path]:
    """Returns the checkpoints of a run, the oldest first."""
    found = [path for path in folder.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdecimal()]
    return sorted(found, key=checkpoint_step)


def _find_damage(path: Path) -> str | None:
    """Returns what is wrong with a checkpoint."""
    try:
        digests = json.loads((path / _CHECKSUMS_FILE).read_text(encoding="utf-8"))
        for name, digest in digests.items():
            if _digest(path / name) != digest:
                return f"{name} does not have its checksum"
    except (OSError, ValueError, AttributeError) as error:
        return str(error)
    return None


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _remove(path: Path) -> None:
    """Removes a checkpoint so that a kill in between does not leave half of it under its name."""
    doomed = path.with_name(f".{path.name}.removed")
    shutil.rmtree(doomed, ignore_errors=True)
    os.replace(path, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Removes what killed processes left: checkpoints half written, replaced or removed."""
    for path in folder.glob(f".{_PREFIX}*"):
        shutil.rmtree(path, ignore_errors=True)


__all__ = [
    "checkpoint_step",
    "latest_checkpoint",
    "random_state",
    "remove_checkpoints",
    "save_checkpoint",
    "set_random_state",
]
