"""Linear layers that are applied many times to few rows, as an LSTM applies them at every step.

On a CPU most of such a product is spent on bringing the weights into the order in which it reads them. oneDNN can do
that once for all steps; torch's own layers do it anew at each.
"""

from collections.abc import Callable
from functools import lru_cache
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils.flop_counter import flop_registry, register_flop_formula

# Products that it takes to win back the time of packing
WORTHWHILE = 3

# Layer -> what its weights were when they were packed, and the packed ones. Not an attribute of the layer, because
# packed weights cannot be saved.
_packed_weights: WeakKeyDictionary[nn.Module, tuple[tuple, torch.Tensor]] = WeakKeyDictionary()


def packed(linear: nn.Module, rows: int, times: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """What to apply in place of a linear layer: the same with packed weights where that is faster, else the layer.

    Packed weights are kept for the next pass, as long as the layer's own do not change and no gradients are asked for.
    The sums are taken in another order than by the layer: vectors differ by some 1e-6.

    Args:
        linear: The layer; only `nn.Linear` itself without hooks has its weights packed, and only on a CPU without
            gradients, for float32 and, where the CPU has instructions for it, bfloat16.
        rows: How many vectors there are at a time.
        times: How often it is applied.

    Returns:
        A function of `(rows, in_features)` vectors.
    """
    if times < WORTHWHILE or not _can_be_packed(linear):
        _packed_weights.pop(linear, None)
        return linear
    assert isinstance(linear, nn.Linear)
    weight, bias = _packed_weight(linear, rows), linear.bias
    return lambda values: torch.ops.mkldnn._linear_pointwise(values.contiguous(), weight, bias, "none", [], "")


def _packed_weight(linear: nn.Linear, rows: int) -> torch.Tensor:
    weight = linear.weight.detach()
    if weight.is_inference():  # its changes are not counted
        return torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    # The sum tells of changes by way of `weight.data`, which are not counted either
    checksum = weight.sum(dtype=torch.float32).item()
    state = (rows, weight.data_ptr(), linear.weight._version, checksum)
    kept_state, kept = _packed_weights.get(linear, (None, None))
    if kept is None or kept_state != state:
        kept = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        _packed_weights[linear] = (state, kept)
    return kept


def _can_be_packed(linear: nn.Module) -> bool:
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.jit.is_tracing() or not _has_onednn():
        return False
    # accelerate's hooks are a forward of the layer's own
    has_hooks = linear._forward_hooks or linear._forward_pre_hooks or "forward" in vars(linear)
    if type(linear) is not nn.Linear or has_hooks or torch.is_autocast_enabled("cpu"):
        return False
    if linear.weight.device.type != "cpu":
        return False
    return linear.weight.dtype == torch.float32 or (linear.weight.dtype == torch.bfloat16 and _has_bfloat16())


def _has_onednn() -> bool:
    """Whether torch was built with oneDNN and has the two operators, which its own compiler uses."""
    names = ("_reorder_linear_weight", "_linear_pointwise")
    return torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)


@lru_cache(maxsize=1)
def _has_bfloat16() -> bool:
    """Whether oneDNN multiplies matrices of bfloat16 on this CPU."""
    return hasattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported") and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _flops(values: torch.Size, weight: torch.Size, *_: object, out_shape: torch.Size, **__: object) -> int:
    """What torch's counter is to count for a product with packed weights, which it does not know by itself."""
    return 2 * out_shape.numel() * values[-1]


if _has_onednn() and torch.ops.mkldnn._linear_pointwise not in flop_registry:
    register_flop_formula(torch.ops.mkldnn._linear_pointwise)(_flops)


__all__ = ["WORTHWHILE", "packed"]
