import hashlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.minisuite import MINISUITE_TASKS, load_task
from benchmarks.minisuite.generation import GENERATORS

MIRRORED_TASKS = ("word_order", "agreement", "word_sense")

# SHA-256 of what seed 0 gives. It changes only when a task's text is changed on purpose: results change with it.
FINGERPRINTS = {
    "sentiment": "866ed2f5615007c21600cffff2c311a1602e3577d6fc5c8d65ac2386acd94097",
    "word_order": "67eb578e054d47109e54769cc4904f98b5060005c3818ebddc9b90be18969062",
    "agreement": "93f6ad61fbaaf38a710ea2e88344f88250f29b9b304b557a4c47b3ea41836c3d",
    "word_sense": "eb5e7f83b975b5d6c6f6e538eb259f15da3474047bc54bf77f33aa60ef7410d5",
}

names = st.sampled_from(sorted(MINISUITE_TASKS))
seeds = st.integers(0, 2**64)
few = settings(max_examples=8, deadline=None)


def texts_of(task, rows):
    columns = rows.to_dict()
    return list(zip(*(columns[column] for column in task.text_columns), strict=True))


def fingerprint(dataset):
    digest = hashlib.sha256()
    for split, rows in dataset.items():
        for row in zip(*rows.to_dict().values(), strict=True):
            digest.update(repr((split, *row)).encode())
    return digest.hexdigest()


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_the_text_of_a_seed_never_changes(name):
    assert fingerprint(load_task(name)) == FINGERPRINTS[name]


def test_each_task_has_a_generator():
    assert list(GENERATORS) == list(MINISUITE_TASKS)
    assert all(task.name == name for name, task in MINISUITE_TASKS.items())


@few
@given(names, seeds)
def test_same_seed_same_dataset(name, seed):
    assert fingerprint(load_task(name, seed)) == fingerprint(load_task(name, seed))


@pytest.mark.parametrize("name", MINISUITE_TASKS)
def test_another_seed_gives_other_texts(name):
    task = MINISUITE_TASKS[name]
    first, second = (set(texts_of(task, load_task(name, seed)["train"])) for seed in (0, 1))
    assert len(first & second) < len(first)


@few
@given(names, seeds)
def test_columns_and_balance(name, seed):
    task = MINISUITE_TASKS[name]
    dataset = load_task(name, seed)
    assert list(dataset) == ["train", "validation"]
    for rows, (smallest, largest) in zip(dataset.values(), ((1500, 3000), (400, 600)), strict=True):
        assert smallest <= len(rows) <= largest
        assert rows.column_names == [*task.text_columns, "label", "idx"]
        assert rows.features["label"].names == list(task.labels)
        assert rows.features["idx"].dtype == "int32"
        assert rows["idx"] == list(range(len(rows)))
        assert Counter(rows["label"]) == dict.fromkeys(range(len(task.labels)), len(rows) // len(task.labels))


@few
@given(names, seeds)
def test_no_text_is_in_both_splits_and_no_example_twice(name, seed):
    task = MINISUITE_TASKS[name]
    train, validation = (texts_of(task, rows) for rows in load_task(name, seed).values())
    assert len(set(train)) == len(train)
    assert len(set(validation)) == len(validation)
    assert not {text for texts in train for text in texts} & {text for texts in validation for text in texts}


@few
@given(names, seeds)
def test_validation_has_only_words_of_training(name, seed):
    task = MINISUITE_TASKS[name]
    train, validation = (
        {word.lower() for texts in texts_of(task, rows) for text in texts for word in text.split()}
        for rows in load_task(name, seed).values()
    )
    assert validation <= train


@few
@given(st.sampled_from(MIRRORED_TASKS), seeds)
def test_each_bag_of_words_has_both_labels_equally_often(name, seed):
    task = MINISUITE_TASKS[name]
    for rows in load_task(name, seed).values():
        surplus: Counter = Counter()
        for texts, label in zip(texts_of(task, rows), rows["label"], strict=True):
            surplus[tuple(tuple(sorted(text.split())) for text in texts)] += 1 if label else -1
        assert not any(surplus.values())


@few
@given(names, seeds)
def test_texts_are_tokenized_sentences(name, seed):
    task = MINISUITE_TASKS[name]
    for rows in load_task(name, seed).values():
        for texts in texts_of(task, rows):
            for text in texts:
                words = text.split(" ")
                assert words[-1] == "."
                assert all(word.isalpha() or word in {",", "."} for word in words)
                assert text[0].isupper()
                assert 5 <= sum(word.isalpha() for word in words) <= 15


def test_unknown_task():
    with pytest.raises(ValueError, match=r"unknown task 'sst2': choose one of sentiment, word_order, agreement"):
        load_task("sst2")


@pytest.mark.parametrize("seed", [-1, 1.0, "0", None, True])
def test_bad_seed(seed):
    with pytest.raises(ValueError, match="`seed` has to be an integer of at least 0, got"):
        load_task("sentiment", seed)
