import pytest
import torch

from hf_lineage.xlnet import attention_xlnet
from hf_lineage.xlnet.attention_xlnet import (
    RelativeInputs,
    RelativeLayout,
    relative_attention,
    relative_attention_reference,
)

BATCH, HEADS, TOKENS, PREDICTED, MEMORY, SIZE = 3, 2, 11, 5, 6, 8
KEYS = TOKENS + MEMORY


@pytest.fixture(params=[4, 128], ids=["blocks", "whole"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(attention_xlnet, "BLOCK", request.param)
    monkeypatch.setattr(attention_xlnet, "WHOLE", request.param)


def case(directions=1, anywhere=False, segments=True, masked=True, dtype=torch.float64):
    queries = PREDICTED if anywhere else TOKENS

    def random(*shape):
        return torch.randn(*shape, dtype=dtype, requires_grad=True)

    fields = [
        random(BATCH, HEADS, queries, SIZE),
        random(BATCH, HEADS, queries, SIZE),
        random(BATCH, HEADS, queries, 2) if segments else None,
        random(BATCH, HEADS, KEYS, SIZE),
        random(BATCH, HEADS, KEYS, SIZE),
        random(directions, HEADS, KEYS + TOKENS, SIZE),
    ]
    visible = torch.rand(BATCH, 1, queries, KEYS) > 0.4
    visible[1, 0, 2] = False  # sees nothing
    layout = RelativeLayout(
        TOKENS,
        visible if masked else None,
        torch.rand(BATCH, 1, queries, KEYS) > 0.5 if segments else None,
        torch.randint(0, TOKENS + 1, (BATCH, queries)) if anywhere else None,
    )
    return fields, layout


def gradients(fields, output, weights):
    return torch.autograd.grad((output * weights).sum(), [field for field in fields if field is not None])


@pytest.mark.parametrize("directions", [1, BATCH])
@pytest.mark.parametrize("anywhere", [False, True], ids=["tokens", "positions"])
@pytest.mark.parametrize("segments", [False, True], ids=["plain", "segments"])
@pytest.mark.parametrize("masked", [False, True], ids=["all", "masked"])
def test_fast_and_reference_are_equal(blocks, directions, anywhere, segments, masked):
    fields, layout = case(directions, anywhere, segments, masked)
    expected, _ = relative_attention_reference(RelativeInputs(*fields), layout)
    found = relative_attention(RelativeInputs(*fields), layout)
    torch.testing.assert_close(found, expected, atol=1e-13, rtol=0)
    weights = torch.randn_like(expected)
    for one, other in zip(gradients(fields, expected, weights), gradients(fields, found, weights), strict=True):
        torch.testing.assert_close(other, one, atol=1e-12, rtol=0)


@pytest.mark.parametrize("anywhere", [False, True])
def test_the_gradient_with_dropout_is_that_of_the_same_draw(blocks, anywhere):
    fields, layout = case(anywhere=anywhere)

    def attend(*values):
        torch.manual_seed(3)
        return relative_attention(RelativeInputs(*values), layout, dropout=0.3)

    assert torch.autograd.gradcheck(attend, fields, fast_mode=True)
    assert not torch.equal(attend(*fields), relative_attention(RelativeInputs(*fields), layout))


def test_the_position_term_is_that_of_the_distance():
    """A key's score moves with the row of the table that belongs to the distance, spelled out here by loops."""
    fields, layout = case(segments=False, masked=False)
    content, position, _, key, _, table = (None if field is None else field.detach() for field in fields)
    _, probabilities = relative_attention_reference(RelativeInputs(*fields), layout)
    scores = torch.empty(BATCH, HEADS, TOKENS, KEYS, dtype=torch.float64)
    for query in range(TOKENS):
        for seen in range(KEYS):
            distance = MEMORY + query - seen
            row = table[0, :, KEYS - distance]
            scores[:, :, query, seen] = (content[:, :, query] * key[:, :, seen]).sum(-1)
            scores[:, :, query, seen] += (position[:, :, query] * row).sum(-1)
    torch.testing.assert_close(probabilities, (scores * SIZE**-0.5).softmax(-1), atol=1e-13, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("attend", [relative_attention, lambda *a: relative_attention_reference(*a)[0]])
def test_a_query_that_sees_nothing_is_zero_and_finite(attend, dtype):
    fields, layout = case(dtype=dtype)
    output = attend(RelativeInputs(*fields), layout)
    assert (output[1, :, 2] == 0).all()
    for gradient in torch.autograd.grad(output.sum(), fields):
        assert gradient.isfinite().all()


def test_what_is_kept_for_the_backward_pass_does_not_grow_with_the_square_of_the_length():
    def kept(tokens):
        inputs = RelativeInputs(
            *(torch.randn(1, 1, tokens, 4, requires_grad=True) for _ in range(2)),
            None,
            *(torch.randn(1, 1, tokens, 4, requires_grad=True) for _ in range(2)),
            torch.randn(1, 1, 2 * tokens, 4, requires_grad=True),
        )
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda saved: sizes.append(saved.numel()), lambda _: None):
            relative_attention(inputs, RelativeLayout(tokens))
        return sum(sizes)

    assert kept(1024) == 4 * kept(256)
