"""Batches without padding: the same numbers as with it, and no sequence sees another."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DataCollatorWithFlattening

from hf_lineage import (
    LineageAlbertForMaskedLM,
    LineageAlbertForMultipleChoice,
    LineageAlbertForPreTraining,
    LineageAlbertForQuestionAnswering,
    LineageAlbertForSequenceClassification,
    LineageAlbertForTokenClassification,
    LineageAlbertModel,
)
from hf_lineage.albert import layers_albert, modeling_albert
from hf_lineage.albert.packing_albert import PackedSequences, lengths_from_positions

LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=5)
MODES = {
    "all shared": {},
    "none shared": {"share_parameters": "none"},
    "pre-LN": {"layer_norm_position": "pre"},
}
IMPLEMENTATIONS = ["sdpa", "eager"]
# How attention runs on a packed row: sequences padded in one call, as on a GPU, or one by one
LONG_SEQUENCES = {"padded": 10**6, "one by one": 0}


@pytest.fixture(autouse=True, params=LONG_SEQUENCES)
def way(request, monkeypatch):
    """Every test runs both ways."""
    monkeypatch.setattr(layers_albert, "_LONG_SEQUENCE", LONG_SEQUENCES[request.param])
    return request.param


@pytest.fixture(scope="module")
def models(tiny, randomize):
    """Random models by mode and attention implementation, of all classes; made once."""
    made = {}

    def get(mode="all shared", implementation="sdpa", model_class=LineageAlbertModel, **fields):
        key = (mode, implementation, model_class, *sorted(fields.items()))
        if key not in made:
            torch.manual_seed(0)
            config = tiny(**MODES[mode], **fields)
            made[key] = randomize(model_class._from_config(config, attn_implementation=implementation))
        return made[key].eval()

    return get


def padded_batch(lengths):
    """Rows of those lengths, padded on the right: ids, mask, segments."""
    lengths = torch.tensor(lengths)
    places = torch.arange(int(lengths.max()))
    mask = (places < lengths[:, None]).long()
    generator = torch.Generator().manual_seed(int(lengths.sum()))
    ids = torch.randint(4, 60, mask.shape, generator=generator) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": (places >= lengths[:, None] // 2) * mask}


def packed_batch(batch, boundaries="cu_seq_lens_q"):
    """The same rows one after the other in one row, and how the model is told where they begin."""
    real = batch["attention_mask"].bool()
    row = {name: batch[name][real][None] for name in ("input_ids", "token_type_ids")}
    lengths = real.sum(1)
    if boundaries == "cu_seq_lens_q":
        return {**row, "cu_seq_lens_q": torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).int()}
    return {**row, "position_ids": torch.cat([torch.arange(int(length)) for length in lengths])[None]}


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: torch.zeros(()) if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("boundaries", ["cu_seq_lens_q", "position_ids"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("mode", MODES)
@given(lengths=LENGTHS)
@settings(max_examples=15, deadline=None)
def test_a_packed_row_is_the_padded_batch(mode, implementation, boundaries, lengths, models):
    model = models(mode, implementation)
    batch = padded_batch(lengths)
    real = batch["attention_mask"].bool()
    expected = model(**batch, output_hidden_states=True)
    found = model(**packed_batch(batch, boundaries), output_hidden_states=True)
    assert found.last_hidden_state.shape == (1, sum(lengths), 16)
    torch.testing.assert_close(found.last_hidden_state[0], expected.last_hidden_state[real], atol=1e-5, rtol=0)
    torch.testing.assert_close(found.pooler_output, expected.pooler_output, atol=1e-5, rtol=0)
    for ours, theirs in zip(found.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours[0], theirs[real], atol=1e-5, rtol=0)
    losses = [
        found.last_hidden_state.square().sum() + found.pooler_output.sum(),
        expected.last_hidden_state[real].square().sum() + expected.pooler_output.sum(),
    ]
    torch.testing.assert_close(*(gradients(model, loss) for loss in losses), atol=1e-4, rtol=1e-4)


@st.composite
def masks(draw):
    """Masks with padding anywhere, and with rows of padding only."""
    rows, tokens = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    flags = draw(st.lists(st.booleans(), min_size=rows * tokens, max_size=rows * tokens))
    return torch.tensor(flags).view(rows, tokens).long()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("mode", MODES)
@given(mask=masks())
@settings(max_examples=25, deadline=None)
def test_padding_free_is_the_padded_batch(mode, implementation, mask, models):
    padded, padding_free = models(mode, implementation), models(mode, implementation, padding_free=True)
    real, rows = mask.bool(), mask.any(1)
    batch = {
        "input_ids": torch.arange(mask.numel()).view(mask.shape) % 50 + 5,
        "attention_mask": mask,
        "token_type_ids": torch.arange(mask.shape[1]).expand_as(mask) % 2,
    }
    expected, found = (model(**batch, output_hidden_states=True) for model in (padded, padding_free))
    assert found.last_hidden_state.shape == expected.last_hidden_state.shape
    torch.testing.assert_close(found.last_hidden_state[real], expected.last_hidden_state[real], atol=1e-5, rtol=0)
    torch.testing.assert_close(found.pooler_output[rows], expected.pooler_output[rows], atol=1e-5, rtol=0)
    for ours, theirs in zip(found.hidden_states, expected.hidden_states, strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours[real], theirs[real], atol=1e-5, rtol=0)
    if not rows.any():
        return
    assert not found.last_hidden_state[~real].any()
    results = [
        gradients(model, output.last_hidden_state[real].square().sum() + output.pooler_output[rows].sum())
        for model, output in ((padded, expected), (padding_free, found))
    ]
    torch.testing.assert_close(*results, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("boundaries", ["cu_seq_lens_q", "position_ids"])
@given(lengths=st.lists(st.integers(1, 6), min_size=2, max_size=5), data=st.data())
@settings(max_examples=20, deadline=None)
def test_no_sequence_sees_another(boundaries, implementation, lengths, data, models):
    model = models("none shared", implementation)
    changed = data.draw(st.integers(0, len(lengths) - 1))
    row = packed_batch(padded_batch(lengths), boundaries)
    first = sum(lengths[:changed])
    inside = torch.zeros(sum(lengths), dtype=torch.bool)
    inside[first : first + lengths[changed]] = True
    others = torch.arange(len(lengths)) != changed
    ids = torch.where(inside, (row["input_ids"] + 7) % 50 + 5, row["input_ids"])
    with torch.no_grad():
        before, after = model(**row), model(**{**row, "input_ids": ids})
    assert torch.equal(before.last_hidden_state[0, ~inside], after.last_hidden_state[0, ~inside])
    assert torch.equal(before.pooler_output[others], after.pooler_output[others])
    assert not torch.equal(before.last_hidden_state[0, inside], after.last_hidden_state[0, inside])

    words = torch.randn(1, sum(lengths), 8, requires_grad=True)
    output = model(**{**row, "input_ids": None, "inputs_embeds": words})
    (output.last_hidden_state[0, inside].square().sum() + output.pooler_output[changed].sum()).backward()
    assert not words.grad[0, ~inside].any()
    assert words.grad[0, inside].any()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_attention_probabilities_of_packed_sequences(implementation, models):
    model = models("all shared", implementation)
    batch = padded_batch([5, 2, 7])
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        expected = model(**batch, output_attentions=True).attentions
        found = model(**packed_batch(batch), output_attentions=True).attentions
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape == (3, 2, 7, 7)
        torch.testing.assert_close(ours.transpose(1, 2)[real], theirs.transpose(1, 2)[real], atol=1e-6, rtol=1e-5)


def test_one_sequence_in_a_packed_row_is_an_ordinary_row(models):
    model = models()
    ids = padded_batch([6])["input_ids"]
    with torch.no_grad():
        expected = model(ids)
        for boundaries in ({"cu_seq_lens_q": torch.tensor([0, 6])}, {"position_ids": torch.arange(6)[None]}):
            found = model(ids, **boundaries)
            torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state, atol=1e-6, rtol=1e-5)
            torch.testing.assert_close(found.pooler_output, expected.pooler_output, atol=1e-6, rtol=1e-5)


def test_positions_of_an_ordinary_batch_are_no_boundaries(models):
    model = models()
    batch = padded_batch([4, 4])
    positions = torch.tensor([[0, 1, 0, 1]]).expand(2, -1)
    with torch.no_grad():
        rows = model(batch["input_ids"], position_ids=positions).last_hidden_state
        row = model(batch["input_ids"][:1], batch["attention_mask"][:1], position_ids=positions[:1]).last_hidden_state
    torch.testing.assert_close(row, rows[:1], atol=1e-6, rtol=1e-5)


def test_the_row_may_be_longer_than_the_position_table_but_no_sequence(models):
    model = models()
    lengths = [20, 32, 7]
    batch = padded_batch(lengths)
    assert sum(lengths) > model.config.max_position_embeddings == 32
    with torch.no_grad():
        expected = model(**batch).last_hidden_state[batch["attention_mask"].bool()]
        found = model(**packed_batch(batch)).last_hidden_state[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    ids = torch.full((1, 60), 5)
    with pytest.raises(ValueError, match="max_position_embeddings=32 tokens, got 33"):
        model(ids, cu_seq_lens_q=torch.tensor([0, 33, 60]))


BAD_BOUNDARIES = {
    "do not begin at 0": ([1, 3, 6], "must rise from 0 to the number of tokens 6"),
    "do not end at the end": ([0, 3, 5], "must rise from 0 to the number of tokens 6"),
    "beyond the end": ([0, 3, 7], "must rise from 0 to the number of tokens 6"),
    "an empty sequence": ([0, 3, 3, 6], "must rise from 0 to the number of tokens 6"),
    "falling": ([0, 4, 2, 6], "must rise from 0 to the number of tokens 6"),
    "one boundary": ([0], "sequences \\+ 1 boundaries"),
    "two dimensions": ([[0, 6]], "sequences \\+ 1 boundaries"),
    "floats": ([0.0, 6.0], "must be int32 or int64"),
}


@pytest.mark.parametrize("case", BAD_BOUNDARIES)
def test_bad_boundaries_are_refused(case, models):
    boundaries, message = BAD_BOUNDARIES[case]
    with pytest.raises(ValueError, match=f"cu_seq_lens_q {message}" if "rise" in message else message):
        models()(torch.full((1, 6), 5), cu_seq_lens_q=torch.tensor(boundaries))


def test_boundaries_that_are_no_tensor_are_refused(models):
    with pytest.raises(ValueError, match=r"cu_seq_lens_q must be a tensor .*, got list"):
        models()(torch.full((1, 6), 5), cu_seq_lens_q=[0, 6])


@pytest.mark.parametrize(
    "others",
    [
        {"input_ids": torch.full((2, 6), 5)},
        {"input_ids": torch.full((1, 6), 5), "attention_mask": torch.ones(1, 6)},
    ],
    ids=["two rows", "a mask"],
)
def test_boundaries_need_one_row_without_a_mask(others, models):
    with pytest.raises(ValueError, match="one packed row and no attention_mask"):
        models()(**others, cu_seq_lens_q=torch.tensor([0, 6]))


@pytest.mark.parametrize("training", [False, True])
def test_heads_on_packed_rows(training, models):
    batch = padded_batch([6, 3, 5])
    row = packed_batch(batch)
    real = batch["attention_mask"].bool()
    labels = torch.where(real & (batch["input_ids"] % 2 == 0), batch["input_ids"], -100)
    assert (labels != -100).any()
    of_rows = {"labels": labels}
    of_row = {"labels": labels[real][None]}
    of_sentences = {"labels": torch.tensor([0, 1, 1])}
    sentences = {"sentence_order_label": torch.tensor([0, 1, 1])}
    classes = torch.where(real, batch["input_ids"] % 2, -100)
    cases = [
        (LineageAlbertForMaskedLM, of_rows, of_row),
        (LineageAlbertForPreTraining, {**of_rows, **sentences}, {**of_row, **sentences}),
        (LineageAlbertForSequenceClassification, of_sentences, of_sentences),
        (LineageAlbertForTokenClassification, {"labels": classes}, {"labels": classes[real][None]}),
    ]
    for model_class, padded_labels, packed_labels in cases:
        model = models(model_class=model_class).train(training)
        padding_free = models(model_class=model_class, padding_free=True).train(training)
        expected = model(**batch, **padded_labels)
        packed, unpadded = model(**row, **packed_labels), padding_free(**batch, **padded_labels)
        for found in (packed, unpadded):
            torch.testing.assert_close(found.loss, expected.loss, atol=1e-5, rtol=1e-5)
        if model_class is LineageAlbertForPreTraining:
            assert packed.sentence_logits.shape == (3, 2)
            torch.testing.assert_close(packed.sentence_logits, expected.sentence_logits, atol=1e-5, rtol=1e-5)
        if model_class is LineageAlbertForSequenceClassification:
            assert packed.logits.shape == (3, 2)
        of_each = [gradients(model, output.loss) for output in (packed, expected)]
        of_each.append(gradients(padding_free, unpadded.loss))
        for found in (of_each[0], of_each[2]):
            torch.testing.assert_close(found, of_each[1], atol=1e-4, rtol=1e-4)


def test_padding_free_choices(models):
    choices = {name: value[None] for name, value in padded_batch([6, 3, 5]).items()}
    with torch.no_grad():
        expected, found = (
            models(model_class=LineageAlbertForMultipleChoice, padding_free=flag)(**choices).logits
            for flag in (False, True)
        )
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_padding_free_questions(models):
    batch = padded_batch([6, 3, 5])
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        expected, found = (
            models(model_class=LineageAlbertForQuestionAnswering, padding_free=flag)(**batch) for flag in (False, True)
        )
    for name in ("start_logits", "end_logits"):
        assert found[name].shape == expected[name].shape
        torch.testing.assert_close(found[name][real], expected[name][real], atol=1e-5, rtol=0)


def test_a_row_of_padding_only_sees_no_other_row(models):
    model = models(padding_free=True)
    batch = padded_batch([4, 5, 2])
    batch["attention_mask"][1] = 0
    with torch.no_grad():
        before = model(**batch)
        after = model(**{**batch, "input_ids": (batch["input_ids"] + 7) % 50 + 5})
    assert not torch.equal(before.pooler_output[0], after.pooler_output[0])
    assert torch.equal(before.pooler_output[1], after.pooler_output[1])


@pytest.mark.parametrize("options", [{}, {"return_flash_attn_kwargs": True}], ids=["positions", "boundaries"])
def test_the_flattening_collator_of_transformers(options, models):
    model = models(model_class=LineageAlbertForMaskedLM)
    features = [
        {"input_ids": [2, 17, 5, 44, 3], "labels": [-100, 17, -100, 9, -100]},
        {"input_ids": [2, 8, 3], "labels": [-100, 8, -100]},
    ]
    ids = torch.tensor([[2, 17, 5, 44, 3], [2, 8, 3, 0, 0]])
    labels = torch.tensor([[-100, 17, -100, 9, -100], [-100, 8, -100, -100, -100]])
    flat = DataCollatorWithFlattening(**options)(features)
    assert ("cu_seq_lens_q" in flat) == bool(options)
    with torch.no_grad():
        expected = model(ids, (ids != 0).long(), labels=labels)
        found = model(**flat)
    torch.testing.assert_close(found.loss, expected.loss)
    torch.testing.assert_close(found.logits[0], expected.logits[ids != 0], atol=1e-5, rtol=0)


@given(lengths=LENGTHS)
def test_packing_undoes_padding(lengths):
    packed = PackedSequences.from_lengths(torch.tensor(lengths))
    values = torch.randn(1, sum(lengths), 3)
    padded = packed.pad(values)
    assert padded.shape == (len(lengths), max(lengths), 3)
    rows = values[0].split(lengths)
    assert all(torch.equal(padded[number, : len(row)], row) for number, row in enumerate(rows))
    assert not padded[~packed.mask].any()
    assert torch.equal(packed.pack(padded), values)
    assert packed.mask.sum(1).tolist() == lengths
    assert packed.first_tokens.tolist() == [sum(lengths[:number]) for number in range(len(lengths))]
    again = PackedSequences.from_mask(packed.mask)
    assert torch.equal(again.rows, packed.rows)
    assert torch.equal(again.columns, packed.columns)


@given(lengths=LENGTHS)
def test_lengths_from_positions(lengths):
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    assert lengths_from_positions(positions).tolist() == lengths


@pytest.mark.parametrize(("positions", "lengths"), [([3, 4, 0, 1], [2, 2]), ([5], [1]), ([0, 0, 0], [1, 1, 1])])
def test_lengths_from_positions_that_do_not_begin_at_zero(positions, lengths):
    assert lengths_from_positions(torch.tensor([positions])).tolist() == lengths


@pytest.mark.parametrize("form", ["padded", "padding-free", "packed"])
@pytest.mark.parametrize("mode", MODES)
@given(lengths=LENGTHS, data=st.data())
@settings(max_examples=15, deadline=None)
def test_vectors_that_are_asked_for(mode, form, lengths, data, models):
    batch = padded_batch(lengths)
    real = batch["attention_mask"].bool()
    flags = data.draw(st.lists(st.booleans(), min_size=real.numel(), max_size=real.numel()))
    asked = torch.tensor(flags).view(real.shape) & real
    model = models(mode, padding_free=form == "padding-free")
    inputs = packed_batch(batch) if form == "packed" else batch
    output_mask = asked[real][None] if form == "packed" else asked

    widths = []
    hooks = [
        block.register_forward_pre_hook(lambda _, args: widths.append(args[0][..., 0].numel()))
        for block in model.ffn_blocks
    ]
    expected, found = models(mode)(**batch), model(**inputs, output_mask=output_mask)
    with_layers = model(**inputs, output_mask=output_mask, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    first = torch.zeros_like(asked)
    first[:, 0] = True
    assert min(widths) == int((asked | first).sum())  # the last layer's, and the pooler needs the first tokens

    assert found.last_hidden_state.shape == (int(asked.sum()), 16)
    for output in (found, with_layers):
        torch.testing.assert_close(output.last_hidden_state, expected.last_hidden_state[asked], atol=1e-5, rtol=0)
        torch.testing.assert_close(output.pooler_output, expected.pooler_output, atol=1e-5, rtol=0)
    last = with_layers.hidden_states[-1]
    assert last.shape[:2] == ((1, sum(lengths)) if form == "packed" else real.shape)
    of_real = last[0] if form == "packed" else last[real]
    torch.testing.assert_close(of_real, expected.last_hidden_state[real], atol=1e-5, rtol=0)
    results = [
        gradients(each, vectors.square().sum() + output.pooler_output.sum())
        for each, output, vectors in (
            (models(mode), expected, expected.last_hidden_state[asked]),
            (model, found, found.last_hidden_state),
        )
    ]
    torch.testing.assert_close(results[1], results[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("output_mask", "message"),
    [
        (torch.ones(2, 5, dtype=torch.bool), r"output_mask must be a tensor of shape \(2, 6\)"),
        (torch.ones(2, 6).long(), "output_mask must be bool, got torch.int64"),
        ([[True] * 6] * 2, "output_mask must be .*, got list"),
    ],
    ids=["another length", "integers", "a list"],
)
def test_bad_masks_of_what_is_asked_for_are_refused(output_mask, message, models):
    with pytest.raises(ValueError, match=message):
        models()(torch.full((2, 6), 5), output_mask=output_mask)


@pytest.mark.parametrize("sparse_prediction", [True, False])
def test_labels_on_padding_without_it(sparse_prediction, models):
    """They are predicted from a vector of zeros, whether or not the other positions are predicted."""
    batch = padded_batch([6, 3, 5])
    labels = torch.where(batch["attention_mask"] == 0, 7, -100)
    labels[0, 2] = 9
    model = models(model_class=LineageAlbertForMaskedLM, padding_free=True)
    expected = model(**batch).logits.flatten(0, 1)[(labels != -100).flatten()]
    expected = torch.nn.functional.cross_entropy(expected, labels[labels != -100])
    torch.testing.assert_close(model(**batch, labels=labels, sparse_prediction=sparse_prediction).loss, expected)


@pytest.mark.parametrize("predicted", [(), (1,), (0, 2)], ids=str)
def test_sequences_without_a_prediction(predicted, models):
    """Whether all sequences have one, some or none, sparse prediction gives the same."""
    batch = padded_batch([6, 3, 5])
    labels = torch.full_like(batch["input_ids"], -100)
    labels[[*predicted], 1] = 9
    model = models(model_class=LineageAlbertForMaskedLM, padding_free=True)
    losses = [model(**batch, labels=labels, sparse_prediction=flag).loss for flag in (True, False)]
    torch.testing.assert_close(losses[0], losses[1])
    found, expected = (gradients(model, loss) for loss in losses)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_queries_of_the_last_layer(way, models):
    """One by one, attention is computed for those tokens only whose vectors are needed."""
    model, batch = models("none shared"), padded_batch([6, 3, 5])
    asked = torch.zeros(1, 14, dtype=torch.bool)
    asked[0, [1, 4, 13]] = True
    widths = []
    hooks = [
        block.query.register_forward_pre_hook(lambda _, args: widths.append(args[0][..., 0].numel()))
        for block in model.attention_blocks
    ]
    model(**packed_batch(batch), output_mask=asked)
    for hook in hooks:
        hook.remove()
    assert widths == [14] * (len(model.attention_blocks) - 1) + [{"padded": 14, "one by one": 6}[way]]


def test_calls_of_attention(way, models, monkeypatch):
    """One for each sequence and layer, or one for each layer; what is recorded is padded."""
    calls = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def count(*arguments, **options):
        calls.append(arguments[0].shape[0])
        return attend(*arguments, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", count)
    model, batch = models(), padded_batch([5, 3, 7])
    layers = model.config.num_hidden_layers
    model(**packed_batch(batch))
    assert calls == {"padded": [3], "one by one": [1, 1, 1]}[way] * layers
    calls.clear()
    monkeypatch.setattr(torch.jit, "is_tracing", lambda: True)
    model(**packed_batch(batch))
    assert calls == [3] * layers


def test_no_mask_of_a_row_that_is_taken_one_by_one(way, models, monkeypatch):
    """That mask has as many values as the scores, of all sequences padded."""
    made = []
    create = modeling_albert.create_bidirectional_mask

    def count(**arguments):
        made.append(arguments["attention_mask"].shape)
        return create(**arguments)

    monkeypatch.setattr(modeling_albert, "create_bidirectional_mask", count)
    models()(**packed_batch(padded_batch([5, 3])))
    assert made == {"padded": [(2, 5)], "one by one": []}[way]


@pytest.mark.parametrize(
    ("lengths", "implementation", "expected"),
    [
        ([15, 16], "sdpa", False),
        ([15, 17], "sdpa", True),
        ([15, 17], "eager", False),
    ],
)
def test_how_sequences_are_taken(lengths, implementation, expected, monkeypatch):
    monkeypatch.undo()
    packed, vectors = PackedSequences.from_lengths(torch.tensor(lengths)), torch.zeros(1, sum(lengths), 16)
    assert layers_albert.takes_one_by_one(packed, vectors, implementation) == expected
    assert not layers_albert.takes_one_by_one(None, vectors, implementation)


@pytest.mark.parametrize("form", ["cu_seq_lens_q", "padding_free"])
def test_export_refuses_what_it_cannot_follow(form, models):
    batch = padded_batch([5, 3])
    model = models(padding_free=form == "padding_free")
    inputs = batch if form == "padding_free" else packed_batch(batch)
    with pytest.raises(Exception, match=r"torch\.export needs padded batches"):
        torch.export.export(model, (), kwargs=dict(inputs))
