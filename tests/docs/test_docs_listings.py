"""The Python of the documentation runs, and comes to what the text around it says."""

import runpy
from pathlib import Path

import pytest
import torch
from docs_pages import PAGES, blocks

from benchmarks.minisuite import load_task
from hf_lineage import ElmoConfig, ElmoModel, ElmoTokenizer

READMES = ["README.md", "README.zh-CN.md"]
# Words of listings that have a test of their own, since they need files or their results are looked at
ALONE = {
    "README.md": ("path/to/elmo", "glue/sst2"),
    "README.zh-CN.md": ("path/to/elmo", "glue/sst2"),
    "docs/albert.md": ("padding_free",),
    "docs/fine_tuning.md": ("DataCollatorForTokenClassification",),
}
ELSEWHERE = {"docs/neighbours.md"}  # tests/neighbours, since it needs other packages
LISTINGS = [
    block
    for block in blocks("python")
    if block.page not in ELSEWHERE and not any(words in block.code for words in ALONE.get(block.page, ()))
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a listing as a script in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_code(code: str) -> dict:
        Path("listing.py").write_text(code, encoding="utf-8")
        return runpy.run_path("listing.py")

    return run_code


def listing(page: str, words: str) -> str:
    """The listing of a page that has some words."""
    (block,) = (block for block in blocks("python", page) if words in block.code)
    return block.code


def test_pages_have_listings():
    assert {"docs/albert.md", "docs/elmo.md", "docs/xlnet.md"} <= {block.page for block in LISTINGS}


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.page == page for block in LISTINGS)])
def test_listings_run(page, run):
    for block in LISTINGS:
        if block.page == page:
            run(block.code)


@pytest.mark.parametrize("page", READMES)
def test_five_lines(page, run):
    code = listing(page, "path/to/elmo")
    assert len([line for line in code.splitlines() if line]) == 5
    ElmoModel(ElmoConfig(lstm_hidden_size=16, char_cnn_filters=[[1, 8]])).save_pretrained("path/to/elmo")
    ElmoTokenizer().save_pretrained("path/to/elmo")
    outputs = run(code)["outputs"]
    assert outputs.last_hidden_state.shape == (2, 7, 1024)
    assert [layer.shape for layer in outputs.hidden_states] == [(2, 7, 1024)] * 3
    # "jam", by its characters alone and in its sentences
    words, *_ = outputs.hidden_states
    assert torch.equal(words[0, 2], words[1, 5])
    assert not torch.allclose(outputs.last_hidden_state[0, 2], outputs.last_hidden_state[1, 5])


def test_trainer_listing(run):
    code = listing("README.md", "glue/sst2")  # that of the other README is the same: test_docs_languages
    assert len(code.splitlines()) < 25
    data = load_task("sentiment")
    for split, rows in (("train", 128), ("validation", 32)):
        path = Path("glue/sst2", f"{split}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        data[split].select(range(rows)).to_parquet(path)
    trainer = run(code)["trainer"]
    assert trainer.state.global_step == 2
    assert "eval_accuracy" in trainer.state.log_history[-2]


def test_ways_to_compute_without_padding_give_the_same(run):
    found = run(listing("docs/albert.md", "padding_free"))
    expected = found["padded"]
    for output in (found["packed"], found["unpadded"]):
        torch.testing.assert_close(output.pooler_output, expected.pooler_output, atol=1e-6, rtol=0)
    real = expected.last_hidden_state[found["mask"].bool()]
    torch.testing.assert_close(found["packed"].last_hidden_state[0], real, atol=1e-6, rtol=0)


def test_labels_of_words_are_learned(run):
    trainer = run(listing("docs/fine_tuning.md", "DataCollatorForTokenClassification"))["trainer"]
    row = trainer.train_dataset[0]
    assert row["labels"] == [1, 0, 0, 2, 0]
    losses = [record["loss"] for record in trainer.state.log_history if "loss" in record]
    assert not losses or losses[-1] < 1.0
    assert trainer.state.log_history[-1]["train_loss"] < 0.9  # three labels: 1.1 before
