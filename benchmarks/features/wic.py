"""Word in Context (Pilehvar and Camacho-Collados 2019): does a word have the same sense in two sentences?

What a frozen biLM's vectors of the two occurrences tell: by their cosine, with a threshold, and by a logistic
regression. A vector that does not depend on the context knows the two forms of the word and nothing else.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset, Value
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.features.language_model import LayerCache
from hf_lineage import ElmoTokenizer

HELD_OUT_SHARE = 0.2
INVERSE_REGULARIZATION = (1e-4, 1e-3, 1e-2, 1e-1)
FOLDS = 3
_COLUMNS = {"word": "string", "sentence1": "string", "sentence2": "string"} | dict.fromkeys(
    ("start1", "end1", "start2", "end2"), "int32"
)
# Kind of vectors -> `(pairs, 2, hidden_size)` float32, those of the two occurrences
Vectors = dict[str, np.ndarray]
_VALIDATION_FILES = ("validation.parquet", "validation_subset.parquet")


@dataclass(frozen=True)
class WordPairs:
    """Pairs of sentences with a word that occurs in both.

    Args:
        lemmas: The word of each pair.
        sentences: The words of all sentences, the two of a pair one after the other.
        targets: Which words of each sentence are the word, one or several in a row.
        labels: `(pairs,)` bool, whether the sense is the same.
        dropped: Rows of the file whose word could not be found.
    """

    lemmas: np.ndarray
    sentences: list[list[str]]
    targets: list[list[int]]
    labels: np.ndarray
    dropped: int


def load_word_pairs(data_dir: str | Path) -> tuple[WordPairs, WordPairs]:
    """Read the pairs for training and validation.

    Args:
        data_dir: Has `train.parquet` and `validation.parquet` or `validation_subset.parquet`, with the columns of
            SuperGLUE's WiC; `start1` and the like are -1 where it is not known where the word stands.

    Raises:
        ValueError: If a file or a column is not there, or no row says where its word stands.
    """
    folder = Path(data_dir)
    train = folder / "train.parquet"
    validation = next((folder / name for name in _VALIDATION_FILES if (folder / name).is_file()), None)
    if not train.is_file() or validation is None:
        raise ValueError(f"--data_dir must have train.parquet and one of {', '.join(_VALIDATION_FILES)}: {folder}")
    return _read_pairs(train), _read_pairs(validation)


def _read_pairs(path: Path) -> WordPairs:
    rows = Dataset.from_parquet(str(path), keep_in_memory=True)
    wrong = [name for name, dtype in _COLUMNS.items() if rows.features.get(name) != Value(dtype)]
    if wrong or "label" not in rows.features:
        raise ValueError(f"{path} must have the columns label and {_COLUMNS}; it has {rows.features}")
    tokenizer = ElmoTokenizer()  # words are words, whatever the model's own tokenizer makes of text
    lemmas, sentences, targets, labels, dropped = [], [], [], [], 0
    for row in rows:
        pair = [_occurrence(tokenizer, row[f"sentence{n}"], row[f"start{n}"], row[f"end{n}"]) for n in (1, 2)]
        if not all(places for _, places in pair):
            dropped += 1
            continue
        lemmas.append(row["word"])
        labels.append(bool(row["label"]))
        for words, places in pair:
            sentences.append(words)
            targets.append(places)
    if not lemmas:
        raise ValueError(f"{path} has no row that says where its word stands")
    return WordPairs(np.array(lemmas), sentences, targets, np.array(labels), dropped)


def _occurrence(tokenizer: ElmoTokenizer, text: str, start: int, end: int) -> tuple[list[str], list[int]]:
    """Return the words of a text and which of them the characters from `start` up to `end` belong to."""
    if start < 0:
        return [], []
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    places = [place for place, (first, last) in enumerate(offsets) if first < end and last > start]
    return [text[first:last] for first, last in offsets], places


def word_vectors(cache: LayerCache, pairs: WordPairs) -> Vectors:
    """Return the vectors of the two occurrences for each layer and their mean; of several words, their mean."""
    found = torch.stack(
        [cache.sentence(number)[places].mean(0) for number, places in enumerate(pairs.targets)]
    ).numpy()
    layers = found.reshape(-1, 2, *found.shape[1:])
    names = ["context-free", *(f"layer {number}" for number in range(1, layers.shape[2]))]
    vectors = {name: layers[:, :, number] for number, name in enumerate(names)}
    return {**vectors, "mean of layers": layers.mean(2)}


def measure(
    train: WordPairs,
    train_vectors: Vectors,
    validation: WordPairs,
    validation_vectors: Vectors,
    seed: int,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Fit both classifiers and measure them where they were not fitted.

    The training pairs are parted by word: a share is held out, and which words these are is the seed's choice.

    Args:
        train: Pairs to fit on and to hold out.
        train_vectors: Their vectors.
        validation: Other pairs.
        validation_vectors: Their vectors.
        seed: Chooses the words.

    Returns:
        For each kind of vectors `cosine` and `logistic_regression`, each with the accuracies `held_out_words` and
        `validation`, and what was chosen on the pairs that it was fitted on: `threshold` or `C`.
    """
    split = GroupShuffleSplit(n_splits=1, test_size=HELD_OUT_SHARE, random_state=seed)
    fitted, held_out = next(split.split(train.labels, groups=train.lemmas))
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, vectors in train_vectors.items():
        others = validation_vectors[name]
        cosines = cosine(vectors)
        threshold = best_threshold(cosines[fitted], train.labels[fitted])
        by_cosine = {
            "held_out_words": _accuracy(cosines[held_out] >= threshold, train.labels[held_out]),
            "validation": _accuracy(cosine(others) >= threshold, validation.labels),
            "threshold": threshold,
        }
        features = pair_features(vectors)
        search = _regression(features[fitted], train.labels[fitted], train.lemmas[fitted])
        by_regression = {
            "held_out_words": _accuracy(search.predict(features[held_out]), train.labels[held_out]),
            "validation": _accuracy(search.predict(pair_features(others)), validation.labels),
            "C": search.best_params_["logisticregression__C"],
        }
        found[name] = {"cosine": by_cosine, "logistic_regression": by_regression}
    return found


