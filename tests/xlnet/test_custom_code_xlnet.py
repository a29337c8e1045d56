"""The family's files as custom code on the Hub: a folder that holds them loads where the package is not installed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from transformers import XLNetForSequenceClassification

import hf_lineage
from hf_lineage import LineageXLNetTokenizer

FOLDER = Path(hf_lineage.__file__).parent / "xlnet"
FILES = (
    "attention cache configuration conversion generation heads layers masks modeling permutation positions projection "
    "scoring sentencepiece tokenization"
).split()
SPECIAL = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
WORDS = "▁one ▁two ▁three ▁it ▁was ▁the ▁film ▁ .".split()
AUTO_MAP = {
    "AutoConfig": "configuration_xlnet.LineageXLNetConfig",
    "AutoModel": "modeling_xlnet.LineageXLNetModel",
    "AutoModelForSequenceClassification": "modeling_xlnet.LineageXLNetForSequenceClassification",
}
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


def test_folder_with_code_loads_without_the_package(build, tmp_path):
    model = build("ForSequenceClassification")
    tokenizer = LineageXLNetTokenizer(vocab=[(piece, -1.0 - index) for index, piece in enumerate(SPECIAL + WORDS)])
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name in FILES:
        shutil.copy(FOLDER / f"{name}_xlnet.py", folder)
    for file, auto_map in (
        ("config.json", AUTO_MAP),
        ("tokenizer_config.json", {"AutoTokenizer": ["tokenization_xlnet.LineageXLNetTokenizer", None]}),
    ):
        content = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**content, "auto_map": auto_map}))
    subprocess.run(
        [sys.executable, "-c", SCRIPT, folder, tmp_path / "logits.pt", tmp_path / "peer"],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
    )
    inputs = tokenizer(["one two", "three"], ["it was", "the film ."], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits
        of_peer = XLNetForSequenceClassification.from_pretrained(tmp_path / "peer")(**inputs).logits
    torch.testing.assert_close(torch.load(tmp_path / "logits.pt", weights_only=True), expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(of_peer, expected, atol=1e-5, rtol=0)


def test_the_list_of_files_is_complete():
    stays_behind = {"pipeline_xlnet.py"}
    assert {f"{name}_xlnet.py" for name in FILES} == {path.name for path in FOLDER.glob("*_xlnet.py")} - stays_behind
