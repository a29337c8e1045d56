import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.features.language_model import LayerCache, load_model
from hf_lineage import ElmoForPreTraining, ElmoForTokenClassification, ElmoModel

SENTENCES = [["the", "cat"], ["a"], ["the", "dog", "sat", "down"]]


def test_trained_weights_are_those_of_pretraining_and_frozen(model_folder):
    model, tokenizer = load_model(ElmoForTokenClassification, model_folder, random_weights=False, seed=1, num_labels=3)
    trained = ElmoForPreTraining.from_pretrained(model_folder).state_dict()
    weights = {name: weight for name, weight in model.named_parameters() if "encoder." in name}
    assert weights
    assert all(torch.equal(weight, trained[name]) for name, weight in weights.items())
    assert {name.split(".")[0] for name, weight in model.named_parameters() if weight.requires_grad} == {
        "elmo",  # the mix
        "classifier",
    }
    assert not any(weight.requires_grad for weight in weights.values())
    assert tokenizer.text_split == "whitespace"


def test_random_weights_are_the_seed_s(model_folder):
    first, again, other = (load_model(ElmoModel, model_folder, True, seed)[0].state_dict() for seed in (1, 1, 2))
    trained = load_model(ElmoModel, model_folder, False, 1)[0].state_dict()
    assert all(torch.equal(first[name], again[name]) for name in trained)
    name = "encoder.forward_layers.0.input_linear.weight"
    assert not torch.equal(first[name], other[name])
    assert not torch.equal(first[name], trained[name])
    assert {name: weight.shape for name, weight in first.items()} == {
        name: weight.shape for name, weight in trained.items()
    }


def test_other_models_are_refused(model_folder, tmp_path):
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text(Path(model_folder, name).read_text())
    config = json.loads((tmp_path / "config.json").read_text())
    weights = load_file(Path(model_folder, "model.safetensors"))
    del weights["elmo.encoder.backward_layers.1.input_linear.bias"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks weights of its language model: .*backward_layers\.1\.input_linear"):
        load_model(ElmoForTokenClassification, str(tmp_path), False, 1)
    for change, message in (
        ({"static_embedding_size": 4, "word_vocab_size": 300}, "has static word vectors"),
        ({"model_type": "bert"}, "must be an ELMo model, its model_type is 'bert'"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(ValueError, match=message):
            load_model(ElmoModel, str(tmp_path), False, 1)


def test_cache_holds_the_layers_of_each_sentence(model_folder):
    model, tokenizer = load_model(ElmoModel, model_folder, False, 1)
    cache = LayerCache.of(model, tokenizer, SENTENCES)
    assert len(cache) == 3
    vectors, mask = cache.batch([2, 0])
    assert mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    for row, number in enumerate((2, 0)):
        inputs = tokenizer([SENTENCES[number]], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            layers = torch.stack(model(**inputs, output_hidden_states=True).hidden_states, 2)[0]
        torch.testing.assert_close(vectors[row, : len(layers)], layers, atol=1e-6, rtol=1e-5)
    assert not vectors[1, 2:].any()


def test_layers_are_standardized(model_folder):
    model, tokenizer = load_model(ElmoModel, model_folder, False, 1)
    cache, same = (LayerCache.of(model, tokenizer, sentences) for sentences in (SENTENCES, [["the"]]))
    before = cache.vectors.double()
    cache.standardize(*cache.statistics())
    expected = (before - before.mean(0)) / before.std(0, correction=0)
    torch.testing.assert_close(cache.vectors, expected.float(), atol=1e-3, rtol=1e-3)
    same.standardize(*same.statistics())
    assert not same.vectors.any()
