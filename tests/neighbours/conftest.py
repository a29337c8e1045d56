import pytest


@pytest.fixture(autouse=True)
def _without_the_hub(monkeypatch):
    """PEFT and sentence-transformers look on the Hub for models whose names they do not know."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