def cosine(vectors: np.ndarray) -> np.ndarray:
    """Return the cosines of `(pairs, 2, hidden_size)` vectors."""
    norms = np.linalg.norm(vectors, axis=-1)
    return (vectors[:, 0] * vectors[:, 1]).sum(-1) / np.maximum(norms.prod(-1), np.finfo(np.float32).tiny)


def best_threshold(cosines: np.ndarray, labels: np.ndarray) -> float:
    """Return the value from which on pairs count as of the same sense, so that most of these labels are right."""
    order = np.argsort(cosines, kind="stable")
    ascending, is_same = cosines[order], labels[order]
    # right if the threshold stands before each pair: the different ones below it and the same ones from it on
    right = np.concatenate([[0], np.cumsum(~is_same)]) + np.concatenate([np.cumsum(is_same[::-1])[::-1], [0]])
    edges = np.concatenate([[-np.inf], (ascending[1:] + ascending[:-1]) / 2, [np.inf]])
    possible = np.concatenate([[True], ascending[1:] > ascending[:-1], [True]])  # equal cosines cannot be parted
    best = edges[np.argmax(np.where(possible, right, -1))]
    return float(np.clip(best, -2, 2))  # JSON has no infinity, and no cosine is there


def pair_features(vectors: np.ndarray) -> np.ndarray:
    """Return `[u; v; |u - v|; u * v]`, `(pairs, 4 * hidden_size)`."""
    u, v = vectors[:, 0], vectors[:, 1]
    return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def _regression(features: np.ndarray, labels: np.ndarray, lemmas: np.ndarray) -> GridSearchCV:
    """Fit a logistic regression whose strength of regularization is chosen on words that it was not fitted on."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    grid = {"logisticregression__C": list(INVERSE_REGULARIZATION)}
    return GridSearchCV(model, grid, cv=GroupKFold(FOLDS)).fit(features, labels, groups=lemmas)


def _accuracy(predicted: np.ndarray, labels: np.ndarray) -> float:
    return float((predicted == labels).mean())
