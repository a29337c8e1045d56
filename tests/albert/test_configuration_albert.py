import json
from fractions import Fraction

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig

from hf_lineage import LineageAlbertConfig, LineageAlbertModel

COUNTS = [
    "vocab_size",
    "embedding_size",
    "hidden_size",
    "num_hidden_layers",
    "num_hidden_groups",
    "inner_group_num",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
]
INVALID = [
    *[({name: value}, f"{name} must be an integer of at least 1") for name in COUNTS for value in (0, -1, True)],
    *[
        ({name: value}, rf"{name} must be a number in \[0, 1\), got")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob")
        for value in (-0.1, 1, 1.5, float("nan"), True)
    ],
    *[
        ({name: value}, f"{name} must be a number above 0, got")
        for name in ("initializer_range", "layer_norm_eps")
        for value in (0, -1e-3, float("inf"), float("nan"))
    ],
    ({"share_parameters": "everything"}, "share_parameters must be one of 'all', 'attention', 'ffn', 'none'"),
    ({"layer_norm_position": "middle"}, "layer_norm_position must be one of 'post', 'pre', got 'middle'"),
    ({"sentence_objective": "order"}, "sentence_objective must be one of 'sop', 'nsp', 'none', got 'order'"),
    ({"hidden_size": 770}, "hidden_size=770 must be a multiple of num_attention_heads=12"),
    ({"project_embeddings": False}, "project_embeddings=False needs embedding_size=128 and hidden_size=768"),
    ({"num_hidden_groups": 13}, "num_hidden_groups=13 is more than num_hidden_layers=12"),
    ({"share_parameters": "none", "num_hidden_groups": 3}, "num_hidden_groups=3 has no meaning"),
    ({"pad_token_id": 30000}, "pad_token_id"),
    *[
        ({name: blocks, "num_hidden_layers": 4}, message)
        for name in ("attention_layer_blocks", "ffn_layer_blocks")
        for blocks, message in [
            ([0, 0, 1], rf"{name} must name a block for each of .* 4 layers, got 3"),
            ([0] * 5, rf"{name} must name a block for each of .* 4 layers, got 5"),
            ([], rf"{name} must name a block for each of .* 4 layers, got 0"),
            ([0, 0, 2, 3], rf"{name} must use every block from 0 to 3, but not \[1\]"),
            ([1, 1, 1, 1], rf"{name} must use every block from 0 to 1, but not \[0\]"),
            ([0, -1, 0, 0], f"{name} must be None or a list of integers of at least 0"),
            ([0, True, 0, 0], f"{name} must be None or a list of integers of at least 0"),
        ]
    ],
    ({"inner_group_num": 2, "num_hidden_layers": 2, "ffn_layer_blocks": [0, 1]}, "inner_group_num = 4 layers, got 2"),
]
WRONG_TYPES = {
    "vocab_size": "60",
    "hidden_size": 768.0,
    "share_parameters": None,
    "layer_norm_eps": "small",
    "hidden_dropout_prob": None,
    "sparse_prediction": 1,
    "padding_free": "no",
    "project_embeddings": 1,
    "attention_layer_blocks": "0011",
    "ffn_layer_blocks": 3,
}


def test_defaults_are_albert_base():
    config = LineageAlbertConfig()
    # transformers' own defaults are the widths of xxlarge
    peer = transformers.AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)
    for name, value in peer.to_dict().items():
        if name in LineageAlbertConfig.__annotations__:
            assert getattr(config, name) == value, name
    assert config.layer_blocks == ((0, 0),) * 12
    assert (config.depth, config.num_attention_blocks, config.num_ffn_blocks) == (12, 1, 1)


@pytest.mark.parametrize(("fields", "message"), INVALID)
def test_invalid_fields_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        LineageAlbertConfig(**fields)


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_fields_of_the_wrong_type_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        LineageAlbertConfig(**{name: WRONG_TYPES[name]})


