"""A tiny BERT, its tokenizer and tiny data in the layout of GLUE."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Value
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from benchmarks.glue.tasks import GLUE_TASKS

WORDS = {0: ["bad", "dull", "awful", "slow"], 1: ["good", "bright", "lovely", "quick"]}
FILLER = ["the", "film", "was", "a", "story", "and", "very", "it"]


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a BERT without a head and without dropout."""
    folder = tmp_path_factory.mktemp("tiny-bert")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: index for index, word in enumerate([*special, *FILLER, *WORDS[0], *WORDS[1]])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    return folder


def _sentiment_rows(count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    rows = []
    for index in range(count):
        label = rng.randrange(2)
        words = [rng.choice(FILLER) for _ in range(rng.randrange(2, 9))]
        words.insert(rng.randrange(len(words)), rng.choice(WORDS[label]))
        rows.append({"sentence": " ".join(words), "label": label, "idx": index})
    return rows


def _similarity_rows(count: int, seed: int) -> list[dict[str, Any]]:
    rows = _sentiment_rows(count, seed)
    return [
        {"sentence1": row["sentence"], "sentence2": row["sentence"][::-1], "label": 2.5 * row["label"] + index % 3 / 2}
        for index, row in enumerate(rows)
    ]


def _write_split(folder: Path, task_name: str, split: str, rows: list[dict[str, Any]]) -> Path:
    """Write rows as DIR/<task>/<split>.parquet with the features that the Hub's files have."""
    labels = GLUE_TASKS[task_name].labels
    features = Features(
        {
            **{column: Value("string") for column in GLUE_TASKS[task_name].text_columns},
            "label": ClassLabel(names=list(labels)) if labels else Value("float32"),
        }
    )
    path = folder / task_name / f"{split}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [{column: row[column] for column in features} for row in rows]
    Dataset.from_list(kept, features=features).to_parquet(path)
    return path


@pytest.fixture(scope="session")
def sentiment_rows() -> Callable[[int, int], list[dict[str, Any]]]:
    """Make so many rows of sst2 from a seed."""
    return _sentiment_rows


@pytest.fixture(scope="session")
def write_split() -> Callable[[Path, str, str, list[dict[str, Any]]], Path]:
    """Write rows as DIR/<task>/<split>.parquet."""
    return _write_split


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sst2 (96 + 13 rows) and stsb (9 + 5 rows) as parquet files."""
    folder = tmp_path_factory.mktemp("glue")
    _write_split(folder, "sst2", "train", _sentiment_rows(96, seed=0))
    _write_split(folder, "sst2", "validation", _sentiment_rows(13, seed=1))
    _write_split(folder, "stsb", "train", _similarity_rows(9, seed=2))
    _write_split(folder, "stsb", "validation", _similarity_rows(5, seed=3))
    return folder


@pytest.fixture
def command(model_dir: Path, data_dir: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Make a command line; keyword arguments add to it or replace what is in it."""

    def make(**options: Any) -> list[str]:
        defaults = {
            "model_name_or_path": model_dir,
            "task_name": "sst2",
            "data_dir": data_dir,
            "output_dir": tmp_path / "out",
            "max_length": 32,
            "seeds": 1,
            "num_train_epochs": 2,
            "per_device_train_batch_size": 8,
            "per_device_eval_batch_size": 4,
            "learning_rate": 1e-2,
        }
        return [part for name, value in {**defaults, **options}.items() for part in (f"--{name}", str(value))]

    return make
