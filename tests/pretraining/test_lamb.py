import copy
import math

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from hf_lineage.pretraining.lamb import Lamb

BOTH = pytest.mark.parametrize("foreach", [True, False])


def numpy_lamb(weights, gradients, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01, trust_ratio=True):
    """The equations as ALBERT ran them, restated in float64; `gradients` has one row a step."""
    weights = np.asarray(weights, dtype=np.float64)
    mean, mean_square = np.zeros_like(weights), np.zeros_like(weights)
    for gradient in np.asarray(gradients, dtype=np.float64):
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        mean_square = betas[1] * mean_square + (1 - betas[1]) * gradient**2
        update = mean / (np.sqrt(mean_square) + eps) + weight_decay * weights
        lengths = np.sqrt((weights**2).sum()), np.sqrt((update**2).sum())
        ratio = lengths[0] / lengths[1] if trust_ratio and min(lengths) > 0 else 1.0
        weights = weights - lr * ratio * update
    return weights


def run(weights, gradients, dtype=torch.float64, **options):
    parameter = nn.Parameter(torch.tensor(np.asarray(weights), dtype=dtype))
    optimizer = Lamb([parameter], **options)
    for gradient in gradients:
        parameter.grad = torch.tensor(np.asarray(gradient), dtype=dtype)
        optimizer.step()
    return parameter.detach()


def small_bert(**options) -> BertForSequenceClassification:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    return BertForSequenceClassification(BertConfig(vocab_size=30, max_position_embeddings=16, **sizes, **options))


@BOTH
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**31),
    shape=st.sampled_from([(1,), (7,), (3, 4), (2, 3, 2)]),
    lr=st.sampled_from([0.0, 1e-3, 0.5]),
    weight_decay=st.sampled_from([0.0, 0.01, 1.0]),
    betas=st.sampled_from([(0.9, 0.999), (0.0, 0.0), (0.5, 0.9)]),
    trust_ratio=st.booleans(),
)
def test_it_computes_the_equations(foreach, seed, shape, lr, weight_decay, betas, trust_ratio):
    generator = np.random.default_rng(seed)
    weights, gradients = (
        generator.normal(size=shape),
        generator.normal(size=(5, *shape)) * 10.0 ** -generator.integers(8),
    )
    options = {"lr": lr, "weight_decay": weight_decay, "betas": betas, "trust_ratio": trust_ratio}
    np.testing.assert_allclose(
        run(weights, gradients, foreach=foreach, **options), numpy_lamb(weights, gradients, **options), rtol=1e-12
    )


@BOTH
def test_one_step_by_hand(foreach):
    """First step: m = 0.1 g, v = 0.001 g^2, so u = 0.1 / sqrt(0.001) = 3.1623 in each direction, |w| = 5."""
    moved = run([3.0, 4.0], [[1.0, -1.0]], foreach=foreach, lr=0.1, weight_decay=0.0, eps=1e-12, trust_ratio=True)
    step = 0.1 * 5 / math.sqrt(2)
    np.testing.assert_allclose(moved, [3 - step, 4 + step], rtol=1e-9)


@BOTH
def test_the_ratio_is_one_for_a_weight_of_length_zero(foreach):
    moved = run([0.0, 0.0], [[2.0, -2.0]], foreach=foreach, lr=0.1, eps=1e-12)
    step = 0.1 * 0.1 / math.sqrt(0.001)
    np.testing.assert_allclose(moved, [-step, step], rtol=1e-9)


@BOTH
def test_a_weight_whose_update_has_length_zero_stays(foreach):
    moved = run([1.0, 2.0], [[0.0, 0.0]], foreach=foreach, lr=0.1, weight_decay=0.0, trust_ratio=True)
    assert moved.tolist() == [1.0, 2.0]


