"""The family's files as custom code on the Hub: a folder that holds them loads where the package is not installed."""

import os
import subprocess
import sys

import torch

from hf_lineage import ElmoForSequenceClassification, ElmoTokenizer
from hf_lineage.hub.contents import write_code

SCRIPT = """
import sys
import torch
sys.modules["hf_lineage"] = None  # as if it were not installed
from transformers import AutoModelForSequenceClassification, AutoTokenizer
torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1], trust_remote_code=True)
assert type(model).__module__.startswith("transformers_modules"), type(model)
with torch.no_grad():
    logits = model(**tokenizer(["one two", "three"], padding=True, return_tensors="pt")).logits
torch.save(logits, sys.argv[2])
"""


def test_folder_with_code_loads_without_the_package(tiny, tmp_path):
    model = ElmoForSequenceClassification(tiny()).eval()
    tokenizer = ElmoTokenizer()
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_code(folder, with_code=True)
    subprocess.run(
        [sys.executable, "-c", SCRIPT, folder, tmp_path / "logits.pt"],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
    )
    with torch.no_grad():
        expected = model(**tokenizer(["one two", "three"], padding=True, return_tensors="pt")).logits
    assert torch.equal(torch.load(tmp_path / "logits.pt", weights_only=True), expected)
