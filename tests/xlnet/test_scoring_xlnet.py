import itertools

import pytest
import torch

from hf_lineage import LineageXLNetTokenizer
from hf_lineage.xlnet.permutation_xlnet import perm_mask_of_order

ROWS = [torch.tensor([7, 8, 9, 10]), torch.tensor([11, 12])]


@pytest.fixture
def model(build):
    return build("LMHeadModel", talkative=True)


def one_by_one(model, row, order):
    """Each token predicted in a pass of its own, from a text that holds what comes before it and nothing else."""
    total = 0.0
    for place, token in enumerate(order):
        with torch.no_grad():
            logits = model(
                row[None],
                perm_mask=perm_mask_of_order(order)[None],
                target_mapping=torch.tensor([[token]]),
            ).logits[0, 0]
        masked = row.clone()
        masked[list(order[place:])] = 6  # nothing of these may matter
        with torch.no_grad():
            same = model(
                masked[None], perm_mask=perm_mask_of_order(order)[None], target_mapping=torch.tensor([[token]])
            ).logits[0, 0]
        assert torch.equal(logits, same)
        total += logits.log_softmax(-1)[row[token]].item()
    return total


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 1, 3, 0), (3, 2, 1, 0)])
def test_one_order(order, model):
    found = model.score(ROWS[:1], order=order)
    assert found.shape == (1, 1)
    assert found.item() == pytest.approx(one_by_one(model, ROWS[0], order), abs=1e-4)


def test_left_to_right_of_rows_of_different_lengths(model):
    together = model.score(ROWS)
    for row, found in zip(ROWS, together, strict=True):
        assert found.item() == pytest.approx(model.score([row]).item(), abs=1e-4)
        assert found.item() == pytest.approx(one_by_one(model, row, tuple(range(len(row)))), abs=1e-4)


def test_random_orders_are_among_all_orders(model):
    every = torch.tensor([model.score(ROWS[:1], order=order).item() for order in itertools.permutations(range(4))])
    found = model.score(ROWS[:1], order="random", num_orders=40, generator=torch.Generator().manual_seed(1))
    assert found.shape == (1, 40)
    assert ((found[0][:, None] - every).abs().amin(1) < 1e-4).all()
    assert len({round(value, 3) for value in found[0].tolist()}) > 10
    again = model.score(ROWS[:1], order="random", num_orders=40, generator=torch.Generator().manual_seed(1))
    assert torch.equal(found, again)


def test_the_probabilities_of_all_texts_add_up(model):
    """Over all two-token texts, for either order."""
    texts = [torch.tensor(pair) for pair in itertools.product(range(60), repeat=2)]
    for order in ((0, 1), (1, 0)):
        assert model.score(texts, order=order).double().exp().sum().item() == pytest.approx(1, abs=1e-4)


def test_text_with_a_tokenizer(model):
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    vocab = [(token, 0.0) for token in special] + [("▁the", -1.0), ("▁cat", -2.0), ("s", -3.0)]
    tokenizer = LineageXLNetTokenizer(vocab=vocab)
    found = model.train().score(["the cats", "cat"], tokenizer)
    assert model.training
    assert torch.equal(found, model.score([torch.tensor([9, 10, 11]), torch.tensor([10])]))
    assert torch.equal(model.score("the cats", tokenizer), model.score(["the cats"], tokenizer))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": ["a text"]}, "tokenizer"),
        ({"texts": []}, "rows"),
        ({"texts": [torch.tensor([], dtype=torch.long)]}, "rows"),
        ({"texts": ROWS, "order": "sideways"}, "sideways"),
        ({"texts": ROWS, "order": [0, 1, 2, 3]}, "2 tokens"),
        ({"texts": ROWS[:1], "order": [0, 1, 1, 3]}, "order"),
        ({"texts": ROWS, "num_orders": 2}, "num_orders"),
        ({"texts": ROWS, "order": "random", "num_orders": 0}, "num_orders"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments, message, model):
    with pytest.raises(ValueError, match=message):
        model.score(**arguments)
