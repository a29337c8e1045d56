import copy
import pickle
from collections import Counter

import numpy as np
import pytest
import torch
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from text_tokenizers import ENGLISH, byte_level, unigram, word_level, wordpiece
from torch.utils.data import DataLoader

from hf_lineage.pretraining.sentence_pairs import sentence_pair_dataset
from hf_lineage.pretraining.span_masking import DataCollatorForSpanMasking
from hf_lineage.pretraining.whole_words import WholeWords

TOKENIZERS = {"unigram": unigram, "wordpiece": wordpiece, "byte_level": byte_level}


def features_of(tokenizer, count: int, length: int, seed: int = 0) -> list[dict]:
    """Pairs of random tokens of the vocabulary."""
    generator = np.random.default_rng(seed)
    special = set(tokenizer.all_special_ids)
    ordinary = [number for number in range(len(tokenizer)) if number not in special]
    features = []
    for number in range(count):
        first, second = (
            generator.choice(ordinary, size=size).tolist() for size in ((length - 3) // 2, (length - 2) // 2)
        )
        features.append(
            {
                "input_ids": [tokenizer.cls_token_id, *first, tokenizer.sep_token_id, *second, tokenizer.sep_token_id],
                "token_type_ids": [0] * (len(first) + 2) + [1] * (len(second) + 1),
                "example_id": number,
            }
        )
    return features


def in_batches(collator, features, size=50):
    return [collator(features[start : start + size]) for start in range(0, len(features), size)]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("max_ngram", [1, 3, 4])
def test_lengths_of_spans_follow_their_distribution(kind, max_ngram, monkeypatch):
    tokenizer = TOKENIZERS[kind]()
    collator = DataCollatorForSpanMasking(tokenizer, max_ngram=max_ngram, seed=1)
    spans, draw = [], collator._draw_spans
    monkeypatch.setattr(collator, "_draw_spans", lambda *given: spans.append(draw(*given)) or spans[-1])
    batches = in_batches(collator, features_of(tokenizer, 900, 128))
    assert sum(int(batch["attention_mask"].sum()) for batch in batches) > 100_000
    found = [span for row in spans for span in row]
    for remaining in range(1, max_ngram + 1):
        drawn = np.array([span.drawn for span in found if span.remaining == remaining])
        assert len(drawn) > 30
        weights = 1 / np.arange(1, remaining + 1)
        for length, probability in enumerate(weights / weights.sum(), start=1):
            deviation = (drawn == length).mean() - probability
            assert abs(deviation) <= 3 * np.sqrt(probability * (1 - probability) / len(drawn)), (remaining, length)
    # all but the last spans of a sequence, which may have to fit the budget, are as long as they were drawn
    assert all(span.kept <= span.drawn for span in found)
    assert sum(span.kept < span.drawn for span in found) <= 3 * len(spans)


def test_redrawing_after_an_overlap_would_be_seen(monkeypatch):
    """The original draws a length for each start and gives up both where they overlap: long spans become rare."""
    tokenizer = word_level(500)
    collator = DataCollatorForSpanMasking(tokenizer, masked_fraction=0.3)
    spans, draw = [], collator._draw_spans

    def original(words, budget, generator):
        cumulative = np.cumsum([6 / 11, 3 / 11, 2 / 11])
        taken: set[int] = set()
        for start in generator.permutation(len(words.starts)).tolist():
            remaining = int(words.remaining[start])
            length = int(np.searchsorted(cumulative, generator.random() * cumulative[remaining - 1])) + 1
            span = set(range(start, start + length))
            if len(taken) + length <= budget and not span & taken:
                taken |= span
                if remaining == 3:
                    lengths.append(length)
        return []

    features = features_of(tokenizer, 900, 128)
    lengths: list[int] = []
    monkeypatch.setattr(collator, "_draw_spans", original)
    in_batches(collator, features)
    assert abs(np.mean(np.array(lengths) == 3) - 2 / 11) > 6 * np.sqrt(2 / 11 * 9 / 11 / len(lengths))
    monkeypatch.setattr(collator, "_draw_spans", lambda *given: spans.extend(draw(*given)) or [])
    in_batches(collator, features)
    lengths = [span.drawn for span in spans if span.remaining == 3]
    assert abs(np.mean(np.array(lengths) == 3) - 2 / 11) < 3 * np.sqrt(2 / 11 * 9 / 11 / len(lengths))


def test_tokens_to_predict_become_masks_random_tokens_or_stay():
    tokenizer = word_level(500)
    features = features_of(tokenizer, 900, 128)
    original = np.array([feature["input_ids"] for feature in features])
    for shares in ((0.8, 0.1), (0.5, 0.5), (0.0, 0.3), (1.0, 0.0)):
        collator = DataCollatorForSpanMasking(tokenizer, mask_replace_prob=shares[0], random_replace_prob=shares[1])
        batches = in_batches(collator, features)
        inputs, labels = (
            np.concatenate([batch[name].numpy() for batch in batches]) for name in ("input_ids", "labels")
        )
        predicted = labels != -100
        count = predicted.sum()
        assert original.size > 100_000
        masked = (inputs == tokenizer.mask_token_id)[predicted].sum()
        stayed = (inputs == original)[predicted].sum()
        expected_stayed = 1 - sum(shares) + shares[1] / 500  # a random token may be the same one
        for found, probability in ((masked, shares[0]), (stayed, expected_stayed)):
            assert abs(found / count - probability) <= 3 * np.sqrt(probability * (1 - probability) / count)
        if shares[1]:
            random = inputs[predicted & (inputs != original) & (inputs != tokenizer.mask_token_id)]
            assert stats.chisquare(np.bincount(random, minlength=505)[5:]).pvalue > 1e-3


def test_the_budget_scales_with_the_length():
    tokenizer = word_level(500)
    for length in (8, 128, 512):
        features = features_of(tokenizer, 20, length)
        count = (DataCollatorForSpanMasking(tokenizer)(features)["labels"] != -100).sum(dim=1)
        assert count.tolist() == [max(1, round(0.15 * length))] * 20
        capped = (DataCollatorForSpanMasking(tokenizer, max_predictions=20)(features)["labels"] != -100).sum(dim=1)
        assert capped.tolist() == [min(20, max(1, round(0.15 * length)))] * 20


def test_words_are_drawn_evenly():
    tokenizer = word_level(500)
    collator = DataCollatorForSpanMasking(tokenizer, max_ngram=1)
    batches = in_batches(collator, features_of(tokenizer, 2000, 43))
    counts = sum((batch["labels"] != -100).sum(dim=0) for batch in batches).numpy()
    words = np.delete(counts, [0, 21, 42])
    assert counts.sum() == words.sum()
    assert stats.chisquare(words).pvalue > 1e-3


ids = st.integers(0, 2**63 - 1)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), kind=st.sampled_from(list(TOKENIZERS)), side=st.sampled_from(["left", "right"]))
def test_what_is_masked(data, kind, side):
    tokenizer = copy.deepcopy(TOKENIZERS[kind]())
    tokenizer.padding_side = side
    collator = DataCollatorForSpanMasking(
        tokenizer,
        masked_fraction=data.draw(st.sampled_from([0.15, 0.5, 1.0])),
        max_ngram=data.draw(st.integers(1, 4)),
        max_predictions=data.draw(st.sampled_from([None, 1, 5])),
        seed=data.draw(st.integers(0, 2**40)),
        pad_to_multiple_of=data.draw(st.sampled_from([None, 8])),
    )
    tokens = st.lists(st.integers(0, len(tokenizer) - 1), min_size=1, max_size=30)
    features = [{"input_ids": row} for row in data.draw(st.lists(tokens, min_size=1, max_size=4))]
    for feature in features:
        feature["example_id"] = data.draw(ids)
    batch = collator(features)
    width = batch["input_ids"].shape[1]
    special, added = set(tokenizer.all_special_ids), set(tokenizer.added_tokens_decoder)
    words = WholeWords(tokenizer)
    for row, feature in enumerate(features):
        original, length = np.array(feature["input_ids"]), len(feature["input_ids"])
        place = slice(0, length) if side == "right" else slice(width - length, width)
        assert batch["attention_mask"][row].sum() == length
        assert (batch["attention_mask"][row, place] == 1).all()
        inputs, labels = batch["input_ids"][row, place].numpy(), batch["labels"][row, place].numpy()
        predicted = labels != -100
        assert (batch["labels"][row] != -100).sum() == predicted.sum()
        assert (np.where(predicted, labels, inputs) == original).all()
        assert not special & set(original[predicted].tolist())
        changed = predicted & (inputs != original) & (inputs != tokenizer.mask_token_id)
        assert not (special | added) & set(inputs[changed].tolist())
        limit = max(1, round(length * collator.masked_fraction))
        assert predicted.sum() <= min(limit, collator.max_predictions or limit)
        inside = ~np.isin(original, list(special))
        starts = words.starts(original, inside)
        for word in np.split(np.arange(length), np.flatnonzero(starts | ~inside)):
            assert len(set(predicted[word].tolist())) <= 1
        alone = collator([feature])  # neither the batch nor the place in it matter
        assert (alone["input_ids"][0, : length if side == "right" else None][-length:].numpy() == inputs).all()


