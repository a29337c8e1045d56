import json
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig

from hf_lineage import ElmoConfig, ElmoForPreTraining, ElmoModel


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def parameters_of(config):
    with torch.device("meta"):
        return ElmoModel(config)


def test_defaults_are_the_original_model():
    model = parameters_of(ElmoConfig())
    mix = count(model.scalar_mixes)
    assert mix == 3 + 1
    # the weights that were published with the paper, and the row of zeros for padding that they leave out
    assert count(model) - mix == 93_600_848 + 16
    characters = 262 * 16 + sum((width * 16 + 1) * number for width, number in ElmoConfig().char_cnn_filters)
    highways, projection = 2 * 2 * (2048 * 2048 + 2048), 2048 * 512 + 512
    assert count(model.character_encoder) == characters + highways + projection
    assert count(model.encoder) == 2 * 2 * (1024 * 16384 + 16384 + 4096 * 512)
    assert model.config.projection_size == 512
    assert model.config.num_char_filters == 2048


@pytest.mark.parametrize(
    ("fields", "millions"),
    [
        ({"hidden_size": 256, "lstm_hidden_size": 1024, "num_highway_layers": 1}, 13.6),
        ({"hidden_size": 512, "lstm_hidden_size": 2048, "num_highway_layers": 1}, 28.0),
    ],
    ids=["small", "medium"],
)
def test_other_published_sizes(fields, millions):
    filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
    model = parameters_of(ElmoConfig(char_cnn_filters=filters, **fields))
    assert round(count(model) / 1e6, 1) == millions


def test_the_softmax_is_one_for_both_directions():
    config = ElmoConfig(vocab_size=1000)
    with torch.device("meta"):
        model = ElmoForPreTraining(config)
    assert count(model.lm_head) == 1000 * 512 + 1000
    assert count(model) == 93_600_864 + count(model.lm_head)


valid_fields = st.fixed_dictionaries(
    {},
    optional={
        "char_cnn_filters": st.lists(
            st.tuples(st.integers(1, 7), st.integers(1, 9)).map(list), min_size=1, max_size=3
        ),
        "char_cnn_activation": st.sampled_from(["relu", "tanh"]),
        "max_characters_per_token": st.integers(7, 60),
        "num_highway_layers": st.integers(0, 3),
        "hidden_size": st.integers(1, 20).map(lambda half: 2 * half),
        "lstm_hidden_size": st.integers(1, 40),
        "cell_clip": st.one_of(st.none(), st.floats(0, 10), st.integers(0, 3)),
        "proj_clip": st.one_of(st.none(), st.floats(0, 10), st.integers(0, 3)),
        "pair_encoding": st.sampled_from(["joint", "separate"]),
        "scalar_mix_layer_norm": st.sampled_from([None, "allennlp", "bilm"]),
        "scalar_mix_parameters": st.one_of(st.none(), st.lists(st.floats(-9, 9), min_size=3, max_size=3)),
        "stateful": st.booleans(),
        "dropout": st.floats(0, 0.9),
        "vocab_size": st.one_of(st.none(), st.integers(3, 99)),
        "char_vocabulary": st.sampled_from(["bytes", "dictionary"]),
        "classifier_pooling": st.sampled_from(["max", "mean", "last"]),
        "num_labels": st.integers(1, 5),
    },
)


@given(valid_fields)
@settings(max_examples=60, deadline=None)
def test_json_round_trip(fields):
    config = ElmoConfig(**fields)
    again = ElmoConfig.from_dict(json.loads(config.to_json_string(use_diff=False)))
    assert again.to_dict() == config.to_dict()
    assert {name: getattr(again, name) for name in fields} == fields
    assert ElmoConfig.from_dict(json.loads(config.to_json_string())).to_dict() == config.to_dict()


def test_configurations_share_no_list():
    one, other = ElmoConfig(), ElmoConfig()
    one.char_cnn_filters[0][1] = 7
    assert other.char_cnn_filters[0] == [1, 32]
    given_filters = [[1, 4]]
    config = ElmoConfig(char_cnn_filters=given_filters)
    config.char_cnn_filters[0][1] = 7
    assert given_filters == [[1, 4]]


NAN = float("nan")

