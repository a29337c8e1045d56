import re
import runpy
from pathlib import Path

import pytest

from benchmarks.minisuite import load_task
from hf_lineage import ElmoConfig, ElmoModel, ElmoTokenizer

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a listing as a script in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_code(code: str) -> dict:
        Path("listing.py").write_text(code, encoding="utf-8")
        return runpy.run_path("listing.py")

    return run_code


def test_loading_listing(run):
    (code,) = (block for block in BLOCKS if "path/to/elmo" in block)
    Path("path/to").mkdir(parents=True)
    ElmoModel(ElmoConfig(lstm_hidden_size=16, char_cnn_filters=[[1, 8]])).save_pretrained("path/to/elmo")
    ElmoTokenizer().save_pretrained("path/to/elmo")
    outputs = run(code)["outputs"]
    assert outputs.last_hidden_state.shape == (2, 7, 1024)
    assert [layer.shape for layer in outputs.hidden_states] == [(2, 7, 1024)] * 3


def test_trainer_listing(run):
    (code,) = (block for block in BLOCKS if "Trainer(" in block)
    assert len(code.splitlines()) < 25
    data = load_task("sentiment")
    for split, rows in (("train", 128), ("validation", 32)):
        path = Path("glue/sst2", f"{split}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        data[split].select(range(rows)).to_parquet(path)
    trainer = run(code)["trainer"]
    assert trainer.state.global_step == 2
    assert "eval_accuracy" in trainer.state.log_history[-2]
