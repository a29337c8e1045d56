from itertools import chain

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_lineage.elmo.packing_elmo import boundary_row, pack

CHARACTERS = 5
PADDING_CHARACTERS = [261] * CHARACTERS
BEGIN, END = [259, 257, 260, 261, 261], [259, 258, 260, 261, 261]


@st.composite
def batches(draw):
    """Ids, mask and token types; padding anywhere, as zeros in the ids, in the mask, or both."""
    rows, tokens = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    shape = (rows, tokens)

    def flags():
        return torch.tensor(draw(st.lists(st.booleans(), min_size=rows * tokens, max_size=rows * tokens))).view(shape)

    ids = torch.arange(1, rows * tokens * CHARACTERS + 1).view(*shape, CHARACTERS) % 256 + 1
    ids[..., 0] = 259
    if draw(st.booleans()):
        ids = ids * flags()[..., None]
    mask = flags().long() if draw(st.booleans()) else None
    types = flags().long() if draw(st.booleans()) else None
    return ids, mask, types


def sequences_of_row(ids, mask, types, boundaries, separate):
    """One row's sequences as lists of (characters, place in the row or `None`)."""
    sentences = [[]] if types is None else [[], []]
    for place, characters in enumerate(ids.tolist()):
        if any(characters) and (mask is None or mask[place]):
            sentences[0 if types is None else int(types[place])].append((characters, place))
    if boundaries:
        whole = [[(BEGIN, None), *sentence, (END, None)] for sentence in sentences]
        if len(sentences) == 2 and not sentences[1] and not separate:
            whole[1] = []
    else:
        whole = sentences
    return whole if separate and types is not None else [[*chain.from_iterable(whole)]]


@given(batch=batches(), boundaries=st.booleans(), separate=st.booleans())
@settings(max_examples=200, deadline=None)
def test_packing_against_lists(batch, boundaries, separate):
    ids, mask, types = batch
    packed = pack(ids, mask, types, boundaries, separate)
    rows = [
        sequences_of_row(
            ids[row], None if mask is None else mask[row], None if types is None else types[row], boundaries, separate
        )
        for row in range(len(ids))
    ]
    sequences = [sequence for row in rows for sequence in row]
    longest = max(1, *map(len, sequences))

    assert packed.lengths.tolist() == [len(sequence) for sequence in sequences]
    assert packed.character_ids.dtype == packed.lengths.dtype == torch.int64
    assert packed.character_ids.tolist() == [
        [characters for characters, _ in sequence] + [PADDING_CHARACTERS] * (longest - len(sequence))
        for sequence in sequences
    ]
    assert packed.mask.tolist() == [[place < len(sequence) for place in range(longest)] for sequence in sequences]
    assert packed.is_boundary.tolist() == [
        [place is None for _, place in sequence] + [False] * (longest - len(sequence)) for sequence in sequences
    ]
    real = [{place for sequence in row for _, place in sequence} for row in rows]
    assert packed.token_mask.tolist() == [[place in row for place in range(ids.shape[1])] for row in real]

    values = torch.arange(1.0, len(sequences) * longest * 2 + 1).view(len(sequences), longest, 2)
    expected = torch.zeros(*ids.shape[:2], 2)
    number = 0
    for row, of_row in enumerate(rows):
        for sequence in of_row:
            for step, (_, place) in enumerate(sequence):
                if place is not None:
                    expected[row, place] = values[number, step]
            number += 1
    assert torch.equal(packed.unpack(values), expected)


@given(batch=batches(), boundaries=st.booleans(), separate=st.booleans())
@settings(max_examples=60, deadline=None)
def test_unpacking_undoes_packing(batch, boundaries, separate):
    ids, mask, types = batch
    packed = pack(ids, mask, types, boundaries, separate)
    restored = packed.unpack(packed.character_ids)
    assert torch.equal(restored, ids * packed.token_mask[..., None])


@pytest.mark.parametrize("separate", [False, True])
def test_gradients_reach_real_tokens_only(separate):
    ids = torch.ones(2, 3, CHARACTERS, dtype=torch.long)
    types = torch.tensor([[0, 1, 1], [0, 0, 1]])
    packed = pack(ids, torch.tensor([[1, 1, 0], [1, 1, 1]]), types, True, separate)
    values = torch.randn(*packed.character_ids.shape[:2], 4, requires_grad=True)
    packed.unpack(values).sum().backward()
    used = values.grad.bool().all(-1)
    assert torch.equal(used, packed.mask & ~packed.is_boundary)


@pytest.mark.parametrize("mask_dtype", [torch.bool, torch.int32, torch.float32])
def test_masks_of_any_dtype_and_padding_values_under_the_mask(mask_dtype):
    ids = torch.randint(1, 260, (2, 4, CHARACTERS))
    mask = torch.tensor([[0, 1, 1, 0], [1, 1, 1, 1]])
    expected = pack(ids * mask[..., None], None, None, True, False)
    found = pack(ids, mask.to(mask_dtype), None, True, False)
    for name in ("character_ids", "lengths", "is_boundary", "token_mask"):
        assert torch.equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("separate", [False, True])
def test_ids_of_32_bits(separate):
    ids, types = torch.randint(1, 260, (2, 4, CHARACTERS)), torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]])
    expected = pack(ids, None, types, True, separate)
    found = pack(ids.int(), None, types.int(), True, separate)
    assert torch.equal(found.character_ids.long(), expected.character_ids)
    assert torch.equal(found.positions, expected.positions)
    assert torch.equal(found.lengths, expected.lengths)


@pytest.mark.parametrize("characters", [3, 5, 50])
@pytest.mark.parametrize("boundary", [257, 258])
def test_boundary_rows(boundary, characters):
    row = boundary_row(boundary, characters)
    assert row.dtype == torch.int64
    assert row.tolist() == [259, boundary, 260] + [261] * (characters - 3)
