"""torch.compile: one graph, the same outputs and gradients."""

import pytest
import torch
from neighbour_inputs import IS_RECENT_TORCH, build_model
from tiny_families import ELMO, FAMILIES, tokenizer_of


@pytest.fixture(autouse=True)
def _fresh_graphs():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture(params=FAMILIES)
def compiled(request):
    """A model, the same compiled, and a batch."""
    if request.param != ELMO and not IS_RECENT_TORCH:
        pytest.skip("torch 2.6 loses a name in the wrappers of transformers 5.17")
    model = build_model(request.param, "ForSequenceClassification", num_hidden_layers=1)
    batch = tokenizer_of(request.param)(["a film", "bad"], padding=True, return_tensors="pt")
    # tracing is what can fail; generating code for the graph would only take longer
    return model, torch.compile(model, fullgraph=True, backend="aot_eager"), batch


def test_outputs_are_those_of_the_model(compiled):
    model, function, batch = compiled
    with torch.no_grad():
        torch.testing.assert_close(function(**batch).logits, model(**batch).logits, atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_the_model(compiled):
    gradients = []
    model, function, batch = compiled
    for forward in (model, function):
        (forward(**batch).logits ** 2).sum().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
        model.zero_grad()
    assert gradients[0].keys() == gradients[1].keys()
    for name, expected in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], expected, atol=1e-4, rtol=1e-4)
