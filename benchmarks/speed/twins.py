"""What is done alike to two models with the same weights, ours and one of transformers."""

import tempfile
from collections.abc import Callable

import torch
from transformers import PreTrainedModel

Batch = dict[str, torch.Tensor]


def own_twin(peer: PreTrainedModel, own_class: type[PreTrainedModel]) -> PreTrainedModel:
    """Give a model of transformers biases and LayerNorms that matter, and return ours with the same weights."""
    with torch.no_grad():
        for parameter in peer.parameters():
            if parameter.dim() == 1:
                # As they start, all 0 or 1, a bias or a LayerNorm in the wrong place would make no difference
                parameter.add_(torch.randn_like(parameter), alpha=peer.config.initializer_range)
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        return own_class.from_pretrained(folder)


def training_step(model: PreTrainedModel) -> Callable[[Batch], None]:
    """Return what trains a model on one batch: forward, backward and optimizer step."""
    # Trainer's default optimizer
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step(batch: Batch) -> None:
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def gradients_as_transformers(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Our gradients under transformers' names: as weights of a copy of the model that is then converted."""
    carrier = type(model)(model.config)
    with torch.no_grad():
        for carried, parameter in zip(carrier.parameters(), model.parameters(), strict=True):
            carried.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    return {name: parameter.data for name, parameter in carrier.to_transformers().named_parameters()}
