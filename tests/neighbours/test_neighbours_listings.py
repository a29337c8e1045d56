"""The listings of docs/neighbours.md, each as a script in a folder with the models of the first."""

import re
import runpy
from pathlib import Path

import pytest
from neighbour_inputs import IS_RECENT_TORCH

PAGE = Path(__file__).parents[2] / "docs" / "neighbours.md"
# What a section needs, and a file that is there when its listings have run
SECTIONS = {
    "PEFT: LoRA": (["peft"], "adapter/adapter_model.safetensors"),
    "sentence-transformers": (["sentence_transformers"], "sentences/modules.json"),
    "torch.compile": ([], "elmo/config.json"),
    "torch.export, ONNX and int8": (["onnxscript", "onnxruntime"], "elmo.int8.onnx"),
    "Trainer: optuna and TensorBoard": (["optuna", "tensorboard"], "runs"),
}


def sections() -> dict[str, list[str]]:
    """Heading -> its listings; the part before the first heading has the empty one."""
    parts = re.split(r"^## (.+)\n", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    texts = dict(zip(["", *parts[1::2]], parts[::2], strict=True))
    return {heading: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for heading, text in texts.items()}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run_code(code: str) -> dict:
        Path("listing.py").write_text(code, encoding="utf-8")
        return runpy.run_path("listing.py")

    return run_code


def test_every_section_is_run():
    assert list(sections()) == ["", *SECTIONS]
    assert all(sections().values())


@pytest.mark.parametrize("heading", SECTIONS)
def test_listings(heading, run):
    modules, written = SECTIONS[heading]
    for module in modules:
        pytest.importorskip(module, reason="needs the extras neighbours and tracking")
    if "onnxscript" in modules and not IS_RECENT_TORCH:
        pytest.skip("needs torch 2.9 or later")
    for code in sections()[""] + sections()[heading]:
        run(code)
    assert Path(written).exists()
