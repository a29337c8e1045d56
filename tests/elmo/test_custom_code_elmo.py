"""The family's files as custom code on the Hub: a folder that holds them loads where the package is not installed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

import hf_lineage
from hf_lineage import ElmoForSequenceClassification, ElmoTokenizer

FOLDER = Path(hf_lineage.__file__).parent / "elmo"
FILES = [
    "configuration",
    "loading",
    "packing",
    "checks",
    "character_encoder",
    "lstm",
    "scalar_mix",
    "task_features",
    "heads",
    "scoring",
    "softmax",
    "modeling",
    "packed_linear",
    "tokenization",
]
AUTO_MAP = {
    "AutoConfig": "configuration_elmo.ElmoConfig",
    "AutoModel": "modeling_elmo.ElmoModel",
    "AutoModelForSequenceClassification": "modeling_elmo.ElmoForSequenceClassification",
}
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
    for name in FILES:
        shutil.copy(FOLDER / f"{name}_elmo.py", folder)
    for file, auto_map in (
        ("config.json", AUTO_MAP),
        ("tokenizer_config.json", {"AutoTokenizer": ["tokenization_elmo.ElmoTokenizer", None]}),
    ):
        content = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**content, "auto_map": auto_map}))
    subprocess.run(
        [sys.executable, "-c", SCRIPT, folder, tmp_path / "logits.pt"],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
    )
    with torch.no_grad():
        expected = model(**tokenizer(["one two", "three"], padding=True, return_tensors="pt")).logits
    assert torch.equal(torch.load(tmp_path / "logits.pt", weights_only=True), expected)