@pytest.mark.parametrize("hidden_act", ["gelo", None])
def test_an_unknown_activation_is_refused_when_the_model_is_built(hidden_act, tiny):
    with pytest.raises(ValueError, match=rf"hidden_act must be one of .*gelu_new.*, got {hidden_act!r}"):
        LineageAlbertModel(tiny(hidden_act=hidden_act))


@pytest.mark.parametrize(
    ("fields", "attention", "ffn"),
    [
        ({}, [0, 0, 0, 0], [0, 0, 0, 0]),
        ({"share_parameters": "attention"}, [0, 0, 0, 0], [0, 1, 2, 3]),
        ({"share_parameters": "ffn"}, [0, 1, 2, 3], [0, 0, 0, 0]),
        ({"share_parameters": "none"}, [0, 1, 2, 3], [0, 1, 2, 3]),
        ({"share_parameters": "none", "num_hidden_groups": 4}, [0, 1, 2, 3], [0, 1, 2, 3]),
        ({"num_hidden_groups": 2}, [0, 0, 1, 1], [0, 0, 1, 1]),
        ({"num_hidden_groups": 3}, [0, 0, 1, 2], [0, 0, 1, 2]),
        ({"num_hidden_groups": 2, "share_parameters": "ffn"}, [0, 1, 2, 3], [0, 0, 1, 1]),
        ({"num_hidden_layers": 2, "inner_group_num": 2}, [0, 1, 0, 1], [0, 1, 0, 1]),
        ({"num_hidden_layers": 2, "inner_group_num": 2, "num_hidden_groups": 2}, [0, 1, 2, 3], [0, 1, 2, 3]),
        ({"num_hidden_layers": 2, "inner_group_num": 2, "share_parameters": "attention"}, [0, 1, 0, 1], [0, 1, 2, 3]),
        ({"attention_layer_blocks": [1, 0, 1, 0]}, [1, 0, 1, 0], [0, 0, 0, 0]),
        ({"share_parameters": "none", "ffn_layer_blocks": (0, 0, 0, 1)}, [0, 1, 2, 3], [0, 0, 0, 1]),
    ],
)
def test_layer_map(fields, attention, ffn):
    config = LineageAlbertConfig(**{"num_hidden_layers": 4, **fields})
    assert config.layer_blocks == tuple(zip(attention, ffn, strict=True))
    assert config.depth == 4
    assert config.num_attention_blocks == len(set(attention))
    assert config.num_ffn_blocks == len(set(ffn))


@given(
    layers=st.integers(1, 48),
    inner=st.integers(1, 3),
    shared=st.sampled_from(["all", "attention", "ffn", "none"]),
    data=st.data(),
)
def test_every_block_is_used_and_groups_are_those_of_the_original(layers, inner, shared, data):
    groups = data.draw(st.integers(1, layers)) if shared != "none" else 1
    config = LineageAlbertConfig(
        num_hidden_layers=layers, num_hidden_groups=groups, inner_group_num=inner, share_parameters=shared
    )
    for kind, blocks in zip(("attention", "ffn"), zip(*config.layer_blocks, strict=True), strict=True):
        assert len(blocks) == config.depth == layers * inner
        if shared not in ("all", kind):
            assert blocks == tuple(range(config.depth))
            continue
        assert set(blocks) == set(range(groups * inner))
        for place, block in enumerate(blocks):
            layer, part = divmod(place, inner)
            # the original's formula, without its rounding errors
            assert block == int(Fraction(layer, layers) * groups) * inner + part


@pytest.mark.parametrize(("layers", "groups"), [(18, 14), (36, 14), (42, 18), (22, 22), (23, 23)])
def test_groups_where_rounding_errors_would_show(layers, groups):
    """Where int(i / (L / g)) divides the layers otherwise, or int(i / L * g) leaves a group unused."""
    expected = [int(Fraction(layer, layers) * groups) for layer in range(layers)]
    rounded = (
        [int(layer / (layers / groups)) for layer in range(layers)],
        [int(layer / layers * groups) for layer in range(layers)],
    )
    assert rounded != (expected, expected)
    config = LineageAlbertConfig(num_hidden_layers=layers, num_hidden_groups=groups)
    assert [attention for attention, _ in config.layer_blocks] == expected
    assert set(expected) == set(range(groups))


