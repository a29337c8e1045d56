import copy

import pytest
import torch

from hf_lineage.elmo.lstm_elmo import ElmoLstmEncoder, ElmoLstmLayer


def test_scanned_steps_equal_the_plain_ones(tiny):
    layer = ElmoLstmLayer(tiny(cell_clip=0.4, proj_clip=0.3)).double()
    inputs, hidden, cell = torch.randn(19, 3, 8).double(), torch.randn(3, 8).double(), torch.randn(3, 12).double()
    with torch.no_grad():
        torch.testing.assert_close(layer._scanned(inputs, hidden, cell), layer._unrolled(inputs, hidden, cell))


def test_autocast(tiny):
    layer = ElmoLstmLayer(tiny())
    arguments = torch.randn(2, 4, 8), torch.randn(2, 20), torch.tensor([4, 3])
    with torch.autocast("cpu", torch.bfloat16):
        outputs = layer(*arguments)[0]
    torch.testing.assert_close(outputs.float(), layer(*arguments)[0], atol=0.05, rtol=0.05)


@pytest.mark.parametrize("length", [4, 200])
def test_half_precision_keeps_the_cell_in_full(tiny, length):
    layer = ElmoLstmLayer(tiny(cell_clip=None, proj_clip=None))
    half = copy.deepcopy(layer).to(torch.bfloat16)
    inputs, state, lengths = torch.randn(8, length, 8), torch.randn(8, 20), torch.full((8,), length)
    cells = []
    half._step = lambda gates, cell, projection: (
        cells.append(cell) or ElmoLstmLayer._step(half, gates, cell, projection)
    )
    with torch.no_grad():
        expected, expected_state = layer(inputs, state, lengths)
        outputs, final_state = half(inputs.bfloat16(), state.bfloat16(), lengths)
    assert {cell.dtype for cell in cells} == {torch.float32}
    assert (outputs.dtype, final_state.dtype) == (torch.bfloat16, torch.bfloat16)
    error = (outputs.float() - expected).norm() / expected.norm()
    assert error < 0.01
    assert (final_state.float() - expected_state).norm() / expected_state.norm() < 0.01


def test_directions_share_nothing(tiny):
    encoder = ElmoLstmEncoder(tiny())
    vectors, lengths = torch.randn(2, 5, 8, requires_grad=True), torch.tensor([5, 3])
    layers, _ = encoder(vectors, lengths, torch.zeros(2, 2, 2, 20))
    for half, seen in (
        (slice(0, 8), [True, True, True, False, False]),
        (slice(8, 16), [False, False, True, True, True]),
    ):
        (gradient,) = torch.autograd.grad(layers[-1][0, 2, half].sum(), vectors, retain_graph=True)
        assert (gradient[0].abs().sum(-1) > 0).tolist() == seen
    parameters = list(encoder.parameters())
    assert len(parameters) == len({parameter.data_ptr() for parameter in parameters})
