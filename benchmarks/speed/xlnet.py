"""The XLNet-style family against transformers' XLNet.

Both sides have the same random weights and no dropout, so that outputs, losses, gradients and generated tokens can be
compared. Layers are alike, so that few of them stand for many.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from transformers import PreTrainedModel, XLNetConfig, XLNetLMHeadModel, XLNetModel

from benchmarks.speed.cases import Case, Workload, largest_difference, relative_difference
from benchmarks.speed.twins import Batch, gradients_as_transformers, own_twin, training_step
from hf_lineage import LineageXLNetForPreTraining, LineageXLNetLMHeadModel, LineageXLNetModel

SPECIAL_TOKENS = 9  # ids below are not drawn
# Single-precision sums in another order: at base width outputs differ by some 1e-6
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Sizes:
    """Sizes of models and batches; the widths are XLNet base's.

    Args:
        d_model: Width of the layers.
        n_head: Attention heads.
        d_inner: Width inside the feed-forward blocks.
        vocab_size: Rows of the word table.
        forward_layers: Layers of models that only run forward.
        training_layers: Layers of models in training.
        shapes: Rows and tokens of the batches.
        prompt_tokens: Tokens of a prompt.
        new_tokens: Tokens to generate.
    """

    d_model: int = 768
    n_head: int = 12
    d_inner: int = 3072
    vocab_size: int = 32000
    forward_layers: int = 4
    training_layers: int = 4
    shapes: tuple[tuple[int, int], ...] = ((8, 128), (4, 512))
    prompt_tokens: int = 128
    new_tokens: int = 64


def cases(sizes: Sizes = Sizes()) -> list[Case]:
    """Return the comparisons of the family.

    Args:
        sizes: Sizes of models and batches.
    """
    found = []
    for shape, forward, step in zip(sizes.shapes, (1.2, 1.9), (1.3, 2.0), strict=False):
        name = "x".join(map(str, shape))
        found += [
            Case(
                name=f"forward-{name}",
                description=f"evaluation, {name}, padding and segments, {sizes.forward_layers} layers",
                baseline="XLNetModel",
                candidate="LineageXLNetModel",
                wanted=forward,
                tolerance=TOLERANCE,
                build=partial(_forward, sizes, shape),
            ),
            Case(
                name=f"pretraining-{name}",
                description=f"two-stream step {name}: forward, backward, AdamW, {sizes.training_layers} layers",
                baseline="XLNetLMHeadModel",
                candidate="LineageXLNetForPreTraining",
                wanted=step,
                tolerance=TOLERANCE,
                build=partial(_pretraining, sizes, shape),
            ),
        ]
    tokens = f"{sizes.new_tokens} tokens after {sizes.prompt_tokens}"
    found.append(
        Case(
            name="generation",
            description=f"{tokens}, greedy, one row, {sizes.forward_layers} layers",
            baseline="XLNetLMHeadModel, use_mems=True",
            candidate="LineageXLNetLMHeadModel",
            wanted=2.5,
            tolerance=0.0,
            build=partial(_generation, sizes),
        )
    )
    return found


def _twins(
    sizes: Sizes, layers: int, peer_class: type[PreTrainedModel], own_class: type[PreTrainedModel]
) -> tuple[PreTrainedModel, PreTrainedModel]:
    """A model of transformers with random weights, biases included, and ours with the same."""
    torch.manual_seed(0)
    config = XLNetConfig(
        vocab_size=sizes.vocab_size,
        d_model=sizes.d_model,
        n_head=sizes.n_head,
        d_inner=sizes.d_inner,
        n_layer=layers,
        dropout=0.0,
        use_mems_eval=False,
    )
    peer = peer_class(config)
    return peer, own_twin(peer, own_class)


def _tokens(sizes: Sizes, shape: tuple[int, int]) -> Batch:
    """Random tokens; the second half of each row is segment 1, and the first row begins with padding."""
    generator = torch.Generator().manual_seed(0)
    attention_mask = torch.ones(shape)
    attention_mask[0, : shape[1] // 4] = 0
    return {
        "input_ids": torch.randint(SPECIAL_TOKENS, sizes.vocab_size, shape, generator=generator),
        "token_type_ids": (torch.arange(shape[1]) >= shape[1] // 2).long().expand(shape),
        "attention_mask": attention_mask,
    }


def _forward(sizes: Sizes, shape: tuple[int, int]) -> Workload:
    peer, own = (model.eval() for model in _twins(sizes, sizes.forward_layers, XLNetModel, LineageXLNetModel))
    batch = _tokens(sizes, shape)

    def run(model: PreTrainedModel) -> Callable[[Batch], torch.Tensor]:
        @torch.inference_mode()
        def forward(value: Batch) -> torch.Tensor:
            return model(**value).last_hidden_state

        return forward

    run_peer, run_own = run(peer), run(own)
    real = batch["attention_mask"].bool()

    def differences(value: Batch) -> dict[str, float]:
        return {"last_hidden_state": largest_difference(run_own(value)[real], run_peer(value)[real])}

    return Workload(run_peer, run_own, [batch], differences, {"tokens": batch["input_ids"].numel()})


def _pretraining(sizes: Sizes, shape: tuple[int, int]) -> Workload:
    """The last sixth of a random order is predicted (section 2.3 of the paper)."""
    twins = _twins(sizes, sizes.training_layers, XLNetLMHeadModel, LineageXLNetForPreTraining)
    peer, own = (model.train() for model in twins)
    generator = torch.Generator().manual_seed(1)
    common = _tokens(sizes, shape)
    del common["attention_mask"]
    ranks = torch.rand(shape, generator=generator).argsort(1)
    positions = ranks.argsort(1, descending=True)[:, : shape[1] // 6]
    common["perm_mask"] = (ranks[:, :, None] <= ranks[:, None]).float()
    common["labels"] = common["input_ids"].gather(1, positions)
    mapping = torch.nn.functional.one_hot(positions, shape[1]).float()
    inputs = [({**common, "target_mapping": mapping}, {**common, "target_mapping": positions})]
    step_peer, step_own = training_step(peer), training_step(own)

    def differences(value: tuple[Batch, Batch]) -> dict[str, float]:
        losses = [model(**batch).loss for model, batch in zip((peer, own), value, strict=True)]
        for loss in losses:
            loss.backward()
        expected = {name: parameter.grad for name, parameter in peer.named_parameters()}
        found = {
            "loss": largest_difference(*losses),
            "gradients (of the largest)": relative_difference(gradients_as_transformers(own), expected),
        }
        for model in (peer, own):
            model.zero_grad()
        return found

    return Workload(
        baseline=lambda value: step_peer(value[0]),
        candidate=lambda value: step_own(value[1]),
        inputs=inputs,
        differences=differences,
        facts={"predicted_tokens": positions.numel(), "tokens": ranks.numel()},
    )


def _generation(sizes: Sizes) -> Workload:
    twins = _twins(sizes, sizes.forward_layers, XLNetLMHeadModel, LineageXLNetLMHeadModel)
    peer, own = (model.eval() for model in twins)
    prompt = _tokens(sizes, (1, sizes.prompt_tokens))["input_ids"]

    def run(model: PreTrainedModel, **options: bool) -> Callable[[torch.Tensor], torch.Tensor]:
        def generate(value: torch.Tensor) -> torch.Tensor:
            return model.generate(
                value, max_new_tokens=sizes.new_tokens, do_sample=False, eos_token_id=None, pad_token_id=5, **options
            )

        return generate

    run_peer, run_own = run(peer, use_mems=True), run(own)

    def differences(value: torch.Tensor) -> dict[str, float]:
        return {"tokens": float((run_own(value) != run_peer(value)).sum())}

    return Workload(run_peer, run_own, [prompt], differences, {"new_tokens": sizes.new_tokens})
