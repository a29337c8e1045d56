"""Encoding of batches: truncation, padding, tensors, pairs, lists of words, and what reads the encodings."""

import logging

import numpy as np
import pytest
import torch
from datasets import Dataset
from datasets.fingerprint import Hasher
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from transformers import DataCollatorForTokenClassification, DataCollatorWithPadding
from transformers.trainer_pt_utils import LengthGroupedSampler

import hf_lineage
from hf_lineage import ElmoTokenizer
from hf_lineage.auto import FAMILIES

PADDING_ROW = (0,) * 50
BOUNDARIES = {"<S>": 257, "</S>": 258}

words = st.one_of(st.text(max_size=8), st.sampled_from(["<S>", "</S>", "<pad>", "New York", "", "a" * 60, "中文"]))
sentences = st.lists(words, max_size=6)
pairs = st.tuples(sentences, st.one_of(st.none(), sentences))
quick = settings(max_examples=80, deadline=None)


def row_of(word):
    if word in BOUNDARIES:
        head = [259, BOUNDARIES[word], 260]
    else:
        head = [259, *(byte + 1 for byte in word.encode("utf-8", "ignore")[:48]), 260]
    return tuple(head + [261] * (50 - len(head)))


def expected_columns(first, second, boundaries):
    """The tokens of a sentence or pair as (row, type, word index, sentence, text) with `None` for boundaries."""
    columns = []
    for number, sentence in enumerate([first] if second is None else [first, second]):
        tokens = [(row_of(word), number, index, number, word) for index, word in enumerate(sentence)]
        if boundaries:
            begin, end = ((row_of(name), number, None, None, None) for name in BOUNDARIES)
            tokens = [begin, *tokens, end]
        columns += tokens
    return columns


def found_columns(encoding, number, types, ids):
    return list(
        zip(
            map(tuple, ids),
            types,
            encoding.word_ids(number),
            encoding.sequence_ids(number),
            encoding.tokens(number),
            strict=True,
        )
    )


@given(pair=pairs, boundaries=st.booleans())
@quick
def test_a_sentence_or_pair(pair, boundaries):
    tokenizer = ElmoTokenizer(add_sentence_boundaries=boundaries)
    encoding = tokenizer(
        *pair,
        is_split_into_words=True,
        return_special_tokens_mask=True,
        return_offsets_mapping=True,
        return_length=True,
    )
    columns = expected_columns(*pair, boundaries)
    assert found_columns(encoding, 0, encoding.token_type_ids, encoding.input_ids) == columns
    assert encoding.attention_mask == [1] * len(columns)
    assert encoding["special_tokens_mask"] == [int(word is None) for _, _, word, _, _ in columns]
    assert encoding["offset_mapping"] == [(0, len(text or "")) for *_, text in columns]
    assert encoding["length"] in (len(columns), [len(columns)])
    assert tokenizer.num_special_tokens_to_add(pair=pair[1] is not None) == sum(
        word is None for _, _, word, _, _ in columns
    )


@given(
    pair=pairs,
    boundaries=st.booleans(),
    strategy=st.sampled_from(["longest_first", "only_first", "only_second"]),
    max_length=st.integers(4, 9),
    truncation_side=st.sampled_from(["left", "right"]),
)
@example(pair=([""], []), boundaries=True, strategy="longest_first", max_length=4, truncation_side="left")
@quick
def test_truncation_keeps_whole_words_from_one_end(pair, boundaries, strategy, max_length, truncation_side):
    first, second = pair
    tokenizer = ElmoTokenizer(add_sentence_boundaries=boundaries, truncation_side=truncation_side)
    special = 0 if not boundaries else 2 if second is None else 4
    excess = max(0, len(first) + len(second or []) + special - max_length)
    cut = {"only_first": first, "only_second": second or []}.get(strategy)
    encoding = tokenizer(first, second, is_split_into_words=True, truncation=strategy, max_length=max_length)

    def kept(number):
        of_sentence = zip(encoding.word_ids(), encoding.sequence_ids(), strict=True)
        return [word for word, sentence in of_sentence if sentence == number]

    for number, sentence in enumerate([first, second or []]):
        indices = kept(number)
        all_words = list(range(len(sentence)))
        assert indices == (
            all_words[: len(indices)] if truncation_side == "right" else all_words[-len(indices) :][: len(indices)]
        )
        tokens = [
            token for token, place in zip(encoding.tokens(), encoding.sequence_ids(), strict=True) if place == number
        ]
        assert tokens == [sentence[index] for index in indices]
        if cut is not None and cut is not sentence:
            assert indices == all_words
    if cut is None or len(cut) >= excess:
        removed = len(first) + len(second or []) - len(kept(0)) - len(kept(1))
        assert removed == excess
    if cut is None and excess and second is not None and len(kept(0)) < len(first) and len(kept(1)) < len(second):
        assert abs(len(kept(0)) - len(kept(1))) <= 1
    assert [tuple(row) for row in encoding.input_ids] == [
        row
        for row, *_ in expected_columns(
            [first[index] for index in kept(0)],
            None if second is None else [second[index] for index in kept(1)],
            boundaries,
        )
    ]


