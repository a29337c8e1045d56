"""The LAMB optimizer."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn


class Lamb(torch.optim.Optimizer):
    r"""LAMB as ALBERT was pretrained with it (You et al. 2020, https://arxiv.org/abs/1904.00962).

    Adam's step without bias correction, decoupled weight decay, and the step of each tensor scaled to the tensor's own
    length:

    ```
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    u = m / (sqrt(v) + eps) + weight_decay * w
    w = w - lr * trust * u          trust = |w| / |u|, or 1 if either is 0
    ```

    In the original, biases and the gains of norms have neither decay nor a trust ratio. The same comes out here with
    the two parameter groups that `Trainer` and `hf_lineage.pretraining.optimization.parameter_groups` make, because a
    group without weight decay has no trust ratio unless it says otherwise. With `Trainer`, whose default decay is 0:

    ```python
    args = TrainingArguments(..., learning_rate=0.00176, weight_decay=0.01)
    trainer = Trainer(..., args=args, optimizer_cls_and_kwargs=(Lamb, {"lr": args.learning_rate}))
    ```

    The moments of parameters in half precision are kept in float32, also when a state is loaded.

    Args:
        params: Parameters, pairs of names and parameters, or parameter groups.
        lr: Learning rate, at least 0.
        betas: How much of the mean gradient and of the mean squared gradient is kept at a step, in [0, 1).
        eps: Added to the root of the mean squared gradient; above 0.
        weight_decay: At least 0. In a group it holds for the group.
        trust_ratio: Whether steps are scaled to the tensors' lengths; `None` where `weight_decay` is not 0.
        foreach: Whether the tensors of a group are updated together, which is faster; `False` updates one by one and
            is the reference.

    Raises:
        ValueError: If a number is out of range, or no group has a trust ratio and none says `trust_ratio=False`: that
            would be Adam under another name, and is what `Trainer`'s groups give where its `weight_decay` is not set.
        RuntimeError: From `step`, if a gradient is sparse or complex.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        trust_ratio: bool | None = None,
        foreach: bool = True,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "trust_ratio": trust_ratio,
            "foreach": foreach,
        }
        super().__init__(params, defaults)
        undecided = [group["trust_ratio"] is None for group in self.param_groups]
        if any(undecided) and not any(_has_trust_ratio(group) for group in self.param_groups):
            raise ValueError(
                "No parameter group has weight decay, so none would have a trust ratio: set weight_decay (ALBERT's is "
                "0.01; Trainer takes it from TrainingArguments), or say trust_ratio=True or False"
            )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As in `torch.optim.Optimizer`; the group's numbers are checked.

        Raises:
            ValueError: If a number is out of range.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            _check_group(group)
        except ValueError:
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Updates every parameter that has a gradient.

        Args:
            closure: Computes the loss and the gradients anew, and returns the loss.

        Returns:
            What the closure returned, if there is one.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            for parameter in parameters:
                self._prepare(parameter)
            if group["foreach"]:
                alike: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = defaultdict(list)
                for parameter in parameters:
                    alike[parameter.device, parameter.dtype].append(parameter)
                for tensors in alike.values():
                    self._update_together(tensors, group)
            else:
                for parameter in parameters:
                    self._update(parameter, group)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As in `torch.optim.Optimizer`, but the moments keep their precision."""
        super().load_state_dict(state_dict)
        indices = [index for group in state_dict["param_groups"] for index in group["params"]]
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for index, parameter in zip(indices, parameters, strict=True):
            for name, value in state_dict["state"].get(index, {}).items():
                # torch has cast it to the parameter's own type
                self.state[parameter][name] = value.to(parameter.device, _state_dtype(parameter), copy=True)

    def _prepare(self, parameter: nn.Parameter) -> None:
        if parameter.grad.is_sparse:  # type: ignore[union-attr]
            raise RuntimeError("Lamb does not take sparse gradients; build the embedding with sparse=False")
        if parameter.is_complex():
            raise RuntimeError("Lamb does not take complex parameters")
        state = self.state[parameter]
        if not state:
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = torch.zeros_like(
                    parameter, dtype=_state_dtype(parameter), memory_format=torch.preserve_format
                )

    def _update(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean, mean_square = self.state[parameter]["exp_avg"], self.state[parameter]["exp_avg_sq"]
        grad, weight = parameter.grad.to(mean.dtype), parameter.to(mean.dtype)  # type: ignore[union-attr]
        mean.mul_(beta1).add_(grad, alpha=1 - beta1)
        mean_square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        update = mean / (mean_square.sqrt() + group["eps"])
        update.add_(weight, alpha=group["weight_decay"])
        if _has_trust_ratio(group):
            update *= _trust_ratios(torch.linalg.vector_norm(weight), torch.linalg.vector_norm(update))
        parameter.copy_(weight.add(update, alpha=-group["lr"]))

    def _update_together(self, parameters: list[torch.Tensor], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        means = [self.state[parameter]["exp_avg"] for parameter in parameters]
        mean_squares = [self.state[parameter]["exp_avg_sq"] for parameter in parameters]
        dtype = means[0].dtype
        weights = [parameter.to(dtype) for parameter in parameters]
        grads = [parameter.grad.to(dtype) for parameter in parameters]  # type: ignore[union-attr]
        torch._foreach_mul_(means, beta1)
        torch._foreach_add_(means, grads, alpha=1 - beta1)
        torch._foreach_mul_(mean_squares, beta2)
        torch._foreach_addcmul_(mean_squares, grads, grads, value=1 - beta2)
        denominators = torch._foreach_sqrt(mean_squares)
        torch._foreach_add_(denominators, group["eps"])
        updates = torch._foreach_div(means, denominators)
        torch._foreach_add_(updates, weights, alpha=group["weight_decay"])
        if _has_trust_ratio(group):
            lengths = torch.stack(torch._foreach_norm(weights)), torch.stack(torch._foreach_norm(updates))
            torch._foreach_mul_(updates, list(_trust_ratios(*lengths)))
        torch._foreach_add_(weights, updates, alpha=-group["lr"])
        if dtype != parameters[0].dtype:  # else the weights are the parameters
            torch._foreach_copy_(parameters, weights)


def _trust_ratios(weight_lengths: torch.Tensor, update_lengths: torch.Tensor) -> torch.Tensor:
    # Not an `if`: that would wait for the device.
    both = (weight_lengths > 0) & (update_lengths > 0)
    return torch.where(both, weight_lengths / update_lengths, 1.0)


def _has_trust_ratio(group: dict[str, Any]) -> bool:
    return group["weight_decay"] != 0 if group["trust_ratio"] is None else group["trust_ratio"]


def _state_dtype(parameter: torch.Tensor) -> torch.dtype:
    return torch.float32 if parameter.dtype in (torch.float16, torch.bfloat16) else parameter.dtype


def _check_group(group: dict[str, Any]) -> None:
    betas = group["betas"]
    checks = {
        "lr": (group["lr"] >= 0 and math.isfinite(group["lr"]), "at least 0"),
        "betas": (len(betas) == 2 and all(0 <= beta < 1 for beta in betas), "two numbers in [0, 1)"),
        "eps": (group["eps"] > 0, "above 0"),
        "weight_decay": (group["weight_decay"] >= 0, "at least 0"),
        "trust_ratio": (group["trust_ratio"] in (None, True, False), "None, True or False"),
    }
    for name, (is_allowed, allowed) in checks.items():
        if not is_allowed:
            raise ValueError(f"{name} must be {allowed}, got {group[name]!r}")


__all__ = ["Lamb"]
