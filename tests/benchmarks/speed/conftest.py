import pytest
from transformers.utils import logging


@pytest.fixture(autouse=True)
def _no_progress_bars():
    were_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    yield
    if were_enabled:
        logging.enable_progress_bar()
