"""How a padded batch of tokens becomes the sequences that the LSTMs read, and how their output finds its way back.

The LSTMs read one sequence a row, packed to the left, with sentence boundaries where the configuration asks for them.
So padding may stand on either side of a batch, or inside it, without changing any vector.
"""

from dataclasses import dataclass

import torch

from .character_codes_elmo import BEGIN_OF_SENTENCE, BEGIN_OF_WORD, END_OF_SENTENCE, END_OF_WORD, PADDING


@dataclass
class PackedSequences:
    """Sequences packed to the left.

    Attributes:
        character_ids: `(sequences, length, characters)` int64; nothing but padding characters behind a sequence's end.
        lengths: `(sequences,)` int64, sentence boundaries included.
        positions: `(batch, tokens)` int64, where each token of the batch went, counted in the flattened sequences of
            its row.
        token_mask: `(batch, tokens)` bool, `False` for padding.
        is_boundary: `(sequences, length)` bool, `True` for the sentence boundaries that were added.
    """

    character_ids: torch.Tensor
    lengths: torch.Tensor
    positions: torch.Tensor
    token_mask: torch.Tensor
    is_boundary: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """`(sequences, length)` bool, `False` behind the end of a sequence."""
        steps = torch.arange(self.character_ids.shape[1], device=self.lengths.device)
        return steps < self.lengths[:, None]

    def unpack(self, values: torch.Tensor) -> torch.Tensor:
        """Brings `(sequences, length, width)` values back to `(batch, tokens, width)`, zero at padding."""
        batch_size = self.positions.shape[0]
        by_row = values.reshape(batch_size, -1, values.shape[-1])
        index = self.positions[..., None].expand(-1, -1, values.shape[-1])
        return by_row.gather(1, index) * self.token_mask[..., None].to(values.dtype)


def pack(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None,
    token_type_ids: torch.Tensor | None,
    add_sentence_boundaries: bool,
    separate: bool,
    with_words: bool = False,
) -> PackedSequences:
    """Packs a batch for the LSTMs.

    Args:
        input_ids: `(batch, tokens, characters)` integers. A token whose characters are all 0 is padding.
        attention_mask: `(batch, tokens)`, 0 for padding; `None` takes it from the ids.
        token_type_ids: `(batch, tokens)`, 0 for the first and 1 for the second sentence of a pair; `None` if there is
            one sentence a row.
        add_sentence_boundaries: Whether to put boundary tokens around each sentence.
        separate: Whether the sentences of a pair become sequences of their own (`2 * batch` sequences, the two of a
            row side by side) or one sequence with the boundaries between them.
        with_words: Whether the last number of a token is its word, the others its characters.
    """
    input_ids = input_ids.long()
    token_mask = (input_ids != 0).any(-1)
    if attention_mask is not None:
        token_mask = token_mask & (attention_mask != 0)
    if token_type_ids is None:
        sentences = [token_mask]
    else:
        sentences = [token_mask & (token_type_ids == 0), token_mask & (token_type_ids != 0)]
    if separate and len(sentences) == 2:
        return _pack_separate(input_ids, token_mask, sentences, add_sentence_boundaries, with_words)
    return _pack_joint(input_ids, token_mask, sentences, add_sentence_boundaries, with_words)


def _pack_joint(
    input_ids: torch.Tensor,
    token_mask: torch.Tensor,
    sentences: list[torch.Tensor],
    add_sentence_boundaries: bool,
    with_words: bool,
) -> PackedSequences:
    """Lays the sentences of a row one behind the other; a second sentence that is empty leaves no boundaries."""
    positions = torch.zeros_like(token_mask, dtype=torch.long)
    begins, ends = [], []
    start = torch.zeros_like(input_ids[:, 0, 0])
    for number, mask in enumerate(sentences):
        count = mask.sum(1)
        present = torch.ones_like(count) if number == 0 else (count > 0).long()
        added = int(add_sentence_boundaries) * present
        positions = torch.where(mask, start[:, None] + added[:, None] + mask.cumsum(1) - 1, positions)
        begins.append(torch.where(added > 0, start, -1))
        ends.append(torch.where(added > 0, start + 1 + count, -1))
        start = start + count + 2 * added
    boundaries = 2 * len(sentences) * int(add_sentence_boundaries)
    length = _needed_length(start, input_ids.shape[1] + boundaries)
    return _fill(input_ids, positions, token_mask, start, begins, ends, length, with_words)


def _pack_separate(
    input_ids: torch.Tensor,
    token_mask: torch.Tensor,
    sentences: list[torch.Tensor],
    add_sentence_boundaries: bool,
    with_words: bool,
) -> PackedSequences:
    halves = [
        _pack_joint(input_ids * mask[..., None], mask, [mask], add_sentence_boundaries, with_words)
        for mask in sentences
    ]
    length = max(half.character_ids.shape[1] for half in halves)
    ids, boundaries = [], []
    for half in halves:
        missing = length - half.character_ids.shape[1]
        ids.append(torch.nn.functional.pad(half.character_ids, (0, 0, 0, missing), value=PADDING))
        boundaries.append(torch.nn.functional.pad(half.is_boundary, (0, missing)))
    return PackedSequences(
        character_ids=torch.stack(ids, 1).flatten(0, 1),
        lengths=torch.stack([half.lengths for half in halves], 1).flatten(),
        positions=torch.where(sentences[0], halves[0].positions, length + halves[1].positions),
        token_mask=token_mask,
        is_boundary=torch.stack(boundaries, 1).flatten(0, 1),
    )


def _fill(
    input_ids: torch.Tensor,
    positions: torch.Tensor,
    token_mask: torch.Tensor,
    lengths: torch.Tensor,
    begins: list[torch.Tensor],
    ends: list[torch.Tensor],
    length: int,
    with_words: bool,
) -> PackedSequences:
    """Writes tokens and boundaries to their places. What has no place goes to a column behind the last, then away."""
    batch_size, _, characters = input_ids.shape
    packed = input_ids.new_full((batch_size, length + 1, characters), PADDING)
    target = torch.where(token_mask, positions, length)
    packed = packed.scatter(1, target[..., None].expand(-1, -1, characters), input_ids)
    is_boundary = torch.zeros(batch_size, length + 1, dtype=torch.bool, device=input_ids.device)
    for boundary, places in ((BEGIN_OF_SENTENCE, begins), (END_OF_SENTENCE, ends)):
        row = boundary_row(boundary, characters, with_words).to(input_ids.device)
        for place in places:
            column = torch.where(place >= 0, place, length)[:, None]
            packed = packed.scatter(1, column[..., None].expand(-1, -1, characters), row.expand(batch_size, 1, -1))
            is_boundary = is_boundary.scatter(1, column, True)
    return PackedSequences(packed[:, :length], lengths, positions, token_mask, is_boundary[:, :length])


def boundary_row(boundary: int, characters: int, with_words: bool = False) -> torch.Tensor:
    """The `(characters,)` ids of a sentence boundary token: begin of word, the boundary, end of word, padding.

    With words, the last number is the boundary as a word, which has the same number as the character.
    """
    row = torch.full((characters,), PADDING, dtype=torch.long)
    row[:3] = torch.tensor([BEGIN_OF_WORD, boundary, END_OF_WORD])
    if with_words:
        row[-1] = boundary
    return row


def _needed_length(lengths: torch.Tensor, upper_bound: int) -> int:
    if torch.compiler.is_compiling():
        return upper_bound  # a length read from the data would break the graph
    return max(int(lengths.max()), 1)


__all__ = ["PackedSequences", "boundary_row", "pack"]