def test_spans_do_not_reach_over_separators():
    tokenizer = word_level(500)
    collator = DataCollatorForSpanMasking(tokenizer, masked_fraction=1.0, max_ngram=8)
    spans, draw = [], collator._draw_spans
    collator._draw_spans = lambda *given: spans.append(draw(*given)) or spans[-1]
    features = features_of(tokenizer, 50, 20)
    collator(features)
    for feature, row in zip(features, spans, strict=True):
        assert sum(span.end - span.start for span in row) > 8
        for span in row:
            assert not {2, 3} & set(feature["input_ids"][span.start : span.end])


def test_real_text_is_masked_by_words():
    for build in TOKENIZERS.values():
        tokenizer = build()
        collator = DataCollatorForSpanMasking(tokenizer, max_ngram=2)
        encoded = [dict(tokenizer(text, ENGLISH[0])) for text in ENGLISH]
        batch = collator(encoded)
        assert ((batch["labels"] != -100).sum(dim=1) > 0).all()


def test_special_tokens_mask_and_columns():
    tokenizer = word_level(100)
    features = [
        {
            "input_ids": torch.tensor([2, 10, 11, 12, 3]),
            "special_tokens_mask": torch.tensor([1, 0, 1, 1, 1]),
            "attention_mask": torch.tensor([1, 1, 1, 1, 1]),
            "next_sentence_label": label,
            "weight": torch.tensor(0.5),
            "example_id": torch.tensor(7),
        }
        for label in (0, 1)
    ]
    collator = DataCollatorForSpanMasking(tokenizer, masked_fraction=1.0)
    batch = collator(features)
    assert set(batch) == {"input_ids", "attention_mask", "labels", "next_sentence_label", "weight"}
    assert batch["labels"].tolist() == [[-100, 10, -100, -100, -100]] * 2
    assert batch["next_sentence_label"].tolist() == [0, 1]
    assert {name: batch[name].dtype for name in batch if name != "weight"} == dict.fromkeys(
        ("input_ids", "attention_mask", "labels", "next_sentence_label"), torch.int64
    )


