"""Packed weights give what the layer gives, and are packed anew when they change."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hf_lineage import ElmoModel
from hf_lineage.elmo import packed_linear_elmo
from hf_lineage.elmo.packed_linear_elmo import WORTHWHILE, packed

pytestmark = pytest.mark.skipif(not packed_linear_elmo._has_onednn(), reason="torch was built without oneDNN")


@pytest.fixture
def linear():
    torch.manual_seed(0)
    return nn.Linear(24, 40)


def apply(linear, values):
    with torch.no_grad():
        function = packed(linear, len(values), WORTHWHILE)
        assert function is not linear
        return function(values)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 32])
def test_same_products(rows, bias):
    torch.manual_seed(0)
    linear, values = nn.Linear(24, 40, bias=bias), torch.randn(24, rows).t()  # not contiguous
    torch.testing.assert_close(apply(linear, values), linear(values))
    torch.testing.assert_close(apply(linear, values[:1]), linear(values[:1]))


@pytest.mark.skipif(not packed_linear_elmo._has_bfloat16(), reason="this CPU does not multiply bfloat16")
def test_same_products_in_half_precision(linear):
    linear.to(torch.bfloat16)
    values = torch.randn(3, 24, dtype=torch.bfloat16)
    found = apply(linear, values)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, linear(values))


def test_half_precision_without_its_instructions_is_the_layer_s(linear, monkeypatch):
    monkeypatch.setattr(packed_linear_elmo, "_has_bfloat16", lambda: False)
    with torch.no_grad():
        assert packed(linear, 3, WORTHWHILE) is not linear
        linear.to(torch.bfloat16)
        assert packed(linear, 3, WORTHWHILE) is linear


@pytest.mark.parametrize(
    "change",
    [
        lambda linear: nn.init.ones_(linear.weight),
        lambda linear: linear.weight.data.mul_(2),
        lambda linear: setattr(linear, "weight", nn.Parameter(torch.ones(40, 24))),
        lambda linear: linear.load_state_dict({name: value + 1 for name, value in linear.state_dict().items()}),
        lambda linear: linear.bias.data.add_(1),
    ],
    ids=["in place", "by way of data", "replaced", "loaded", "bias"],
)
def test_changes_are_seen(linear, change):
    values = torch.randn(3, 24)
    before = apply(linear, values)
    change(linear)
    after = apply(linear, values)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, linear(values))


def test_weights_are_packed_once(linear, monkeypatch):
    values = torch.randn(3, 24)
    first = apply(linear, values)
    monkeypatch.setattr(packed_linear_elmo.torch.ops.mkldnn, "_reorder_linear_weight", None)
    assert torch.equal(apply(linear, values), first)


def test_weights_of_inference_mode(linear):
    values = torch.randn(3, 24)
    with torch.inference_mode():
        copied = copy.deepcopy(linear)
        assert copied.weight.is_inference()
        torch.testing.assert_close(apply(copied, values), linear(values))


def test_operations_are_counted_as_those_of_the_layer(linear):
    counts = []
    for function in (linear, lambda values: apply(linear, values)):
        with FlopCounterMode(display=False) as counter:
            function(torch.randn(3, 24))
        counts.append(counter.get_total_flops())
    assert counts == [2 * 3 * 24 * 40] * 2


def test_the_layer_itself_where_packing_does_not_help_or_hold(linear):
    assert packed(linear, 3, 10) is linear  # gradients
    with torch.no_grad():
        assert packed(linear, 3, WORTHWHILE - 1) is linear
        assert packed(nn.Identity(), 3, 10) is not linear
        for other in (nn.Identity(), copy.deepcopy(linear).double(), copy.deepcopy(linear).to("meta")):
            assert packed(other, 3, 10) is other
        with torch.autocast("cpu", torch.bfloat16):
            assert packed(linear, 3, 10) is linear
        handle = linear.register_forward_hook(lambda *_: None)
        assert packed(linear, 3, 10) is linear
        handle.remove()
        assert packed(linear, 3, 10) is not linear


def test_a_model_without_gradients_equals_one_with_them_and_can_be_saved(tiny):
    torch.manual_seed(0)
    model = ElmoModel(tiny(cell_clip=0.4, proj_clip=0.3)).eval()
    ids = torch.randint(1, 262, (3, 21, 50))
    with_gradients = model(ids).last_hidden_state
    with torch.no_grad():
        without = model(ids).last_hidden_state
    torch.testing.assert_close(without, with_gradients)
    restored = pickle.loads(pickle.dumps(model))
    with torch.no_grad():
        torch.testing.assert_close(restored(ids).last_hidden_state, without)
