"""What several commands need."""

import sys
from pathlib import Path


def checked_source(model: str) -> str:
    """Returns a model's folder or Hub name as it is, unless it can only mean a folder and there is none.

    Raises:
        ValueError: If it is the path of a folder that does not exist.
    """
    if not Path(model).is_dir() and (model.startswith((".", "/", "~")) or model.count("/") > 1):
        raise ValueError(f"no folder {model}")
    return model


def quiet_progress() -> None:
    """Switches transformers' progress bars off where nobody watches them."""
    if not sys.stderr.isatty():
        from transformers.utils import logging

        logging.disable_progress_bar()


__all__ = ["checked_source", "quiet_progress"]
