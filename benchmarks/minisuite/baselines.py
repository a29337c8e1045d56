"""What a model reaches that sees neither the order of the words nor their context."""

from datasets import DatasetDict
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.glue.tasks import Task

# Words of any length, and punctuation marks, in lower case.
TOKEN_PATTERN = r"\w+|[^\w\s]"


def bag_of_words_accuracy(dataset: DatasetDict, task: Task) -> float:
    """Fit a logistic regression on word counts and return its accuracy.

    The counts of the two sentences of a pair stand side by side: the model is linear in both.

    Args:
        dataset: Has the task's training split and its validation splits.
        task: A classification task with a training split.

    Returns:
        The share of right labels, between 0 and 1, in all validation splits together.

    Raises:
        ValueError: If the task is a regression, has no training split, or the dataset lacks a split.
    """
    if task.is_regression or task.train_split is None:
        raise ValueError(f"a bag of words needs classes and a training split; task {task.name!r} has not both")
    missing = [split for split in (task.train_split, *task.validation_splits) if split not in dataset]
    if missing:
        raise ValueError(f"task {task.name!r} lacks the splits {missing}; given are {list(dataset)}")
    counts = make_column_transformer(
        *((CountVectorizer(token_pattern=TOKEN_PATTERN), column) for column in task.text_columns)
    )
    model = make_pipeline(counts, LogisticRegression(max_iter=1000))
    train = dataset[task.train_split].to_pandas()
    model.fit(train, train["label"])
    right = total = 0
    for split in task.validation_splits:
        validation = dataset[split].to_pandas()
        right += int((model.predict(validation) == validation["label"]).sum())
        total += len(validation)
    return right / total
