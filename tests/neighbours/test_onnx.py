"""torch.export, ONNX, onnxruntime and its int8 quantization: the encoders, in batches of any size and length."""

from pathlib import Path

import numpy as np
import pytest
import torch
from neighbour_inputs import IS_RECENT_TORCH, batches_of, example_of, relative_error, wide_model
from tiny_families import ALBERT, FAMILIES

pytest.importorskip("onnxscript", reason="needs the extra neighbours")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra neighbours")

pytestmark = pytest.mark.skipif(not IS_RECENT_TORCH, reason="needs torch 2.9 or later")

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


@pytest.fixture(scope="module", params=FAMILIES)
def recorded(request, tmp_path_factory):
    """A family, a model, its exported program and an ONNX file of that."""
    family = request.param
    model = wide_model(family)
    inputs = {name: example_of(family)[name] for name in NAMES}
    batch = torch.export.Dim("batch")
    tokens = torch.export.Dim("tokens", max=model.config.max_position_embeddings if family == ALBERT else None)
    shapes = {name: {0: batch, 1: tokens} for name in NAMES}
    program = torch.export.export(model, (), inputs, dynamic_shapes=shapes)
    file = tmp_path_factory.mktemp(family) / "model.onnx"
    torch.onnx.export(
        program, f=file, input_names=NAMES, output_names=["last_hidden_state"], external_data=False, verbose=False
    )
    return family, model, program, file


def outputs_of(file: Path, family: str) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return [
        session.run(["last_hidden_state"], {name: batch[name].numpy() for name in NAMES})[0]
        for batch in batches_of(family)
    ]


def test_an_exported_program_equals_the_model(recorded):
    family, model, program, _ = recorded
    exported = program.module()
    with torch.no_grad():
        for batch in batches_of(family):
            found = exported(**batch).last_hidden_state
            torch.testing.assert_close(found, model(**batch).last_hidden_state, atol=1e-5, rtol=0)


def test_onnxruntime_equals_the_model(recorded):
    family, model, _, file = recorded
    with torch.no_grad():
        for batch, found in zip(batches_of(family), outputs_of(file, family), strict=True):
            expected = model(**batch).last_hidden_state.numpy()
            assert np.abs(expected).max() > 0.05
            assert np.abs(found - expected).max() < 1e-4


def test_int8_is_close_and_smaller(recorded, tmp_path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    family, model, _, file = recorded
    small = tmp_path / "model.int8.onnx"
    quantize_dynamic(file, small, weight_type=QuantType.QInt8, extra_options={"EnableSubgraph": True})
    assert small.stat().st_size < 0.6 * file.stat().st_size
    with torch.no_grad():
        for batch, found in zip(batches_of(family), outputs_of(small, family), strict=True):
            error = relative_error(torch.from_numpy(found), model(**batch).last_hidden_state)
            assert 0 < error < 0.05
