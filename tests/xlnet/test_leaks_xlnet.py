"""What a prediction must not depend on, at weights so large that every dependence shows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_lineage.xlnet.permutation_xlnet import perm_mask_of_ranks, random_orders, ranks_of_order

TOKENS, VOCABULARY = 9, 60
DRAWS = 60


def draw(seed):
    """Ids, ranks of a random order, and positions to predict."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(6, VOCABULARY, (1, TOKENS), generator=generator)
    ranks = ranks_of_order(random_orders(1, TOKENS, generator))
    targets = torch.randperm(TOKENS, generator=generator)[:5][None]
    return ids, ranks, targets


def logits(model, ids, ranks, targets):
    with torch.no_grad():
        return model(ids, perm_mask=perm_mask_of_ranks(ranks), target_mapping=targets).logits[0]


def test_a_targets_own_id_changes_later_predictions_only(build):
    model = build("ForPreTraining", std=0.25)
    changed_a_later_one = 0
    for seed in range(DRAWS):
        ids, ranks, targets = draw(seed)
        before = logits(model, ids, ranks, targets)
        for target in targets[0].tolist():
            other = ids.clone()
            other[0, target] = 6 + (other[0, target] - 5) % (VOCABULARY - 6)
            change = (logits(model, other, ranks, targets) - before).abs().amax(-1)
            is_later = ranks[0, targets[0]] > ranks[0, target]
            assert (change[~is_later] == 0).all()  # its own, and what comes before it
            changed_a_later_one += bool((change[is_later] > 0).any())
            assert (change[is_later] > 0).all()
    assert changed_a_later_one > DRAWS


def test_the_zero_pattern_of_the_jacobian_is_the_order(build):
    model = build(std=0.25)
    for seed in range(5):
        ids, ranks, _ = draw(seed)
        embeddings = model.word_embedding(ids).detach().requires_grad_()
        every = torch.arange(TOKENS)[None]
        output = model(
            inputs_embeds=embeddings, perm_mask=perm_mask_of_ranks(ranks), target_mapping=every
        ).last_hidden_state
        for position in range(TOKENS):
            (gradient,) = torch.autograd.grad(output[0, position].pow(2).sum(), embeddings, retain_graph=True)
            depends = gradient[0].abs().amax(-1) > 0
            assert torch.equal(depends, ranks[0] < ranks[0, position])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 14), st.integers(1, 6), st.randoms(use_true_random=False))
def test_no_path_through_the_layers_leads_back_to_a_target(tokens, layers, random):
    """The closure of who sees whom: content sees content and itself, layer after layer, then the query looks."""
    ranks = list(range(tokens))
    random.shuffle(ranks)
    seen = (perm_mask_of_ranks(torch.tensor(ranks)) == 0).numpy()
    reached = np.linalg.matrix_power(np.eye(tokens) + seen, layers) > 0
    for target in range(tokens):
        assert not any(reached[other, target] for other in range(tokens) if seen[target, other])


def test_memory_holds_nothing_of_what_it_may_not_see(build):
    """The first half, which the next segment remembers, is blind to the second half."""
    model = build(std=0.25, reuse_len=4, mem_len=4)
    ids, ranks, targets = draw(1)
    mask = perm_mask_of_ranks(ranks)
    mask[:, :4, 4:] = 1
    other = ids.clone()
    other[0, 4:] = 6 + (other[0, 4:] - 5) % (VOCABULARY - 6)
    with torch.no_grad():
        one, two = (model(given, perm_mask=mask, target_mapping=targets, use_mems=True) for given in (ids, other))
    assert [tuple(layer.shape) for layer in one.mems] == [(1, 4, 32)] * 3
    for first, second in zip(one.mems, two.mems, strict=True):
        assert torch.equal(first, second)
    assert not torch.equal(one.last_hidden_state, two.last_hidden_state)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_query_that_sees_nothing_says_nothing(dtype, build):
    model = build("ForPreTraining", std=0.25).to(dtype).train()
    ids, _, targets = draw(2)
    nothing = torch.ones(1, TOKENS, TOKENS)
    output = model(ids, perm_mask=nothing, target_mapping=targets, labels=ids.gather(1, targets))
    output.loss.backward()
    assert output.loss.isfinite()
    for parameter in model.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()
    model.eval()
    with torch.no_grad():
        before = model(ids, perm_mask=nothing, target_mapping=targets).logits
        after = model((ids + 7) % VOCABULARY, perm_mask=nothing, target_mapping=targets).logits
    assert before.isfinite().all()
    assert torch.equal(before, after)


def test_a_target_sees_only_what_is_no_padding(build):
    model = build("ForPreTraining", std=0.25)
    ids, ranks, targets = draw(3)
    padding = torch.randint(6, VOCABULARY, (1, 4))
    longer = torch.cat([ids, padding], 1)
    mask = torch.tensor([[1] * TOKENS + [0] * 4])
    more_ranks = torch.cat([ranks, torch.full((1, 4), -1)], 1)
    with torch.no_grad():
        found = model(
            longer, attention_mask=mask, perm_mask=perm_mask_of_ranks(more_ranks), target_mapping=targets
        ).logits[0]
    torch.testing.assert_close(found, logits(model, ids, ranks, targets), atol=1e-5, rtol=0)
