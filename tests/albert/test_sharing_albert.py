"""Sharing changes where weights are stored, not what is computed."""

import pytest
import torch
from safetensors import safe_open

from hf_lineage import (
    LineageAlbertConfig,
    LineageAlbertForMaskedLM,
    LineageAlbertForPreTraining,
    LineageAlbertModel,
    LineageAlbertPreTrainedModel,
)

MODES = {
    "all": {},
    "attention": {"share_parameters": "attention"},
    "ffn": {"share_parameters": "ffn"},
    "none": {"share_parameters": "none"},
    "groups": {"num_hidden_groups": 2},
    "groups of attention": {"num_hidden_groups": 2, "share_parameters": "attention"},
    "groups of ffn": {"num_hidden_groups": 3, "share_parameters": "ffn"},
    "inner groups": {"num_hidden_layers": 2, "inner_group_num": 2},
    "inner groups of attention": {
        "num_hidden_layers": 2,
        "inner_group_num": 2,
        "share_parameters": "attention",
    },
    "blocks in turn": {"attention_layer_blocks": [0, 1, 0, 1], "ffn_layer_blocks": [1, 1, 0, 2]},
    "blocks back and forth": {"attention_layer_blocks": [2, 1, 0, 0], "share_parameters": "none"},
    "pre-LN": {"layer_norm_position": "pre", "num_hidden_groups": 2},
    "with a projection": {"embedding_size": 8},
}
ALL_MODES = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def model_of(tiny, randomize):
    def make(mode, model_class=LineageAlbertModel, **fields):
        defaults = {"num_hidden_layers": 4, "embedding_size": 16}
        return randomize(model_class(tiny(**{**defaults, **MODES[mode], **fields})))

    return make


def sources(config: LineageAlbertConfig, names: list[str]) -> dict[str, str]:
    """The parameter of the shared model that each parameter of the unrolled one copies."""
    found = {}
    for name in names:
        parts = name.split(".")
        for kind, place in (("attention_blocks", 0), ("ffn_blocks", 1)):
            if kind in parts:
                number = parts.index(kind) + 1
                parts[number] = str(config.layer_blocks[int(parts[number])][place])
        found[name] = ".".join(parts)
    return found


def unrolled(model: LineageAlbertPreTrainedModel) -> tuple[LineageAlbertPreTrainedModel, dict[str, str]]:
    """The same model with blocks of its own for every layer, and what each of its parameters copies."""
    fields = model.config.to_dict()
    fields.update(
        share_parameters="none",
        num_hidden_layers=model.config.depth,
        num_hidden_groups=1,
        inner_group_num=1,
        attention_layer_blocks=None,
        ffn_layer_blocks=None,
    )
    copy = type(model)(LineageAlbertConfig(**fields))
    copied = sources(model.config, [name for name, _ in copy.named_parameters()])
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in copy.named_parameters():
            parameter.copy_(weights[copied[name]])
    return copy.train(model.training), copied


@ALL_MODES
def test_an_unrolled_copy_computes_the_same(mode, model_of, batch):
    model = model_of(mode)
    copy, copied = unrolled(model)
    assert len(copy.attention_blocks) == len(copy.ffn_blocks) == model.config.depth == 4
    assert set(copied.values()) == {name for name, _ in model.named_parameters()}
    with torch.no_grad():
        found, expected = (each(**batch, output_hidden_states=True) for each in (model, copy))
    assert torch.equal(found.last_hidden_state, expected.last_hidden_state)
    assert torch.equal(found.pooler_output, expected.pooler_output)
    assert all(map(torch.equal, found.hidden_states, expected.hidden_states))


@ALL_MODES
def test_gradients_of_the_copies_add_up(mode, model_of, batch, labels_of):
    model = model_of(mode, LineageAlbertForPreTraining).train()
    copy, copied = unrolled(model)
    for each in (model, copy):
        each(**batch, **labels_of("ForPreTraining")).loss.backward()
    summed = {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}
    for name, parameter in copy.named_parameters():
        summed[copied[name]] += parameter.grad
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, summed[name], atol=1e-6, rtol=1e-4)
        # a bias added to all keys changes no softmax
        assert parameter.grad.any() or name.endswith("key.bias"), name


@ALL_MODES
def test_a_step_moves_a_shared_block_in_all_of_its_layers(mode, model_of, batch):
    model = model_of(mode)
    copy, _ = unrolled(model)
    for each in (model, copy):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        each(**batch).last_hidden_state.square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        difference = (model(**batch)[0] - copy(**batch)[0]).abs().max()
    assert (difference < 1e-5) == (mode == "none")


@ALL_MODES
def test_shared_weights_are_stored_once(mode, model_of, batch, tmp_path):
    model = model_of(mode, LineageAlbertForMaskedLM)
    model.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        stored = sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118
    assert stored == sum(parameter.numel() for parameter in model.parameters()) == model.num_parameters()
    loaded = LineageAlbertForMaskedLM.from_pretrained(tmp_path).eval()
    assert len(loaded.albert.attention_blocks) == model.config.num_attention_blocks
    assert len(loaded.albert.ffn_blocks) == model.config.num_ffn_blocks
    with torch.no_grad():
        assert torch.equal(loaded(**batch).logits, model(**batch).logits)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "pre-LN"])
def test_transformers_computes_the_same_with_every_mode(mode, model_of, batch):
    model = model_of(mode, hidden_act="gelu_pytorch_tanh", project_embeddings=None)
    peer = model.to_transformers("albert").eval()
    with torch.no_grad():
        torch.testing.assert_close(peer(**batch)[0], model(**batch)[0], atol=1e-5, rtol=0)
    if not model.config.has_projection:
        peer = model.to_transformers("bert").eval()
        with torch.no_grad():
            assert torch.equal(peer(**batch)[0], model(**batch)[0])
