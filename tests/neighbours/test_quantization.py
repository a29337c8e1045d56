"""int8 weights within torch; those of onnxruntime are in test_onnx.py."""

import copy
import io
import warnings

import pytest
import torch
from neighbour_inputs import relative_error, wide_model
from tiny_families import FAMILIES, tokenizer_of
from torch import nn


def torch_quantized(model: nn.Module) -> nn.Module:
    quantize = pytest.importorskip("torch.ao.quantization", reason="torch has no eager quantization any more")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated in favour of torchao
        return quantize.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)


def torchao_quantized(model: nn.Module) -> nn.Module:
    torchao = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    torchao.quantize_(model, torchao.Int8DynamicActivationInt8WeightConfig())
    return model


def size_of(model: nn.Module) -> int:
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return file.tell()


@pytest.mark.parametrize("quantized", [torch_quantized, torchao_quantized])
@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_close_and_the_model_smaller(family, quantized):
    model = wide_model(family)
    small = quantized(copy.deepcopy(model))
    assert size_of(small) < 0.6 * size_of(model)
    with torch.no_grad():
        for texts in (["a"], ["the cat sat on it", "x", ""]):
            batch = tokenizer_of(family)(texts, padding=True, return_tensors="pt")
            expected, found = model(**batch).last_hidden_state, small(**batch).last_hidden_state
            assert 0 < relative_error(found, expected) < 0.05
