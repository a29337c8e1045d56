import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_lineage.xlnet.permutation_xlnet import (
    left_to_right,
    perm_mask_of_order,
    perm_mask_of_ranks,
    random_orders,
    ranks_of_order,
)

orders = st.integers(1, 12).flatmap(lambda tokens: st.permutations(range(tokens)))


def test_the_order_of_the_papers_figure():
    visible = 1 - perm_mask_of_order([2, 1, 3, 0])
    assert [[int(seen) for seen in row] for row in visible] == [
        [0, 1, 1, 1],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
        [0, 1, 1, 0],
    ]


@given(orders)
def test_each_token_sees_what_comes_before_it_in_the_order(order):
    mask = perm_mask_of_order(order)
    for place, token in enumerate(order):
        assert {seen for seen in range(len(order)) if mask[token, seen] == 0} == set(order[:place])
    assert ranks_of_order(order)[list(order)].tolist() == list(range(len(order)))


def test_left_to_right_is_the_causal_mask():
    assert torch.equal(perm_mask_of_order(left_to_right(5)), torch.ones(5, 5).triu())


def test_equal_ranks_do_not_see_each_other():
    assert perm_mask_of_ranks(torch.tensor([1, 0, 1])).tolist() == [[1, 0, 1], [1, 1, 1], [1, 0, 1]]


def test_random_orders_are_orders_of_each_row():
    found = random_orders(7, 9, torch.Generator().manual_seed(1))
    assert torch.equal(found.sort(-1).values, torch.arange(9).expand(7, 9))
    assert len({tuple(row) for row in found.tolist()}) == 7
    assert perm_mask_of_order(found).shape == (7, 9, 9)


@pytest.mark.parametrize("order", [[0, 0], [1, 2], [0.0, 1.0], [[[0]]], [-1, 0]])
def test_what_is_no_order_is_refused(order):
    with pytest.raises(ValueError, match="order"):
        perm_mask_of_order(order)