@given(
    batch=st.lists(pairs, min_size=1, max_size=4),
    has_pairs=st.booleans(),
    boundaries=st.booleans(),
    padding_side=st.sampled_from(["left", "right"]),
    multiple=st.sampled_from([None, 1, 4]),
    max_length=st.sampled_from([None, 16, 18]),
)
@quick
def test_a_batch_is_its_sentences_padded(batch, has_pairs, boundaries, padding_side, multiple, max_length):
    tokenizer = ElmoTokenizer(add_sentence_boundaries=boundaries)
    batch = [(first, (second or []) if has_pairs else None) for first, second in batch]
    first, second = [one for one, _ in batch], [other for _, other in batch] if has_pairs else None
    options = {"is_split_into_words": True, "return_special_tokens_mask": True, "return_offsets_mapping": True}
    encoding = tokenizer(
        first,
        second,
        padding=True if max_length is None else "max_length",
        max_length=max_length,
        padding_side=padding_side,
        pad_to_multiple_of=multiple,
        return_tensors="pt",
        **options,
    )
    expected = [expected_columns(*pair, boundaries) for pair in batch]
    longest = max(1, *map(len, expected))  # a batch of tensors has at least one token
    length = longest if max_length is None else max_length
    length = -(-length // (multiple or 1)) * (multiple or 1)
    assert encoding.input_ids.shape == (len(batch), length, 50)
    assert {name: (values.dtype, values.shape[:2]) for name, values in encoding.items()} == dict.fromkeys(
        ["input_ids", "token_type_ids", "attention_mask", "special_tokens_mask", "offset_mapping"],
        (torch.int64, (len(batch), length)),
    )
    for number, columns in enumerate(expected):
        missing = [(PADDING_ROW, 0, None, None, None)] * (length - len(columns))
        real = [1] * len(columns)
        columns = missing + columns if padding_side == "left" else columns + missing
        fill = [0] * len(missing)
        types, ids = encoding.token_type_ids[number].tolist(), encoding.input_ids[number].tolist()
        assert found_columns(encoding, number, types, ids) == columns
        assert encoding.attention_mask[number].tolist() == (fill + real if padding_side == "left" else real + fill)
        assert encoding["special_tokens_mask"][number].tolist() == [int(word is None) for _, _, word, _, _ in columns]
        offsets = encoding["offset_mapping"][number].tolist()
        assert offsets == [[0, len(text or "")] for *_, text in columns]


@given(batch=st.lists(sentences, min_size=1, max_size=4), boundaries=st.booleans(), left=st.booleans())
@quick
def test_padding_encodings_later_gives_the_same(batch, boundaries, left):
    tokenizer = ElmoTokenizer(add_sentence_boundaries=boundaries, padding_side="left" if left else "right")
    together = tokenizer(batch, is_split_into_words=True, padding=True, return_special_tokens_mask=True)
    singles = [tokenizer(one, is_split_into_words=True, return_special_tokens_mask=True) for one in batch]
    assert tokenizer.pad(singles).data == together.data
    assert tokenizer.pad([dict(single) for single in singles]).data == together.data
    by_name = {name: [single[name] for single in singles] for name in singles[0]}
    assert tokenizer.pad(by_name).data == together.data
    if all(map(len, together.input_ids)):
        tensors = [single.convert_to_tensors("pt") for single in singles if single.input_ids]
        whole = tokenizer([one for one in batch if boundaries or one], is_split_into_words=True, padding=True)
        padded = tokenizer.pad(tensors, return_tensors="np")
        assert padded["input_ids"].dtype == np.int64
        assert padded["input_ids"].tolist() == [list(map(list, rows)) for rows in whole.input_ids]
        assert padded["attention_mask"].tolist() == whole.attention_mask


@pytest.mark.parametrize("texts", [[""], ["", ""], ["", "a b"], [" ", "\n"]])
@pytest.mark.parametrize("padding", [True, "max_length"])
def test_empty_texts_keep_rank_and_dtype(texts, padding):
    max_length = 5 if padding == "max_length" else None
    encoding = ElmoTokenizer()(texts, padding=padding, max_length=max_length, return_tensors="pt")
    length = 5 if padding == "max_length" else max(1, *(len(text.split()) for text in texts))
    assert encoding.input_ids.shape == (len(texts), length, 50)
    assert encoding.attention_mask.shape == encoding.token_type_ids.shape == (len(texts), length)
    assert {values.dtype for values in encoding.values()} == {torch.int64}
    assert encoding.attention_mask.sum(1).tolist() == [len(text.split()) for text in texts]


def test_a_single_text_has_no_batch_dimension_but_in_tensors():
    tokenizer = ElmoTokenizer()
    assert tokenizer("a b").input_ids == [row_of("a"), row_of("b")] == tokenizer.encode("a b")
    assert tokenizer("a b", return_tensors="pt").input_ids.shape == (1, 2, 50)
    assert tokenizer("", return_tensors="np")["input_ids"].shape == (1, 1, 50)
    assert tokenizer(["a b"]).input_ids == [[row_of("a"), row_of("b")]]
    with pytest.raises(ValueError, match="padding"):
        tokenizer(["a b", "a"], return_tensors="pt")


def test_forms_of_a_pair():
    tokenizer = ElmoTokenizer()
    expected = tokenizer(["a b", "c"], ["d", "e f"])
    assert expected.token_type_ids == [[0, 0, 1], [0, 1, 1]]
    assert tokenizer([("a b", "d"), ("c", "e f")]).data == expected.data
    assert tokenizer([["a b", "d"], ["c", "e f"]]).data == expected.data
    split = {"is_split_into_words": True}
    assert tokenizer([["a", "b"], ["c"]], [["d"], ["e", "f"]], **split).data == expected.data
    assert tokenizer([(["a", "b"], ["d"]), (["c"], ["e", "f"])], **split).data == expected.data
    assert tokenizer("a b", "d").data == {name: values[0] for name, values in expected.items()}


def test_a_tuple_of_words_is_a_sentence_of_any_length():
    tokenizer = ElmoTokenizer()
    for sentence in (("a",), ("a", "b"), ("a", "b", "c")):
        encoding = tokenizer([sentence], is_split_into_words=True)
        assert encoding.tokens() == list(sentence)
        assert encoding.token_type_ids == [[0] * len(sentence)]


@pytest.mark.parametrize("boundaries", [False, True])
def test_a_pair_stays_a_pair_without_special_tokens(boundaries):
    tokenizer = ElmoTokenizer(add_sentence_boundaries=boundaries)
    encoding = tokenizer("a", "b c", add_special_tokens=False, return_special_tokens_mask=True)
    assert encoding.input_ids == [row_of(word) for word in "abc"]
    assert encoding["special_tokens_mask"] == [0, 0, 0]
    assert encoding.token_type_ids == [0, 1, 1]


def test_fields_can_be_left_out():
    tokenizer = ElmoTokenizer()
    assert set(tokenizer("a", return_attention_mask=False)) == {"input_ids", "token_type_ids"}
    assert set(tokenizer(["a", "b"], return_token_type_ids=False)) == {"input_ids", "attention_mask"}


def test_special_tokens_of_complete_ids():
    tokenizer = ElmoTokenizer(add_sentence_boundaries=True)
    ids = tokenizer(["a", "b c"], padding=True).input_ids[0]
    assert tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True) == [1, 0, 1, 1]


