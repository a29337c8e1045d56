"""Linear layers on few vectors, as generation has them."""

import torch
from torch import nn

# More vectors are not faster this way
FEW = 4


def project(linear: nn.Module, hidden_states: torch.Tensor) -> torch.Tensor:
    """`linear(hidden_states)`, where that is a few vectors by a product the other way round.

    A linear layer on one to four vectors takes as long as its weights take to be read. BLAS reads them two to five
    times as fast where they are the left factor of the product, and a single vector faster if there are two of it.

    Args:
        linear: A linear layer, or what stands in its place; only `nn.Linear` itself without hooks is computed here.
        hidden_states: `(..., in_features)`.
    """
    if torch.compiler.is_compiling() or torch.is_grad_enabled() or not _is_plain(linear):
        return linear(hidden_states)
    assert isinstance(linear, nn.Linear)
    vectors = hidden_states.reshape(-1, hidden_states.shape[-1])
    if not 0 < len(vectors) <= FEW or vectors.dtype != torch.float32 or vectors.device.type != "cpu":
        return linear(hidden_states)
    columns = (vectors if len(vectors) > 1 else vectors.repeat(2, 1)).t()
    weight, bias = linear.weight, linear.bias
    products = weight @ columns if bias is None else torch.addmm(bias[:, None], weight, columns)
    return products.t()[: len(vectors)].reshape(*hidden_states.shape[:-1], -1)


def _is_plain(linear: nn.Module) -> bool:
    has_hooks = (
        linear._forward_hooks or linear._forward_pre_hooks or "forward" in vars(linear)
    )  # as accelerate has them
    # torchao's quantized weights and shards of several processes are tensors of other classes, in a plain layer
    return type(linear) is nn.Linear and not has_hooks and type(linear.weight) in (nn.Parameter, torch.Tensor)


__all__ = ["FEW", "project"]
