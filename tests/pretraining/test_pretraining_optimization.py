import pytest
import torch
from torch import nn
from transformers import AlbertConfig, AlbertForPreTraining, BertConfig, BertForPreTraining, Trainer
from transformers import get_linear_schedule_with_warmup as linear_schedule

from hf_lineage import ElmoConfig, ElmoForPreTraining, LineageAlbertConfig, LineageAlbertForPreTraining
from hf_lineage.pretraining.lamb import Lamb
from hf_lineage.pretraining.optimization import (
    create_optimizer,
    learning_rate_factor,
    parameter_groups,
    set_learning_rate,
)

SIZES = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 8,
}
MODELS = {
    "lineage_albert": lambda: LineageAlbertForPreTraining(LineageAlbertConfig(embedding_size=4, **SIZES)),
    "pre_norm": lambda: LineageAlbertForPreTraining(
        LineageAlbertConfig(embedding_size=4, layer_norm_position="pre", share_parameters="none", **SIZES)
    ),
    "albert": lambda: AlbertForPreTraining(AlbertConfig(embedding_size=4, **SIZES)),
    "bert": lambda: BertForPreTraining(BertConfig(**SIZES)),
    "elmo": lambda: ElmoForPreTraining(
        ElmoConfig(vocab_size=20, hidden_size=4, lstm_hidden_size=8, char_cnn_filters=[[1, 4]], char_embedding_size=4)
    ),
}


def names_of(model: nn.Module, group: dict) -> set[str]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(parameter)] for parameter in group["params"]}


@pytest.mark.parametrize("name", MODELS)
def test_groups_are_those_of_trainer(name: str):
    model = MODELS[name]()
    decayed, others = parameter_groups(model, 0.01)
    expected = {*Trainer.get_decay_parameter_names(None, model)} & {key for key, _ in model.named_parameters()}
    assert names_of(model, decayed) == expected
    assert names_of(model, others) == {key for key, _ in model.named_parameters()} - expected
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.01, 0.0)


def test_frozen_parameters_are_left_out():
    model = MODELS["lineage_albert"]()
    model.albert.embeddings.word_embeddings.weight.requires_grad_(False)
    named = set().union(*(names_of(model, group) for group in parameter_groups(model, 0.01)))
    assert "albert.embeddings.word_embeddings.weight" not in named
    assert len(named) == sum(1 for _ in model.parameters()) - 1


def test_an_empty_group_is_left_out():
    assert [group["trust_ratio"] for group in parameter_groups(nn.Linear(2, 2, bias=False), 0.01)] == [True]


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_lamb_scales_the_same_tensors_with_and_without_decay(weight_decay: float):
    groups = parameter_groups(nn.Linear(2, 2), weight_decay)
    optimizer = create_optimizer("lamb", groups, 0.1, (0.8, 0.9), 1e-7)
    assert isinstance(optimizer, Lamb)
    assert [group["trust_ratio"] for group in optimizer.param_groups] == [True, False]
    assert [(group["lr"], group["betas"], group["eps"]) for group in optimizer.param_groups] == [
        (0.1, (0.8, 0.9), 1e-7)
    ] * 2


def test_adamw_gets_the_same_numbers():
    optimizer = create_optimizer("adamw", parameter_groups(nn.Linear(2, 2), 0.3), 0.1, (0.8, 0.9), 1e-7)
    assert isinstance(optimizer, torch.optim.AdamW)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.0]
    assert [(group["lr"], group["betas"], group["eps"]) for group in optimizer.param_groups] == [
        (0.1, (0.8, 0.9), 1e-7)
    ] * 2


def test_other_optimizers_are_refused():
    with pytest.raises(ValueError, match="optimizer must be 'lamb', 'adamw' or 'adagrad', got 'sgd'"):
        create_optimizer("sgd", parameter_groups(nn.Linear(2, 2), 0.3), 0.1, (0.8, 0.9), 1e-7)


@pytest.mark.parametrize(("num_steps", "warmup_steps"), [(10, 0), (10, 3), (40, 1), (7, 6)])
def test_the_course_of_the_learning_rate_is_transformers_linear_schedule(num_steps: int, warmup_steps: int):
    groups = [{"params": [nn.Parameter(torch.ones(1))], "lr": 0.1}, {"params": [nn.Parameter(torch.ones(1))]}]
    ours, theirs = (torch.optim.SGD([dict(group) for group in groups], lr=0.5) for _ in range(2))
    schedule = linear_schedule(theirs, warmup_steps, num_steps)
    for step in range(num_steps + 1):
        set_learning_rate(ours, learning_rate_factor(step / num_steps, warmup_steps / num_steps))
        assert [group["lr"] for group in ours.param_groups] == pytest.approx(schedule.get_last_lr(), abs=1e-12)
        theirs.step()
        schedule.step()


def test_a_learning_rate_may_warm_up_all_the_time():
    assert [learning_rate_factor(progress, 1.0) for progress in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]


def test_a_constant_learning_rate_stays_after_the_warmup():
    assert [learning_rate_factor(progress, 0.5, "constant") for progress in (0.0, 0.25, 0.5, 1.0)] == [0, 0.5, 1, 1]


def test_adagrad_without_the_factor_of_the_original():
    """bilm-tf multiplies its losses by the 20 steps of a window; so its accumulator of 1 is 1 / 400 here."""
    start, factor = torch.randn(5), 20

    def train(loss_factor: int, accumulator: float) -> torch.Tensor:
        weight = nn.Parameter(start.clone())
        groups = [{"params": [weight], "weight_decay": 0.0, "trust_ratio": True}]
        optimizer = create_optimizer("adagrad", groups, 0.2, (0.9, 0.999), 1e-12, accumulator)
        for step in range(5):
            optimizer.zero_grad()
            (loss_factor * (weight - step).square().mean()).backward()
            torch.nn.utils.clip_grad_norm_([weight], 10.0 * loss_factor / factor)
            optimizer.step()
        return weight.detach()

    torch.testing.assert_close(train(factor, 1.0), train(1, 1.0 / factor**2))
    assert not torch.allclose(train(factor, 1.0), train(1, 1.0))