@BOTH
def test_there_is_no_bias_correction(foreach):
    """With it, Adam's first step would be the learning rate itself; without it, it is 0.1 / sqrt(0.001) times that."""
    moved = run([1.0], [[1.0]], foreach=foreach, lr=1e-3, weight_decay=0.0, trust_ratio=False)
    assert (1 - moved.item()) / 1e-3 == pytest.approx(0.1 / math.sqrt(0.001), rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_tensors_updated_together_and_one_by_one_agree(dtype):
    results = []
    for foreach in (True, False):
        generator = torch.Generator().manual_seed(1)
        shapes = [(40, 8), (8,), (3, 2, 5), (1,)]
        weights = [nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in shapes]
        weights.append(nn.Parameter(torch.randn(4, generator=generator)))  # one of another type in the same group
        optimizer = Lamb(
            [{"params": weights[:3]}, {"params": weights[3:], "weight_decay": 0.0}], lr=0.05, foreach=foreach
        )
        for _ in range(6):
            for weight in weights:
                weight.grad = torch.randn(weight.shape, generator=generator).to(weight.dtype)
            optimizer.step()
        results.append([*weights, *(optimizer.state[weight]["exp_avg_sq"] for weight in weights)])
    tolerance = {"rtol": 0, "atol": 0} if dtype.itemsize == 2 else {"rtol": 5 * torch.finfo(dtype).eps, "atol": 1e-7}
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, **(tolerance if one.dtype == dtype else {}))


@BOTH
def test_groups_without_decay_have_no_trust_ratio_unless_they_say_so(foreach):
    values, gradients = [30.0, 40.0], [[1.0, 2.0]] * 3
    weights = [nn.Parameter(torch.tensor(values, dtype=torch.float64)) for _ in range(4)]
    groups = [
        {"params": weights[0]},
        {"params": weights[1], "weight_decay": 0.0},
        {"params": weights[2], "weight_decay": 0.0, "trust_ratio": True},
        {"params": weights[3], "trust_ratio": False},
    ]
    optimizer = Lamb(groups, lr=0.1, foreach=foreach)
    for gradient in gradients:
        for weight in weights:
            weight.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    kinds = [(0.01, True), (0.0, False), (0.0, True), (0.01, False)]
    expected = [
        numpy_lamb(values, gradients, 0.1, weight_decay=decay, trust_ratio=trust_ratio) for decay, trust_ratio in kinds
    ]
    for weight, right in zip(weights, expected, strict=True):
        np.testing.assert_allclose(weight.detach(), right, rtol=1e-12)
    assert len({round(float(right[0]), 6) for right in expected}) == 4


@BOTH
def test_parameters_without_a_gradient_are_left_alone(foreach):
    weights = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))]
    optimizer = Lamb(weights, foreach=foreach)
    weights[0].grad = torch.ones(2)
    optimizer.step()
    assert weights[1].tolist() == [1.0, 1.0]
    assert weights[1] not in optimizer.state


def test_a_closure_is_run_with_gradients():
    weight = nn.Parameter(torch.tensor([2.0]))
    optimizer = Lamb([weight], lr=0.1)

    def closure() -> float:
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 4.0
    assert weight.item() < 2.0


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_loaded_state_continues_bit_for_bit(foreach, dtype):
    def steps(weight: nn.Parameter, optimizer: Lamb, numbers: range) -> None:
        for number in numbers:
            weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(number)).to(dtype)
            optimizer.step()

    weight = nn.Parameter(torch.randn(50, 3).to(dtype))
    optimizer = Lamb([weight], lr=0.01, foreach=foreach)
    steps(weight, optimizer, range(5))
    other = nn.Parameter(weight.detach().clone())
    resumed = Lamb([other], lr=1.0, foreach=foreach)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert resumed.state[other]["exp_avg_sq"].dtype == torch.float32
    steps(weight, optimizer, range(5, 9))
    steps(other, resumed, range(5, 9))
    assert torch.equal(weight, other)
    assert torch.equal(optimizer.state[weight]["exp_avg_sq"], resumed.state[other]["exp_avg_sq"])


def test_a_loaded_state_is_a_copy():
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    optimizer = Lamb([weight])
    optimizer.step()
    saved = optimizer.state_dict()
    before = saved["state"][0]["exp_avg"].clone()
    other = nn.Parameter(torch.ones(2))
    other.grad = torch.ones(2)
    resumed = Lamb([other])
    resumed.load_state_dict(saved)
    resumed.step()
    assert torch.equal(saved["state"][0]["exp_avg"], before)


def test_moments_in_half_precision_do_not_stall():
    """In bfloat16 itself, v = 0.999 v + 0.001 g^2 would stop at the first value that rounds to itself."""
    weight = nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    optimizer = Lamb([weight], lr=0.0)
    for _ in range(2000):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    assert optimizer.state[weight]["exp_avg_sq"].item() == pytest.approx(1 - 0.999**2000, rel=1e-3)