def test_the_draw_depends_on_seed_epoch_and_example():
    tokenizer = word_level(500)
    feature = features_of(tokenizer, 1, 128)[0]

    def masked(seed=0, **changes):
        labels = DataCollatorForSpanMasking(tokenizer, seed=seed)([{**feature, **changes}])["labels"]
        return tuple(np.flatnonzero(labels != -100))

    assert masked() == masked() == masked(epoch_seed=0)
    assert (
        len({masked(), masked(seed=1), masked(epoch_seed=1), masked(example_id=1), masked(example_id=2**63 - 1)}) == 5
    )


def test_examples_without_an_id_are_drawn_for_anew():
    tokenizer = word_level(500)
    features = features_of(tokenizer, 8, 64)
    for feature in features:
        del feature["example_id"]
    one, other = DataCollatorForSpanMasking(tokenizer), DataCollatorForSpanMasking(tokenizer)
    first, second = one(features)["labels"], one(features)["labels"]
    assert not torch.equal(first, second)
    other = pickle.loads(pickle.dumps(other))
    assert torch.equal(other(features)["labels"], first)
    assert torch.equal(other(features)["labels"], second)

    loader = DataLoader(features * 2, batch_size=8, collate_fn=DataCollatorForSpanMasking(tokenizer), num_workers=2)
    torch.manual_seed(1)
    epochs = [[batch["labels"] for batch in loader] for _ in range(2)]
    torch.manual_seed(1)
    again = [batch["labels"] for batch in loader]
    assert len({tuple(labels.flatten().tolist()) for epoch in epochs for labels in epoch}) == 4
    assert all(torch.equal(one, other) for one, other in zip(epochs[0], again, strict=True))


