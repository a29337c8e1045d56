"""torch.compile: one graph, the same outputs and gradients."""

import pytest
import torch
from neighbour_inputs import build_model
from tiny_families import FAMILIES, tokenizer_of


@pytest.fixture(autouse=True)
def _fresh_graphs():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("family", FAMILIES)
def test_outputs_and_gradients_are_those_of_the_model(family):
    model = build_model(family, "ForSequenceClassification", num_hidden_layers=1)
    batch = tokenizer_of(family)(["a film", "bad"], padding=True, return_tensors="pt")
    # tracing is what can fail; generating code for the graph would only take longer
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    gradients = []
    for function in (model, compiled):
        logits = function(**batch).logits
        (logits**2).sum().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
        model.zero_grad()
        with torch.no_grad():
            torch.testing.assert_close(function(**batch).logits, logits, atol=1e-5, rtol=1e-5)
    assert gradients[0].keys() == gradients[1].keys()
    for name, expected in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], expected, atol=1e-4, rtol=1e-4)