def test_it_works_under_a_gradient_scaler():
    weights = {}
    for name in ("plain", "scaled"):
        weights[name] = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        optimizer = Lamb([weights[name]], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=name == "scaled")
        for factor in (1.0, float("inf"), 2.0):
            if factor == float("inf") and name == "plain":
                continue  # the scaler skips this step
            optimizer.zero_grad()
            scaler.scale((weights[name] ** 2).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
    torch.testing.assert_close(weights["plain"], weights["scaled"], rtol=0, atol=0)


def test_it_works_through_accelerate_with_a_scheduler():
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    model = nn.Linear(4, 1)
    optimizer = Lamb(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 60)
    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
    inputs = torch.randn(64, 4)
    targets = inputs.sum(1, keepdim=True)
    losses = []
    for _ in range(60):
        loss = (model(inputs) - targets).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -1.0}, "lr must be at least 0, got -1.0"),
        ({"lr": math.nan}, "lr must be at least 0, got nan"),
        ({"betas": (0.9, 1.0)}, r"betas must be two numbers in \[0, 1\), got \(0.9, 1.0\)"),
        ({"betas": (0.9,)}, "betas must be two numbers"),
        ({"eps": 0.0}, "eps must be above 0"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0"),
        ({"trust_ratio": "yes"}, "trust_ratio must be None, True or False"),
        ({"weight_decay": 0.0}, "No parameter group has weight decay"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Lamb([nn.Parameter(torch.ones(2))], **options)


def test_a_wrong_group_is_refused_and_not_kept():
    optimizer = Lamb([nn.Parameter(torch.ones(2))])
    with pytest.raises(ValueError, match="eps must be above 0, got -1"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))], "eps": -1})
    assert len(optimizer.param_groups) == 1


def test_no_decay_is_fine_once_the_trust_ratio_is_decided():
    for trust_ratio in (True, False):
        Lamb([nn.Parameter(torch.ones(2))], weight_decay=0.0, trust_ratio=trust_ratio)


def test_sparse_gradients_are_refused():
    embedding = nn.Embedding(5, 2, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse=False"):
        Lamb(embedding.parameters()).step()


class Rows(torch.utils.data.Dataset):
    """Rows whose label is whether they start with token 5."""

    def __init__(self) -> None:
        self.input_ids = torch.randint(6, 30, (48, 8), generator=torch.Generator().manual_seed(0))
        self.input_ids[:, 0] = 4
        self.input_ids[::2, 0] = 5

    def __len__(self) -> int:
        return len(self.input_ids)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.input_ids[index], "labels": (self.input_ids[index, 0] == 5).long()}


def train(output_dir, resume=False, **options) -> Trainer:
    arguments = TrainingArguments(
        output_dir=str(output_dir),
        learning_rate=0.02,
        max_steps=24,
        save_steps=8,
        per_device_train_batch_size=8,
        lr_scheduler_type="linear",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_steps=1,
        **{"weight_decay": 0.01, **options},
    )
    trainer = Trainer(
        model=small_bert(initializer_range=0.2),
        args=arguments,
        train_dataset=Rows(),
        optimizer_cls_and_kwargs=(Lamb, {"lr": arguments.learning_rate}),
    )
    trainer.train(resume_from_checkpoint=str(output_dir / "checkpoint-8") if resume else None)
    return trainer


def test_trainer_trains_with_it_and_resumes_exactly(tmp_path):
    trainer = train(tmp_path)
    losses = [record["loss"] for record in trainer.state.log_history if "loss" in record]
    assert sum(losses[-3:]) < 0.5 * sum(losses[:3])
    groups = trainer.optimizer.optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [0.01, 0.0]
    weights = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    resumed = train(tmp_path, resume=True)
    assert min(record["step"] for record in resumed.state.log_history[8:]) > 8
    for name, weight in resumed.model.state_dict().items():
        assert torch.equal(weight, weights[name]), name


def test_trainer_without_weight_decay_is_told(tmp_path):
    with pytest.raises(ValueError, match="Trainer takes it from TrainingArguments"):
        train(tmp_path, weight_decay=0.0)
