"""The optimizer of a fine-tuning run."""

from torch import nn, optim

from benchmarks.glue.arguments import FineTuningArguments
from hf_lineage.pretraining.optimization import layer_wise_learning_rates

_FUSED_ADAMW_DEVICES = ("cpu", "cuda", "mps", "xpu")


def create_optimizer(model: nn.Module, settings: FineTuningArguments) -> optim.AdamW:
    """Return AdamW without decay on biases, the gains of norms and other vectors.

    Args:
        model: The model, on its device and not yet prepared.
        settings: Learning rate, its decay from layer to layer, weight decay.

    Raises:
        ValueError: If the learning rate is to differ between layers and the model has none with weights of their own.
    """
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (others if parameter.ndim < 2 or name.endswith("bias") else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if settings.layer_decay != 1:
        try:
            groups = layer_wise_learning_rates(model, groups, settings.learning_rate, settings.layer_decay)
        except ValueError as error:
            raise ValueError(f"--layer_decay: {error}.") from error
    is_fused = all(parameter.device.type in _FUSED_ADAMW_DEVICES for parameter in model.parameters())
    return optim.AdamW(groups, lr=settings.learning_rate, fused=is_fused)
