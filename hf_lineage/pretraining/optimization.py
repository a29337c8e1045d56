"""Parameter groups, optimizers and the course of the learning rate."""

import itertools
from typing import Any

import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from .lamb import Lamb

_FUSED_ADAMW_DEVICES = ("cpu", "cuda", "mps", "xpu")


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Puts biases and the gains of norms into a group without weight decay, as `Trainer` does.

    Args:
        model: The model; parameters without gradients are left out.
        weight_decay: Of the others.

    Returns:
        Two parameter groups for an optimizer of torch, or one if the other would be empty. `trust_ratio` in them is
        what `Lamb` reads, so that it has one for the same tensors whatever the decay; other optimizers ignore it.
    """
    norms = {id(weight) for module in model.modules() if _is_norm(module) for weight in module.parameters(False)}
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            excluded = id(parameter) in norms or "bias" in name.rpartition(".")[2]
            (others if excluded else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay, "trust_ratio": True},
        {"params": others, "weight_decay": 0.0, "trust_ratio": False},
    ]
    return [group for group in groups if group["params"]]


def layer_wise_learning_rates(
    model: nn.Module, groups: list[dict[str, Any]], learning_rate: float, decay: float
) -> list[dict[str, Any]]:
    """Gives lower layers lower learning rates.

    The highest layer and what is above it, such as a pooler and the head, have `learning_rate`, each layer below
    `decay` times that of the one above it, and what is below the layers, such as the embeddings, `decay` times that of
    the lowest. (XLNet's original multiplies gradients instead, which Adam undoes, and leaves the embeddings out.)

    Args:
        model: A model of transformers whose layers are `GradientCheckpointingLayer`s, as they are there, in one
            `nn.ModuleList` or, as ELMo's directions, in several side by side; or an ALBERT-style one without sharing.
        groups: From `parameter_groups`.
        learning_rate: Of the heads.
        decay: Above 0 and at most 1.

    Returns:
        Groups for an optimizer of torch, each with its `lr`, in place of those given.

    Raises:
        ValueError: If the decay is out of range, or layers share their weights.
    """
    if not 0 < decay <= 1:
        raise ValueError(f"decay must be above 0 and at most 1, got {decay}")
    base: Any = getattr(model, "module", model).base_model
    layers = _layers(base)
    number = len(layers)
    if not number or not all(layers) or len({weight for layer in layers for weight in layer}) < sum(map(len, layers)):
        raise ValueError(
            f"{type(model).__name__} has no weights of their own in its {base.config.num_hidden_layers} layers"
        )
    below = {weight: number - 1 - depth for depth, layer in enumerate(layers) for weight in layer}
    # Modules register their parts in the order in which they run.
    before = itertools.takewhile(lambda weight: id(weight) not in below, base.parameters())
    below.update({id(weight): number for weight in list(before)})
    split: list[dict[str, Any]] = []
    for group in groups:
        by_depth: dict[int, list[nn.Parameter]] = {}
        for weight in group["params"]:
            by_depth.setdefault(below.get(id(weight), 0), []).append(weight)
        split += [
            {**group, "params": weights, "lr": learning_rate * decay**depth}
            for depth, weights in sorted(by_depth.items())
        ]
    return split


def _layers(base: Any) -> list[list[int]]:
    """Returns the `id`s of the weights of each layer, the lowest layer first."""
    if hasattr(base.config, "layer_blocks"):
        parts = [
            [base.attention_blocks[attention], base.ffn_blocks[ffn]] for attention, ffn in base.config.layer_blocks
        ]
    else:
        stacks = [
            part
            for part in base.modules()
            if isinstance(part, nn.ModuleList)
            and len(part) == base.config.num_hidden_layers
            and all(isinstance(layer, GradientCheckpointingLayer) for layer in part)
        ]
        parts = [list(layers) for layers in zip(*stacks, strict=True)]
    return [[id(weight) for part in layer for weight in part.parameters()] for layer in parts]


def create_optimizer(
    name: str,
    groups: list[dict[str, Any]],
    learning_rate: float,
    betas: tuple[float, float],
    epsilon: float,
    accumulator: float = 0.0,
) -> torch.optim.Optimizer:
    """Creates LAMB, AdamW or Adagrad.

    Args:
        name: `"lamb"`, `"adamw"` or `"adagrad"`.
        groups: From `parameter_groups`; the parameters are on their device already.
        learning_rate: Peak learning rate of the groups that have none of their own.
        betas: Decay of the first and of the second moment; not of Adagrad.
        epsilon: Added to the root of the second moment.
        accumulator: Where Adagrad's sum of squared gradients begins.

    Raises:
        ValueError: If there is no optimizer of that name, or a number is out of range.
    """
    if name == "lamb":
        return Lamb(groups, lr=learning_rate, betas=betas, eps=epsilon)
    if name == "adamw":
        is_fused = all(weight.device.type in _FUSED_ADAMW_DEVICES for group in groups for weight in group["params"])
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=epsilon, fused=is_fused)
    if name == "adagrad":
        return torch.optim.Adagrad(groups, lr=learning_rate, initial_accumulator_value=accumulator, eps=epsilon)
    raise ValueError(f"optimizer must be 'lamb', 'adamw' or 'adagrad', got {name!r}")


def learning_rate_factor(progress: float, warmup: float, schedule: str = "linear") -> float:
    """Returns the share of the peak learning rate: a line from 0 to 1 during the warmup, then one from 1 to 0.

    Args:
        progress: How much of the training is done, from 0 to 1.
        warmup: How much of it warms up, from 0 to 1.
        schedule: `"linear"`, or `"constant"` for a rate that stays at 1 after the warmup.
    """
    if progress < warmup:
        return progress / warmup
    if schedule == "constant":
        return 1.0
    return max(0.0, (1 - progress) / (1 - warmup)) if warmup < 1 else 1.0


def set_learning_rate(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Sets every group's learning rate to this share of its first one."""
    for group in optimizer.param_groups:
        group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor


def _is_norm(module: nn.Module) -> bool:
    return isinstance(module, nn.LayerNorm) or type(module).__name__.lower().endswith("norm")


__all__ = [
    "create_optimizer",
    "layer_wise_learning_rates",
    "learning_rate_factor",
    "parameter_groups",
    "set_learning_rate",
]