def test_epochs_mask_anew_through_a_loader_with_workers():
    tokenizer = word_level(500)
    generator = np.random.default_rng(0)
    lines = [" ".join(f"w{word}" for word in generator.integers(500, size=9)) for _ in range(600)]
    rows = ["\n".join(lines[start : start + 12]) for start in range(0, 600, 12)]
    dataset = sentence_pair_dataset(
        Dataset.from_dict({"text": rows}), tokenizer, objective="none", max_length=200, block_size=1000
    )
    collator = DataCollatorForSpanMasking(tokenizer)

    def masks(loader, epoch):
        dataset.set_epoch(epoch)
        found = Counter()
        for batch in loader:
            original = torch.where(batch["labels"] == -100, batch["input_ids"], batch["labels"])
            for row, labels, mask in zip(original, batch["labels"], batch["attention_mask"], strict=True):
                found[tuple(row[mask == 1].tolist()), tuple(labels[mask == 1].tolist())] += 1
        return found

    alone = [masks(DataLoader(dataset, 4, collate_fn=collator), epoch) for epoch in range(2)]
    assert not alone[0] & alone[1]
    assert {original for original, _ in alone[0]} & {original for original, _ in alone[1]}
    for persistent in (False, True):
        loader = DataLoader(dataset, 4, collate_fn=collator, num_workers=2, persistent_workers=persistent)
        assert [masks(loader, epoch) for epoch in range(2)] == alone


def test_wrong_arguments():
    tokenizer = word_level(10)
    for options, message in [
        ({"masked_fraction": 0}, "masked_fraction"),
        ({"masked_fraction": 1.1}, "masked_fraction"),
        ({"max_ngram": 0}, "max_ngram must be at least 1, got 0"),
        ({"max_predictions": 0}, "max_predictions"),
        ({"pad_to_multiple_of": 0}, "pad_to_multiple_of"),
        ({"mask_replace_prob": 0.9, "random_replace_prob": 0.2}, "at most 1 together"),
        ({"mask_replace_prob": -0.1}, "at least 0"),
        ({"seed": -1}, "seed"),
    ]:
        with pytest.raises(ValueError, match=message):
            DataCollatorForSpanMasking(tokenizer, **options)
    for name in ("mask_token", "pad_token"):
        without = copy.deepcopy(tokenizer)
        setattr(without, name, None)
        with pytest.raises(ValueError, match=f"must have a {name}"):
            DataCollatorForSpanMasking(without)


def test_wrong_examples():
    collator = DataCollatorForSpanMasking(word_level(10))
    row = [2, 6, 7, 3]
    for features, message in [
        ([], "must have input_ids"),
        ([{"labels": 1}], "must have input_ids"),
        ([{"input_ids": [2, 15, 3]}], "below 15"),
        ([{"input_ids": [2, -1, 3]}], "below 15"),
        ([{"input_ids": row, "token_type_ids": [0] * 4}, {"input_ids": row}], "as the first"),
        ([{"input_ids": row, "labels": row}], "got labels"),
        ([{"input_ids": row, "labels": 1}], "got labels"),
        ([{"input_ids": row, "name": "x"}], "got name"),
        ([{"input_ids": row, "label": 1}, {"input_ids": row}], "got label"),
    ]:
        with pytest.raises(ValueError, match=message):
            collator(features)
