import pytest
import torch
import transformers

import hf_lineage
from hf_lineage.xlnet.configuration_xlnet import LineageXLNetConfig

SIZES = {"vocab_size": 60, "d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 48, "dropout": 0.0}
SIZES |= {"summary_last_dropout": 0.0, "use_mems_eval": False}


def randomize(model, std=0.3, talkative=False):
    """Draws every weight anew, biases and LayerNorms too, so that each has an effect that can be seen.

    A talkative model keeps its LayerNorms and has no bias for single words, so that what it generates varies.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not talkative or not ("layer_norm" in name or name == "lm_loss.bias"):
                parameter.normal_(std=std)
    return model.eval()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def build():
    """Builds a model of ours with random weights."""

    def model(name="Model", std=0.3, talkative=False, **fields):
        config = LineageXLNetConfig(**{**SIZES, **fields})
        return randomize(getattr(hf_lineage, f"LineageXLNet{name}")(config), std, talkative)

    return model


@pytest.fixture
def twins(tmp_path):
    """Builds a model of transformers with random weights, and ours from its folder."""

    def pair(name="Model", std=0.3, talkative=False, **fields):
        peer = getattr(transformers, f"XLNet{name}")(transformers.XLNetConfig(**{**SIZES, **fields}))
        randomize(peer, std, talkative)
        peer.save_pretrained(tmp_path / "peer")
        return peer, getattr(hf_lineage, f"LineageXLNet{name}").from_pretrained(tmp_path / "peer")

    return pair