@pytest.mark.parametrize(
    ("embedding_size", "project_embeddings", "expected"),
    [(128, None, True), (768, None, False), (128, True, True), (768, True, True), (768, False, False)],
)
def test_projection(embedding_size, project_embeddings, expected):
    config = LineageAlbertConfig(embedding_size=embedding_size, project_embeddings=project_embeddings)
    assert config.has_projection is expected


CHANGED = {
    "vocab_size": 50,
    "embedding_size": 8,
    "hidden_size": 24,
    "num_hidden_layers": 4,
    "num_hidden_groups": 2,
    "inner_group_num": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "hidden_act": "relu",
    "hidden_dropout_prob": 0.25,
    "attention_probs_dropout_prob": 0.5,
    "classifier_dropout_prob": None,
    "max_position_embeddings": 33,
    "type_vocab_size": 3,
    "initializer_range": 0.1,
    "layer_norm_eps": 1e-5,
    "share_parameters": "ffn",
    "attention_layer_blocks": [0, 1, 0, 1, 2, 2, 2, 2],
    "ffn_layer_blocks": [0, 0, 0, 0, 1, 1, 1, 1],
    "project_embeddings": True,
    "layer_norm_position": "pre",
    "sentence_objective": "nsp",
    "sparse_prediction": False,
    "padding_free": True,
    "pad_token_id": 7,
    "bos_token_id": 8,
    "eos_token_id": 9,
    "tie_word_embeddings": False,
}


def test_a_saved_configuration_comes_back(tmp_path):
    assert set(CHANGED) == set(LineageAlbertConfig.__annotations__) - {"keys_to_ignore_at_inference"}
    assert not any(getattr(LineageAlbertConfig(), name) == value for name, value in CHANGED.items())
    config = LineageAlbertConfig(**CHANGED, num_labels=5)
    assert {name: config.to_dict()[name] for name in CHANGED} == CHANGED
    assert LineageAlbertConfig.from_dict(config.to_dict()).to_dict() == config.to_dict()
    assert LineageAlbertConfig(**json.loads(config.to_json_string(use_diff=False))).layer_blocks == config.layer_blocks
    config.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert type(loaded) is LineageAlbertConfig
    assert {name: getattr(loaded, name) for name in CHANGED} == CHANGED
    assert loaded.num_labels == 5
    assert loaded.layer_blocks == config.layer_blocks


def test_fields_given_when_loading_replace_those_of_the_file(tmp_path):
    LineageAlbertConfig(num_hidden_layers=4).save_pretrained(tmp_path)
    config = AutoConfig.from_pretrained(
        tmp_path, share_parameters="ffn", attention_layer_blocks=[0, 0, 1, 1], num_labels=3
    )
    assert config.layer_blocks == ((0, 0), (0, 0), (1, 0), (1, 0))
    assert config.num_labels == 3
    # valid together, though either alone contradicts the file
    config = LineageAlbertConfig.from_pretrained(tmp_path, hidden_size=60, num_attention_heads=5)
    assert (config.hidden_size, config.num_attention_heads) == (60, 5)
    with pytest.raises(ValueError, match="num_hidden_groups=5 is more than num_hidden_layers=4"):
        LineageAlbertConfig.from_pretrained(tmp_path, num_hidden_groups=5)


def test_unused_arguments_of_from_dict():
    fields = LineageAlbertConfig(num_hidden_layers=4).to_dict()
    config, unused = LineageAlbertConfig.from_dict(fields, hidden_size=24, unheard_of=1, return_unused_kwargs=True)
    assert config.hidden_size == 24
    assert unused == {"unheard_of": 1}
    assert fields["hidden_size"] == 768
