"""int8 weights within torch; those of onnxruntime are in test_onnx.py."""

import copy
import io
import warnings

import pytest
import torch
from tiny_families import ALBERT, ELMO, FAMILIES, XLNET, config_of, model_class, tokenizer_of
from torch import nn

WIDE = {
    ELMO: {"hidden_size": 64, "lstm_hidden_size": 96},
    ALBERT: {"embedding_size": 16, "hidden_size": 64, "intermediate_size": 96},
    XLNET: {"d_model": 64, "d_inner": 96},
}


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
    torch.manual_seed(0)
    model = model_class(family)(config_of(family, **WIDE[family])).eval()
    small = quantized(copy.deepcopy(model))
    assert size_of(small) < 0.6 * size_of(model)
    with torch.no_grad():
        for texts in (["a"], ["the cat sat on it", "x", ""]):
            batch = tokenizer_of(family)(texts, padding=True, return_tensors="pt")
            expected, found = model(**batch).last_hidden_state, small(**batch).last_hidden_state
            error = ((found - expected).norm() / expected.norm()).item()
            assert 0 < error < 0.02