@pytest.mark.parametrize("stride", [0, 1])
@pytest.mark.parametrize("side", ["left", "right"])
def test_overflowing_words(side, stride):
    tokenizer = ElmoTokenizer(truncation_side=side)
    options = {"truncation": True, "return_overflowing_tokens": True, "stride": stride}
    encoding = tokenizer("a b c d e", max_length=3, **options)
    expected = "abcde"[: 2 + stride] if side == "left" else "abcde"[3 - stride :]
    assert list(map(tuple, encoding["overflowing_tokens"])) == [row_of(word) for word in expected]
    assert encoding["num_truncated_tokens"] == 2
    assert encoding.tokens() == list("cde" if side == "left" else "abc")
    tensors = tokenizer(["a b c d e", "f"], max_length=3, padding=True, return_tensors="pt", **options)
    assert tensors.input_ids.shape == (2, 3, 50)


def test_overflowing_words_of_a_batch_say_whose_they_are():
    encoding = ElmoTokenizer()(["a", "b c d", "e"], max_length=2, truncation=True, return_overflowing_tokens=True)
    assert [list(map(tuple, rows)) for rows in encoding["overflowing_tokens"]] == [[], [row_of("d")], []]
    assert encoding["num_truncated_tokens"] == [0, 1, 0]


def test_truncating_a_pair_is_no_cause_for_a_warning(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    ElmoTokenizer()(["a b c"] * 3, ["d e f"] * 3, truncation=True, max_length=4)
    assert [record.getMessage() for record in caplog.records] == []


def test_model_max_length_bounds_truncation():
    tokenizer = ElmoTokenizer(model_max_length=3)
    assert tokenizer("a b c d", truncation=True).tokens() == ["a", "b", "c"]
    assert len(ElmoTokenizer()("a " * 2000, truncation=True).input_ids) == 2000


@pytest.mark.parametrize("name", sorted(set(FAMILIES["elmo"].models.values())))
def test_every_model_takes_what_the_tokenizer_gives(name, tiny):
    model = getattr(hf_lineage, name)(tiny(vocab_size=9)).eval()
    inputs = ElmoTokenizer()(["a b", "c"], padding=True, return_tensors="pt")
    if name == "ElmoForMultipleChoice":
        inputs = {field: values[None] for field, values in inputs.items()}
    with torch.no_grad():
        assert all(torch.isfinite(values).all() for values in model(**inputs).values())


def labelled(tokenizer):
    rows = [["a", "New York", "c"], ["d"], ["e", ""]]
    data = Dataset.from_dict({"words": rows, "labels": [[0, 1, 2], [1], [2, 0]]})

    def encode(batch):
        return {**tokenizer(batch["words"], is_split_into_words=True), "labels": batch["labels"]}

    return data.map(encode, batched=True, remove_columns=["words"])


@pytest.mark.parametrize("side", ["left", "right"])
def test_collators_read_a_mapped_dataset(side):
    tokenizer = ElmoTokenizer(padding_side=side)
    data = labelled(tokenizer)
    assert [len(ids) for ids in data["input_ids"]] == [3, 1, 2]
    batch = DataCollatorForTokenClassification(tokenizer)(list(data))
    assert batch["input_ids"].shape == (3, 3, 50)
    assert {values.dtype for values in batch.values()} == {torch.int64}
    expected = [[0, 1, 2], [1, -100, -100], [2, 0, -100]]
    assert batch["labels"].tolist() == (expected if side == "right" else [[0, 1, 2], [-100, -100, 1], [-100, 2, 0]])
    assert torch.equal(batch["labels"] != -100, batch["attention_mask"].bool())
    assert tuple(batch["input_ids"][1, 0 if side == "right" else -1].tolist()) == row_of("d")
    for features in (list(data.remove_columns("labels")), list(data.remove_columns("labels").with_format("torch"))):
        padded = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=4)(features)
        assert padded["input_ids"].shape == (3, 4, 50)
        assert padded["attention_mask"].sum(1).tolist() == [3, 1, 2]


