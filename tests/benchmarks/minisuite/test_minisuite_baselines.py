import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from benchmarks.glue.tasks import Task
from benchmarks.minisuite import MINISUITE_TASKS, load_task
from benchmarks.minisuite.baselines import bag_of_words_accuracy

TOY_TASK = Task("toy", ("sentence",), ("no", "yes"), ("accuracy",))


def rows(*examples, columns=("sentence",)):
    features = Features({column: Value("string") for column in columns} | {"label": ClassLabel(names=["no", "yes"])})
    *texts, labels = zip(*examples, strict=True)
    return Dataset.from_dict(dict(zip((*columns, "label"), (*texts, labels), strict=True)), features=features)


@pytest.mark.parametrize("seed", range(5))
def test_a_bag_of_words_solves_sentiment(seed):
    assert bag_of_words_accuracy(load_task("sentiment", seed), MINISUITE_TASKS["sentiment"]) >= 0.95


@pytest.mark.parametrize("name", ["word_order", "agreement", "word_sense"])
@pytest.mark.parametrize("seed", range(5))
def test_a_bag_of_words_is_at_chance_on_the_other_tasks(name, seed):
    assert 0.45 <= bag_of_words_accuracy(load_task(name, seed), MINISUITE_TASKS[name]) <= 0.55


def test_words_of_one_letter_and_punctuation_count():
    train = rows(*[("x .", 0), ("y .", 1), ("the end ?", 0), ("the end !", 1)] * 20)
    validation = rows(("y", 1), ("x", 0), ("end ! ", 1), ("end ?", 0))
    assert bag_of_words_accuracy(DatasetDict(train=train, validation=validation), TOY_TASK) == 1.0


def test_the_sentences_of_a_pair_are_told_apart():
    columns = ("premise", "hypothesis")
    task = Task("toy_pairs", columns, ("no", "yes"), ("accuracy",))
    train = rows(*[("cat", "dog", 0), ("dog", "cat", 1)] * 20, columns=columns)
    assert bag_of_words_accuracy(DatasetDict(train=train, validation=train), task) == 1.0


def test_validation_splits_count_by_their_sizes():
    task = Task("toy", ("sentence",), ("no", "yes"), ("accuracy",), validation_splits=("matched", "mismatched"))
    dataset = DatasetDict(
        train=rows(*[("good", 1), ("bad", 0)] * 20),
        matched=rows(("good", 1), ("bad", 0), ("good", 1)),
        mismatched=rows(("good", 0)),
    )
    assert bag_of_words_accuracy(dataset, task) == 0.75


def test_missing_split():
    with pytest.raises(ValueError, match=r"task 'toy' lacks the splits \['validation'\]; given are \['train'\]"):
        bag_of_words_accuracy(DatasetDict(train=rows(("good", 1), ("bad", 0))), TOY_TASK)


@pytest.mark.parametrize(
    "task",
    [Task("stsb", ("sentence",), (), ("pearson",)), Task("ax", ("sentence",), ("no", "yes"), (), train_split=None)],
)
def test_unsuitable_task(task):
    with pytest.raises(ValueError, match="needs classes and a training split"):
        bag_of_words_accuracy(DatasetDict(train=rows(("good", 1))), task)
