"""Models and batches that the neighbours are tried on."""

import torch
from tiny_families import ELMO, config_of, model_class, tokenizer_of
from transformers import BatchEncoding, PreTrainedModel

# Padded on the right, alone, in pairs, and longer than what the graphs are recorded from
BATCHES = [
    (["the cat sat", "a film", ""], None),
    (["x"], None),
    (["the cat", "not bad"], ["was good", "a mat in the film"]),
    (["the cat sat on the mat in a film", "a", "good , bad , not good", "the", "in"], None),
]


def build_model(family: str, head: str = "Model", **fields) -> PreTrainedModel:
    """A tiny model in evaluation mode whose matrices are large enough to have an effect that can be seen."""
    torch.manual_seed(0)
    model = model_class(family, head)(config_of(family, **fields)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.5)
    return model


def batches_of(family: str) -> list[BatchEncoding]:
    """Batches of several shapes, padded on either side and with a row of nothing but padding where there can be one."""
    return [
        tokenizer_of(family, side)(texts, pairs, padding=True, return_tensors="pt")
        for texts, pairs in BATCHES
        for side in (("right", "left") if len(texts) > 1 else ("right",))
    ]


def example_of(family: str) -> BatchEncoding:
    """What graphs are recorded from."""
    texts = ["the cat sat", "a"] if family == ELMO else ["a good film", "a mat"]
    return tokenizer_of(family)(texts, ["was bad", "in"], padding=True, return_tensors="pt")
