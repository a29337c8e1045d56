"""Numbers of parameters, as exact integers, of the models in Lan et al. 2020, Tables 1 to 4, and of BERT's."""

import pytest
import torch

from hf_lineage import LineageAlbertConfig, LineageAlbertForMaskedLM, LineageAlbertForPreTraining, LineageAlbertModel

POOLER = 768 * 768 + 768
PROJECTION = 768 * 768 + 768
# Base width, with pooler: embedding size -> what is shared -> parameters
SHARING = {
    64: {"all": 9_681_408, "attention": 61_645_056, "ffn": 35_684_352, "none": 87_648_000},
    128: {"all": 11_683_584, "attention": 63_647_232, "ffn": 37_686_528, "none": 89_650_176},
    256: {"all": 15_687_936, "attention": 67_651_584, "ffn": 41_690_880, "none": 93_654_528},
    768: {"all": 31_114_752, "attention": 83_078_400, "ffn": 57_117_696, "none": 109_081_344},
}
CELLS = [(size, shared, number) for size, row in SHARING.items() for shared, number in row.items()]
# hidden size, layers, heads, intermediate size -> encoder with pooler, with both pretraining heads
SIZES = {
    "base": ((768, 12, 12, 3072), 11_683_584, 11_813_810),
    "large": ((1024, 24, 16, 4096), 17_683_968, 17_847_474),
    "xlarge": ((2048, 24, 32, 8192), 58_724_864, 59_021_490),
    "xxlarge": ((4096, 12, 64, 16384), 222_595_584, 223_158_450),
}
BERT = {
    ("base", 30522): 109_482_240,
    ("base", 30000): 109_081_344,
    ("large", 30522): 335_141_888,
    ("large", 30000): 334_607_360,
}


def count(model_class, config, **kwargs):
    with torch.device("meta"):
        model = model_class(config, **kwargs)
    assert all(parameter.is_meta for parameter in model.parameters())
    return sum(parameter.numel() for parameter in model.parameters())


def sized(size, **fields):
    hidden_size, num_hidden_layers, num_attention_heads, intermediate_size = SIZES[size][0]
    return LineageAlbertConfig(
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads,
        intermediate_size=intermediate_size,
        **fields,
    )


@pytest.mark.parametrize(("embedding_size", "share_parameters", "expected"), CELLS)
def test_sharing_and_embedding_size(embedding_size, share_parameters, expected):
    config = LineageAlbertConfig(embedding_size=embedding_size, share_parameters=share_parameters)
    assert count(LineageAlbertModel, config) == expected
    assert count(LineageAlbertModel, config, add_pooling_layer=False) == expected - POOLER


@pytest.mark.parametrize("share_parameters", SHARING[768])
def test_projection_between_equal_sizes(share_parameters):
    config = LineageAlbertConfig(embedding_size=768, share_parameters=share_parameters, project_embeddings=True)
    assert count(LineageAlbertModel, config) == SHARING[768][share_parameters] + PROJECTION


@pytest.mark.parametrize("size", SIZES)
def test_sizes_of_the_paper(size):
    _, encoder, pretraining = SIZES[size]
    assert count(LineageAlbertModel, sized(size)) == encoder
    assert count(LineageAlbertForPreTraining, sized(size)) == pretraining


@pytest.mark.parametrize(("size", "vocab_size"), BERT)
def test_bert(size, vocab_size):
    hidden_size = SIZES[size][0][0]
    config = sized(size, embedding_size=hidden_size, vocab_size=vocab_size, share_parameters="none")
    assert count(LineageAlbertModel, config) == BERT[size, vocab_size]


@pytest.mark.parametrize("num_hidden_layers", [1, 3, 6, 12, 24, 48])
def test_depth_costs_nothing_when_all_is_shared(num_hidden_layers):
    config = LineageAlbertConfig(num_hidden_layers=num_hidden_layers)
    assert count(LineageAlbertModel, config) == SHARING[128]["all"]


@pytest.mark.parametrize(
    ("fields", "attention_blocks", "ffn_blocks"),
    [
        ({"num_hidden_groups": 3}, 3, 3),
        ({"num_hidden_groups": 2, "inner_group_num": 2}, 4, 4),
        ({"num_hidden_groups": 2, "share_parameters": "attention"}, 2, 12),
        ({"inner_group_num": 3, "share_parameters": "ffn"}, 36, 3),
        ({"attention_layer_blocks": [0, 1] * 6}, 2, 1),
        ({"share_parameters": "none", "ffn_layer_blocks": [0] * 4 + [1] * 4 + [2] * 4}, 12, 3),
    ],
)
def test_groups_and_explicit_blocks(fields, attention_blocks, ffn_blocks):
    attention, ffn = 2_363_904, 4_723_968
    rest = SHARING[128]["all"] - attention - ffn
    config = LineageAlbertConfig(**fields)
    assert count(LineageAlbertModel, config) == rest + attention_blocks * attention + ffn_blocks * ffn


@pytest.mark.parametrize(("objective", "without"), [("sop", 0), ("nsp", 0), ("none", POOLER + 2 * 768 + 2)])
def test_sentence_objectives(objective, without):
    config = LineageAlbertConfig(sentence_objective=objective)
    assert count(LineageAlbertForPreTraining, config) == SIZES["base"][2] - without


def test_masked_language_model():
    config = LineageAlbertConfig()
    prediction_head = 768 * 128 + 128 + 2 * 128 + 30000
    assert count(LineageAlbertForMaskedLM, config) == SHARING[128]["all"] - POOLER + prediction_head


def test_pre_layer_norm_adds_one_at_the_end():
    assert count(LineageAlbertModel, LineageAlbertConfig(layer_norm_position="pre")) == SHARING[128]["all"] + 2 * 768
