import pytest
import torch

from benchmarks.speed import xlnet
from benchmarks.speed.cases import run_case
from benchmarks.speed.xlnet import Sizes, cases

TINY = Sizes(
    d_model=32,
    n_head=4,
    d_inner=48,
    vocab_size=60,
    forward_layers=2,
    training_layers=2,
    shapes=((4, 12), (2, 24)),
    prompt_tokens=10,
    new_tokens=5,
)
NAMES = ["forward-4x12", "pretraining-4x12", "forward-2x24", "pretraining-2x24", "generation"]


def test_names_and_what_is_wanted():
    assert [case.name for case in cases(TINY)] == NAMES
    assert {case.name: case.wanted for case in cases()} == {
        "forward-8x128": 1.2,
        "pretraining-8x128": 1.3,
        "forward-4x512": 1.9,
        "pretraining-4x512": 2.0,
        "generation": 2.5,
    }


@pytest.mark.parametrize("name", NAMES)
def test_both_sides_compute_the_same(name):
    (case,) = (case for case in cases(TINY) if case.name == name)
    result = run_case(case, num_pairs=2)
    assert all(difference <= case.tolerance for difference in result.differences.values())
    assert len(result.times["wall"].summary()) > 0


@pytest.mark.parametrize("name", NAMES[:-1])
def test_other_weights_are_noticed(name, monkeypatch):
    twins = xlnet._twins

    def spoiled(*arguments):
        peer, own = twins(*arguments)
        with torch.no_grad():
            for parameter in own.parameters():
                parameter.mul_(1.5)
        return peer, own

    monkeypatch.setattr(xlnet, "_twins", spoiled)
    (case,) = (case for case in cases(TINY) if case.name == name)
    with pytest.raises(ValueError, match=name):
        run_case(case, num_pairs=1)
