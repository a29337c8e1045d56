import pytest
import torch

TOKENS = 8


def segments(batch=2):
    return torch.randint(6, 60, (batch, TOKENS)), torch.randint(6, 60, (batch, TOKENS))


def test_two_segments_with_memory_are_one_masked_pass(build):
    model = build(mem_len=TOKENS)
    first, second = segments()
    with torch.no_grad():
        memory = model(first, use_mems=True).mems
        found = model(second, mems=memory).last_hidden_state
        mask = torch.zeros(2, 2 * TOKENS, 2 * TOKENS)
        mask[:, :TOKENS, TOKENS:] = 1  # the first is blind to the second
        whole = model(torch.cat([first, second], 1), perm_mask=mask).last_hidden_state
    torch.testing.assert_close(found, whole[:, TOKENS:], atol=1e-5, rtol=0)


def test_padding_of_an_earlier_segment_is_not_seen(build):
    model = build(mem_len=TOKENS)
    first, second = segments(1)
    padded = torch.cat([torch.full((1, 3), 5), first], 1)
    mask = torch.tensor([[0] * 3 + [1] * TOKENS])
    with torch.no_grad():
        plain = model(first, use_mems=True)
        found = model(padded, attention_mask=mask, use_mems=True)
        expected = model(second, mems=plain.mems).last_hidden_state
        with_mask = model(second, mems=found.mems, mems_mask=found.mems_mask).last_hidden_state
    torch.testing.assert_close(with_mask, expected, atol=1e-5, rtol=0)
    longer = build(mem_len=None)
    with torch.no_grad():
        kept = longer(padded, attention_mask=mask, use_mems=True)
    assert kept.mems_mask.tolist() == [[False] * 3 + [True] * TOKENS]


@pytest.mark.parametrize(("mem_len", "reuse_len", "expected"), [(5, None, 5), (None, None, 16), (0, 3, 6), (5, 3, 5)])
def test_how_much_is_remembered(mem_len, reuse_len, expected, build):
    model = build(mem_len=mem_len, reuse_len=reuse_len)
    first, second = segments()
    with torch.no_grad():
        output = model(first, use_mems=True)
        output = model(second, mems=output.mems, mems_mask=output.mems_mask, use_mems=True)
    assert {tuple(layer.shape) for layer in output.mems} == {(2, expected, 32)}
    assert output.mems_mask.shape == (2, expected)


def test_no_gradient_flows_into_the_memory(build):
    model = build(mem_len=TOKENS)
    first, second = segments()
    memory = model(first, use_mems=True).mems
    assert not any(layer.requires_grad for layer in memory)
    model(second, mems=memory).last_hidden_state.sum().backward()


def test_the_configuration_says_where_a_call_does_not(build):
    for use_train, use_eval in ((True, False), (False, True)):
        model = build(use_mems_train=use_train, use_mems_eval=use_eval)
        assert (model.train()(segments()[0]).mems is not None) == use_train
        assert (model.eval()(segments()[0]).mems is not None) == use_eval
        assert model(segments()[0], use_mems=True).mems is not None
        assert model(segments()[0], use_mems=False).mems is None


def test_a_row_read_backwards_is_the_mirrored_text(build):
    """With the other direction, a reversed text has the vectors of the text, reversed."""
    model = build()
    ids = segments()[0]
    directions = torch.tensor([1, -1])
    mixed = torch.stack([ids[0], ids[1].flip(0)])
    with torch.no_grad():
        expected = model(ids).last_hidden_state
        found = model(mixed, directions=directions).last_hidden_state
    torch.testing.assert_close(found[0], expected[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(found[1].flip(0), expected[1], atol=1e-5, rtol=0)


def test_an_odd_batch_needs_directions(build):
    model = build(bi_data=True)
    ids = torch.randint(6, 60, (3, TOKENS))
    with pytest.raises(ValueError, match="even"):
        model(ids)
    assert model(ids, directions=torch.tensor([1, 1, -1])).last_hidden_state.shape == (3, TOKENS, 32)
    with pytest.raises(ValueError, match="1 or -1"):
        model(ids, directions=torch.tensor([1, 1, 0]))
