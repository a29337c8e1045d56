"""Sentences with a tag for each word, what is measured on them, and what needs no model."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import seqeval.metrics
from datasets import ClassLabel, Dataset
from sklearn.metrics import accuracy_score

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class TaggingTask:
    """A task.

    Args:
        name: What the command line calls it.
        tag_column: The column with a tag for each of the `tokens`.
        metric: The metric that it is judged by; `"f1"` is that of entities, whose tags are in the BIO scheme.
    """

    name: str
    tag_column: str
    metric: str


TASKS = {task.name: task for task in (TaggingTask("pos", "upos", "accuracy"), TaggingTask("ner", "ner_tags", "f1"))}


@dataclass(frozen=True)
class TaggedSentences:
    """A split.

    Args:
        words: The words of each sentence.
        tags: The number of each word's tag.
    """

    words: list[list[str]]
    tags: list[list[int]]


@dataclass(frozen=True)
class TaggingData:
    """A data set.

    Args:
        tag_names: The tags.
        splits: Sentences of `train`, `validation` and `test`.
    """

    tag_names: list[str]
    splits: dict[str, TaggedSentences]

    def named(self, tags: Iterable[Iterable[int]]) -> list[list[str]]:
        """Return the names of tags, sentence by sentence."""
        return [[self.tag_names[tag] for tag in sentence] for sentence in tags]


def load_tagging_data(task: TaggingTask, data_dir: str | Path) -> TaggingData:
    """Read the three splits.

    Args:
        task: Which columns to read.
        data_dir: Has `train.parquet`, `validation.parquet` and `test.parquet`, or one folder that has them.

    Raises:
        ValueError: If the files are not there, or lack words or tags or their names.
    """
    folder = _folder_with_splits(Path(data_dir))
    splits, names = {}, None
    for split in SPLITS:
        path = folder / f"{split}.parquet"
        rows = Dataset.from_parquet(str(path), keep_in_memory=True)
        tags = rows.features.get(task.tag_column)
        label = getattr(tags, "feature", None)
        if "tokens" not in rows.features or not isinstance(label, ClassLabel):
            raise ValueError(
                f"{path} must have the columns tokens and {task.tag_column}, the latter a list of ClassLabel; it has "
                f"{rows.features}"
            )
        if names is not None and label.names != names:
            raise ValueError(f"{path} has other tags than the training split: {label.names}, not {names}")
        names = label.names
        splits[split] = _checked_sentences(rows, task.tag_column, path)
    assert names is not None
    return TaggingData(names, splits)


def _folder_with_splits(data_dir: Path) -> Path:
    candidates = [data_dir, *sorted(path for path in data_dir.glob("*") if path.is_dir())]
    found = [path for path in candidates if all((path / f"{split}.parquet").is_file() for split in SPLITS)]
    if len(found) != 1:
        raise ValueError(
            f"--data_dir must be a folder with {', '.join(f'{split}.parquet' for split in SPLITS)}, or have one such "
            f"folder in it; {data_dir} has {len(found)}"
        )
    return found[0]


def _checked_sentences(rows: Dataset, tag_column: str, path: Path) -> TaggedSentences:
    sentences = TaggedSentences(rows["tokens"][:], rows[tag_column][:])
    for number, (words, tags) in enumerate(zip(sentences.words, sentences.tags, strict=True)):
        if not words or len(words) != len(tags):
            raise ValueError(f"{path}, row {number}: {len(words)} words and {len(tags)} tags; a word must have a tag")
    if not sentences.words:
        raise ValueError(f"{path} has no sentences")
    return sentences


def tagging_metrics(task: TaggingTask, data: TaggingData, split: str, predicted: Sequence[Sequence[int]]) -> dict:
    """Return `accuracy` or, of entities, `f1`, `precision` and `recall`, between 0 and 1.

    Entities are compared as conlleval does, by seqeval in its default mode.

    Args:
        task: Says which.
        data: The data set.
        split: The split that the tags were predicted for.
        predicted: A tag for each word.
    """
    expected = data.splits[split].tags
    if task.metric == "accuracy":
        flat = [[tag for sentence in tags for tag in sentence] for tags in (expected, predicted)]
        return {"accuracy": float(accuracy_score(*flat))}
    names = data.named(expected), data.named(predicted)
    scores = {
        "f1": seqeval.metrics.f1_score,
        "precision": seqeval.metrics.precision_score,
        "recall": seqeval.metrics.recall_score,
    }
    return {name: float(score(*names, zero_division=0)) for name, score in scores.items()}


def baselines(task: TaggingTask, data: TaggingData) -> dict[str, dict[str, dict]]:
    """Return the metrics of two taggers without a model, for each split but training.

    `majority_tag` gives every word the most frequent tag; `most_frequent_tag_of_word` gives it the one that it has
    most often in training, and words that are not there the most frequent tag.
    """
    train = data.splits["train"]
    by_word: dict[str, Counter[int]] = defaultdict(Counter)
    for words, tags in zip(train.words, train.tags, strict=True):
        for word, tag in zip(words, tags, strict=True):
            by_word[word][tag] += 1
    majority = sum(by_word.values(), Counter()).most_common(1)[0][0]
    usual = {word: counts.most_common(1)[0][0] for word, counts in by_word.items()}
    found: dict[str, dict[str, dict]] = {"majority_tag": {}, "most_frequent_tag_of_word": {}}
    for name, table in zip(found, ({}, usual), strict=True):
        for split in SPLITS[1:]:
            predicted = [[table.get(word, majority) for word in words] for words in data.splits[split].words]
            found[name][split] = tagging_metrics(task, data, split, predicted)
    return found