def test_length_grouped_sampler_counts_words():
    data = Dataset.from_dict({"text": ["a " * (1 + number % 7) for number in range(40)]})
    data = data.map(ElmoTokenizer(), input_columns="text", batched=True)
    sampler = LengthGroupedSampler(4, dataset=data, model_input_name="input_ids")
    assert sampler.lengths == [1 + number % 7 for number in range(40)]
    assert sorted(sampler) == list(range(40))


def test_fingerprints_are_of_the_settings_alone():
    tokenizer, same = ElmoTokenizer(), ElmoTokenizer()
    before = Hasher.hash(tokenizer)
    tokenizer(["Isn't it <S>", "x"], padding=True, return_tensors="pt")
    assert Hasher.hash(tokenizer) == before == Hasher.hash(same)
    assert Hasher.hash(ElmoTokenizer(text_split="whitespace")) != before
    assert Hasher.hash(ElmoTokenizer(max_characters_per_token=20)) != before


def test_spawned_workers_pad_the_same_way():
    tokenizer = ElmoTokenizer(padding_side="left")
    features = [dict(tokenizer(text)) for text in ("a b c", "d", "e f")]
    collator = DataCollatorWithPadding(tokenizer)
    (batch,) = DataLoader(features, 3, collate_fn=collator, num_workers=1, multiprocessing_context="spawn")
    expected = collator(features)
    assert set(batch) == set(expected)
    assert all(torch.equal(batch[name], expected[name]) for name in expected)
