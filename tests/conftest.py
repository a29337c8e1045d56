import sys
from pathlib import Path

import pytest
import torch
from transformers.utils import logging as transformers_logging

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(autouse=True)
def _one_seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _fresh_accelerate_state():
    """accelerate keeps the settings of the first accelerator of a process, whichever test has made it."""
    yield
    if state := sys.modules.get("accelerate.state"):
        state.AcceleratorState._reset_state(True)
        state.GradientState._reset_state()


@pytest.fixture(autouse=True)
def _same_verbosity():
    """Commands that run in this process make transformers quiet, and its own tests read what it says."""
    before = transformers_logging.get_verbosity()
    yield
    transformers_logging.set_verbosity(before)


@pytest.fixture(scope="session", autouse=True)
def _few_threads():
    """Several workers share the cores; more threads than one each would only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the reference data in {SHARED.name}/ beside the checkout")
    return SHARED
