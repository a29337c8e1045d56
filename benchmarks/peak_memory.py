"""The most memory that this process has held, as the system or the device counts it."""

import resource
import sys
from pathlib import Path

import torch

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"


def status_bytes(name: str) -> int:
    """Return a number of bytes that Linux tells of this process: `VmRSS`, or its highest so far, `VmHWM`.

    Raises:
        OSError: Where the system does not tell it.
    """
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"the system does not tell {name}")


def forget_peak(device: torch.device) -> bool:
    """Begin to count the peak anew.

    Returns:
        Whether that was possible; if not, `peak_bytes` is that of the process since its start.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return True
    try:
        _CLEAR.write_text(_FORGET_PEAK)
    except OSError:
        return False
    return True


def peak_bytes(device: torch.device) -> int:
    """Return the most bytes of this process since `forget_peak`: those torch held on a GPU, or resident ones."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        return status_bytes("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
