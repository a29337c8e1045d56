import random
from itertools import count, cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.glue.tasks import Task
from benchmarks.minisuite import splits
from benchmarks.minisuite.splits import Example, build_dataset, draw_groups, pick, sentence, shuffled

SEEDS = st.integers(0, 2**64)


@given(SEEDS, st.lists(st.integers(), min_size=1))
def test_pick_returns_an_item(seed, items):
    assert pick(items, random.Random(seed)) in items


def test_pick_reaches_every_item():
    rng = random.Random(0)
    assert {pick("abc", rng) for _ in range(100)} == {"a", "b", "c"}


@given(SEEDS, st.lists(st.integers()))
def test_shuffled_is_a_permutation(seed, items):
    assert sorted(shuffled(items, random.Random(seed))) == sorted(items)


def test_the_order_for_a_seed_never_changes():
    assert shuffled("abcdef", random.Random(3)) == list("facbde")
    rng = random.Random(3)
    assert [pick("abcdef", rng) for _ in range(6)] == list("bdcdda")


def test_sentence_tidies_up():
    assert sentence("the  dog saw Anna .") == "The dog saw Anna ."
    assert sentence("") == ""


def test_groups_with_known_texts_are_drawn_again():
    texts = iter(["a", "b", "a", "c", "d"])
    seen = {"c"}
    groups = draw_groups(lambda: (Example((next(texts),), "x"),), 3, seen)
    assert [group[0].texts for group in groups] == [("a",), ("b",), ("d",)]
    assert seen == {"a", "b", "c", "d"}


def test_a_text_is_not_paired_with_itself():
    pairs = iter([("a", "a"), ("a", "b")])
    assert draw_groups(lambda: (Example(next(pairs), "x"),), 1, set()) == [(Example(("a", "b"), "x"),)]


def test_a_used_up_vocabulary_is_reported(monkeypatch):
    monkeypatch.setattr(splits, "MAX_REPEATS", 50)
    texts = cycle("ab")
    with pytest.raises(RuntimeError, match="only 2 of 3 groups"):
        draw_groups(lambda: (Example((next(texts),), "x"),), 3, set())


def test_repeats_count_in_a_row(monkeypatch):
    monkeypatch.setattr(splits, "MAX_REPEATS", 3)
    numbers = count()
    groups = draw_groups(lambda: (Example((str(next(numbers) // 3),), "x"),), 20, set())
    assert len(groups) == 20


def test_dataset_has_the_columns_of_glue():
    task = Task("toy", ("left", "right"), ("no", "yes"), ("accuracy",))
    groups = [(Example((f"a{i}", f"b{i}"), "yes"), Example((f"c{i}", f"d{i}"), "no")) for i in range(10)]
    dataset = build_dataset(task, {"train": groups[:8], "validation": groups[8:]}, random.Random(0))
    assert {split: len(rows) for split, rows in dataset.items()} == {"train": 16, "validation": 4}
    train = dataset["train"]
    assert train.column_names == ["left", "right", "label", "idx"]
    assert train.features["label"].names == ["no", "yes"]
    assert train.features["idx"].dtype == "int32"
    assert train["idx"] == list(range(16))
    expected = {(*example.texts, example.label) for group in groups[:8] for example in group}
    assert {(row["left"], row["right"], task.labels[row["label"]]) for row in train} == expected
    assert train["left"] != [example.texts[0] for group in groups[:8] for example in group]
