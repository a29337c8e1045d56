"""Linear layers on few vectors give what `nn.Linear` gives."""

import pytest
import torch
from torch import nn

from hf_lineage.xlnet import projection_xlnet
from hf_lineage.xlnet.projection_xlnet import FEW, project


@pytest.fixture
def linear():
    torch.manual_seed(0)
    return nn.Linear(24, 40)


@pytest.fixture
def is_called(monkeypatch):
    calls = []
    forward = nn.Linear.forward
    monkeypatch.setattr(nn.Linear, "forward", lambda layer, values: calls.append(values) or forward(layer, values))
    return calls


@pytest.mark.parametrize(
    "shape", [(24,), (1, 24), (1, 1, 24), (2, 24), (1, 3, 24), (2, 2, 24), (FEW + 1, 24), (0, 24)]
)
@pytest.mark.parametrize("bias", [True, False])
def test_all_shapes(shape, bias):
    torch.manual_seed(0)
    linear, values = nn.Linear(24, 40, bias=bias), torch.randn(shape)
    with torch.no_grad():
        found = project(linear, values)
    torch.testing.assert_close(found, linear(values))


def test_few_vectors_are_the_right_factor(linear, is_called):
    with torch.no_grad():
        project(linear, torch.randn(1, FEW, 24))
        assert not is_called
        project(linear, torch.randn(1, FEW + 1, 24))
        assert is_called


def test_gradients_other_dtypes_and_compilation_are_left_to_the_layer(linear, is_called, monkeypatch):
    project(linear, torch.randn(2, 24)).sum().backward()
    assert linear.weight.grad is not None
    assert len(is_called) == 1
    with torch.no_grad():
        project(linear.double(), torch.randn(2, 24).double())
        assert len(is_called) == 2
        monkeypatch.setattr(projection_xlnet.torch.compiler, "is_compiling", lambda: True)
        project(linear.float(), torch.randn(2, 24))
    assert len(is_called) == 3


def test_hooks_and_what_replaces_a_layer_are_called(linear):
    seen = []
    handle = linear.register_forward_hook(lambda module, inputs, output: seen.append(output))
    values = torch.randn(2, 24)
    with torch.no_grad():
        assert project(linear, values) is seen[0]
        assert project(nn.Sequential(linear, nn.Flatten()), values).shape == (2, 40)
        assert len(seen) == 2
        handle.remove()
        linear.forward = lambda values: values
        assert project(linear, values) is values


def test_weights_of_other_classes_are_left_to_the_layer(linear, is_called):
    kind = type("Quantized", (torch.Tensor,), {})
    linear.weight = nn.Parameter(linear.weight.detach().as_subclass(kind))
    with torch.no_grad():
        project(linear, torch.randn(2, 24))
    assert is_called
