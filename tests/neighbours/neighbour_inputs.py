"""Models and batches that the neighbours are tried on."""

import re

import torch
from tiny_families import ALBERT, ELMO, XLNET, config_of, model_class, tokenizer_of
from transformers import BatchEncoding, PreTrainedModel

# Earlier releases cannot write the loop over an LSTM's steps to ONNX
IS_RECENT_TORCH = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) >= (2, 9)

# Padded on the right, alone, in pairs, and longer than what the graphs are recorded from
BATCHES = [
    (["the cat sat", "a film", ""], None),
    (["x"], None),
    (["the cat", "not bad"], ["was good", "a mat in the film"]),
    (["the cat sat on the mat in a film", "a", "good , bad , not good", "the", "in"], None),
]

WIDE = {
    ELMO: {"hidden_size": 128, "lstm_hidden_size": 128, "num_hidden_layers": 1},
    ALBERT: {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1, "initializer_range": 0.1},
    XLNET: {"d_model": 128, "d_inner": 256, "n_layer": 1, "initializer_range": 0.1},
}


def build_model(family: str, head: str = "Model", **fields) -> PreTrainedModel:
    """A tiny model in evaluation mode whose matrices are large enough to have an effect that can be seen."""
    torch.manual_seed(0)
    model = model_class(family, head)(config_of(family, **fields)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.5)
    return model


def wide_model(family: str) -> PreTrainedModel:
    """A model of one layer with new weights, most of which are in linear layers."""
    torch.manual_seed(0)
    return model_class(family)(config_of(family, **WIDE[family])).eval()


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Norm of the difference over that of what is expected."""
    return float((found - expected).norm() / expected.norm())


def batches_of(family: str) -> list[BatchEncoding]:
    """Batches of several shapes, padded on either side, and in ELMo with a row of nothing but padding."""
    return [
        tokenizer_of(family, side)(texts, pairs, padding=True, return_tensors="pt")
        for texts, pairs in BATCHES
        for side in (("right", "left") if len(texts) > 1 else ("right",))
    ]


def example_of(family: str) -> BatchEncoding:
    """What graphs are recorded from."""
    texts = ["the cat sat", "a"] if family == ELMO else ["a good film", "a mat"]
    return tokenizer_of(family)(texts, ["was bad", "in"], padding=True, return_tensors="pt")