# field, value, what the message must say is allowed
BAD_FIELDS = [
    ("char_vocab_size", 261, "at least 262"),
    ("char_embedding_size", -1, "at least 0"),
    ("word_embedding_size", -1, "at least 0"),
    ("word_vocab_size", 2.5, "integer"),
    ("char_vocabulary", "code points", "'bytes', 'dictionary'"),
    ("max_characters_per_token", 2, "at least 3"),
    ("num_highway_layers", -1, "at least 0"),
    ("hidden_size", 0, "at least 2"),
    ("hidden_size", 15, "even"),
    ("hidden_size", 16.0, "integer"),
    ("hidden_size", "16", "integer"),
    ("lstm_hidden_size", True, "integer"),
    ("lstm_hidden_size", None, "integer"),
    ("num_hidden_layers", 0, "at least 1"),
    ("num_scalar_mixes", 0, "at least 1"),
    ("classifier_hidden_size", -1, "at least 0"),
    ("dropout", 1.0, r"\[0, 1\)"),
    ("dropout", NAN, r"\[0, 1\)"),
    ("lstm_dropout", -0.1, r"\[0, 1\)"),
    ("classifier_dropout", "0.1", r"\[0, 1\)"),
    ("cell_clip", -1.0, "at least 0"),
    ("cell_clip", NAN, "at least 0"),
    ("proj_clip", "3", "at least 0"),
    ("forget_bias", NAN, "number"),
    ("forget_bias", "1", "number"),
    ("vocab_size", 2, "at least 3"),
    ("vocab_size", "9", "at least 3"),
    ("char_cnn_activation", "gelu", "'relu', 'tanh'"),
    ("pair_encoding", "both", "'joint', 'separate'"),
    ("scalar_mix_layer_norm", True, "None, 'allennlp', 'bilm'"),
    ("classifier_pooling", "first", "'max', 'mean', 'last'"),
    ("tie_word_embeddings", True, "reads words and no characters"),
    ("char_cnn_filters", [], r"\[width, number of filters\]"),
    ("char_cnn_filters", [[1, 0]], r"\[width, number of filters\]"),
    ("char_cnn_filters", [[1, 2, 3]], r"\[width, number of filters\]"),
    ("char_cnn_filters", [[1, "4"]], r"\[width, number of filters\]"),
    ("char_cnn_filters", [[True, 4]], r"\[width, number of filters\]"),
    ("char_cnn_filters", "[[1, 2]]", r"\[width, number of filters\]"),
    ("scalar_mix_parameters", [0.0, 1.0], r"num_hidden_layers \+ 1 = 3"),
    ("scalar_mix_parameters", ["a", 1.0, 2.0], "number"),
    ("scalar_mix_parameters", [0.0, NAN, 0.0], "number"),
    ("use_skip_connections", "false", "True"),
    ("add_sentence_boundaries", "no", "True"),
    ("keep_sentence_boundaries", 2, "True"),
    ("stateful", None, "True"),
]


@pytest.mark.parametrize(("field", "value", "allowed"), BAD_FIELDS, ids=lambda part: str(part)[:30])
def test_errors_name_field_value_and_what_is_allowed(field, value, allowed):
    with pytest.raises(ValueError, match=f"{field}.*{allowed}.*{re.escape(str(value))}"):
        ElmoConfig(**{field: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_characters_per_token": 6}, "char_cnn_filters.* 7.*max_characters_per_token=6"),
        ({"num_hidden_layers": 3, "scalar_mix_parameters": [0.0] * 3}, r"scalar_mix_parameters.*= 4.*got \["),
        (
            {"keep_sentence_boundaries": True, "add_sentence_boundaries": False},
            "keep_sentence_boundaries=True.*add_sentence_boundaries=True",
        ),
        ({"char_embedding_size": 0}, "char_embedding_size and word_embedding_size are both 0"),
        ({"word_embedding_size": 5, "word_vocab_size": 261}, "word_vocab_size .*at least 262.*got 261"),
        ({"word_vocab_size": 300}, "word_vocab_size must be 0 without word vectors.*got 300"),
        ({"unk_token_id": 9}, r"unk_token_id must be one of 2, got 9"),
        ({"bos_token_id": None}, r"bos_token_id must be one of 0, got None"),
        ({"eos_token_id": -1}, r"eos_token_id must be one of 1, got -1"),
    ],
)
def test_contradictions_are_named(fields, message):
    with pytest.raises(ValueError, match=message):
        ElmoConfig(**fields)


@pytest.mark.parametrize(("field", "value", "allowed"), BAD_FIELDS[::3], ids=lambda part: str(part)[:30])
def test_a_bad_config_file_is_refused_alike(field, value, allowed, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "elmo", field: value}))
    for load in (AutoConfig.from_pretrained, ElmoConfig.from_pretrained, ElmoModel.from_pretrained):
        with pytest.raises(ValueError, match=f"{field}.*{allowed}"):
            load(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("dropout", 3, r"dropout must be a number in \[0, 1\), got 3"),
        ("pair_encoding", "seperate", "pair_encoding must be one of 'joint', 'separate', got 'seperate'"),
        ("hidden_size", 15, "hidden_size must be even"),
    ],
)
def test_a_bad_override_is_refused(field, value, message, tmp_path):
    ElmoConfig().save_pretrained(tmp_path)
    assert AutoConfig.from_pretrained(tmp_path, dropout=0.1).dropout == 0.1
    with pytest.raises(ValueError, match=message):
        AutoConfig.from_pretrained(tmp_path, **{field: value})
