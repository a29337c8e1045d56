import re
import runpy
from pathlib import Path

import pytest
import torch

from benchmarks.minisuite import load_task
from hf_lineage import ElmoConfig, ElmoModel, ElmoTokenizer
from hf_lineage.pretraining.arguments import parse_arguments
from hf_lineage.pretraining.objective import FAMILIES, objective_class

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
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


@pytest.mark.parametrize(
    "page", sorted(page for page in ROOT.glob("docs/*.md") if page.name != "neighbours.md"), ids=lambda page: page.name
)
def test_listings_of_the_documentation(page, run):
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        run(code)


def test_ways_to_compute_without_padding_give_the_same(run):
    text = (ROOT / "docs" / "albert.md").read_text(encoding="utf-8")
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "padding_free" in block)
    found = run(code)
    expected = found["padded"]
    for output in (found["packed"], found["unpadded"]):
        torch.testing.assert_close(output.pooler_output, expected.pooler_output, atol=1e-6, rtol=0)
    real = expected.last_hidden_state[found["mask"].bool()]
    torch.testing.assert_close(found["packed"].last_hidden_state[0], real, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ("albert", {"max_minutes": 18, "sentence_objective": "sop"}),
        ("xlnet", {"max_length": 32, "objective": "permutation", "memory": True}),
        ("elmo_pretraining", {"unroll_steps": 20, "softmax": "sampled", "num_negative_samples": 1024}),
    ],
)
def test_the_settings_in_the_documentation_are_settings(page, settings, tmp_path):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (listing,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "settings.yaml").write_text(listing, encoding="utf-8")
    parsed, own = parse_arguments(
        ["--config", str(tmp_path / "settings.yaml")],
        list(FAMILIES),
        lambda family: objective_class(family).arguments_class,
    )
    assert parsed.family == page.split("_")[0]
    assert {name: getattr(own, name, getattr(parsed, name, None)) for name in settings} == settings
