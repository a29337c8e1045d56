"""The family's files as custom code on the Hub: a folder that holds them loads where the package is not installed."""

import os
import subprocess
import sys

import torch
from transformers import AlbertForSequenceClassification

from hf_lineage import LineageAlbertForSequenceClassification
from hf_lineage.hub.contents import write_code

SCRIPT = """
import sys
import torch
sys.modules["hf_lineage"] = None  # as if it were not installed
from transformers import AutoModelForSequenceClassification, AutoTokenizer
folder, result, peer = sys.argv[1:]
torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)
for loaded in (tokenizer, model, model.config):
    assert type(loaded).__module__.startswith("transformers_modules"), type(loaded)
with torch.no_grad():
    inputs = tokenizer(["one two", "three"], ["it was", "the film ."], padding=True, return_tensors="pt")
    logits = model(**inputs).logits
torch.save(logits, result)
model.to_transformers().save_pretrained(peer)
"""


def test_folder_with_code_loads_without_the_package(tiny, randomize, tokenizer, tmp_path):
    model = randomize(LineageAlbertForSequenceClassification(tiny(share_parameters="attention")))
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_code(folder, with_code=True)
    subprocess.run(
        [sys.executable, "-c", SCRIPT, folder, tmp_path / "logits.pt", tmp_path / "peer"],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
    )
    inputs = tokenizer(["one two", "three"], ["it was", "the film ."], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits
        of_peer = AlbertForSequenceClassification.from_pretrained(tmp_path / "peer")(**inputs).logits
    torch.testing.assert_close(torch.load(tmp_path / "logits.pt", weights_only=True), expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(of_peer, expected, atol=1e-5, rtol=0)
