"""LoRA through PEFT: where it goes by default, that it trains, is saved, loaded and merged."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from neighbour_inputs import build_model
from tiny_families import ALBERT, ELMO, FAMILIES, XLNET, tokenizer_of

from hf_lineage.auto import _register_lora_targets

peft = pytest.importorskip("peft", reason="needs the extra neighbours")

ADAPTED = {
    ELMO: {
        f"{direction}_layers.{number}.{part}_linear"
        for direction in ("forward", "backward")
        for number in (0, 1)
        for part in ("input", "recurrent")
    },
    ALBERT: {"attention_blocks.0.query", "attention_blocks.0.value"},  # one block, which both layers share
    XLNET: {f"layer.{number}.rel_attn.{part}" for number in (0, 1) for part in ("q", "v")},
}
# besides "classifier", which PEFT trains by itself
HEADS = {ELMO: ["scalar_mixes.0"], ALBERT: None, XLNET: ["sequence_summary", "logits_proj"]}


@pytest.mark.parametrize("family", FAMILIES)
def test_default_targets_train_and_are_saved_loaded_and_merged(family, tmp_path):
    batch = tokenizer_of(family)(["the cat sat", "a bad film in the mat"], padding=True, return_tensors="pt")
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, modules_to_save=HEADS[family])
    model = peft.get_peft_model(build_model(family, "ForSequenceClassification"), config)
    adapted = {name.split(".lora_A")[0] for name, _ in model.named_parameters() if ".lora_A" in name}
    assert {next(part for part in ADAPTED[family] if name.endswith(part)) for name in adapted} == ADAPTED[family]
    assert len(adapted) == len(ADAPTED[family])
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert all(".lora_" in name or "modules_to_save" in name for name in trained)

    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for _ in range(2):  # LoRA's second matrix is zero before the first step
        model(**batch, labels=torch.tensor([0, 1])).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    changed = {name for name, value in model.named_parameters() if not torch.equal(value, before[name])}
    assert changed == trained

    model.eval().save_pretrained(tmp_path)
    loaded = peft.PeftModel.from_pretrained(build_model(family, "ForSequenceClassification"), tmp_path).eval()
    kept, found = (peft.get_peft_model_state_dict(adapted) for adapted in (model, loaded))
    assert kept.keys() == found.keys()
    assert all(torch.equal(value, found[name]) for name, value in kept.items())
    with torch.no_grad():
        plain = build_model(family, "ForSequenceClassification")(**batch).logits
        expected = model(**batch).logits
        torch.testing.assert_close(loaded(**batch).logits, expected, atol=1e-6, rtol=1e-6)
        merged = loaded.merge_and_unload()
        torch.testing.assert_close(merged(**batch).logits, expected, atol=1e-5, rtol=1e-5)
        assert (expected - plain).abs().max() > 1e-2
    assert type(merged).__name__ == type(build_model(family, "ForSequenceClassification")).__name__


@pytest.mark.parametrize(
    ("task", "head"), [("TOKEN_CLS", "TokenClassification"), ("QUESTION_ANS", "QuestionAnswering")]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_other_heads(family, task, head):
    batch = tokenizer_of(family)(["the cat sat", "a"], padding=True, return_tensors="pt")
    model = build_model(family, f"For{head}")
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type=task, r=2)).eval()
    with torch.no_grad():  # an adapter that was not trained yet changes nothing
        found = adapted(**batch)[0]
        with adapted.disable_adapter():
            torch.testing.assert_close(found, adapted(**batch)[0], atol=1e-6, rtol=0)


def test_a_choice_that_is_there_already_is_kept():
    targets = {ELMO: ["projection"], "bert": ["query"]}
    _register_lora_targets(SimpleNamespace(TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING=targets))
    assert targets[ELMO] == ["projection"]
    assert targets["bert"] == ["query"]
    assert targets.keys() == {*FAMILIES, "bert"}


def test_importing_the_package_imports_no_neighbour():
    code = "import sys, hf_lineage; print(*(name for name in sys.argv[1:] if name in sys.modules))"
    neighbours = ["peft", "onnx", "onnxruntime", "onnxscript", "optuna", "sentence_transformers", "torch"]
    done = subprocess.run([sys.executable, "-c", code, *neighbours], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
