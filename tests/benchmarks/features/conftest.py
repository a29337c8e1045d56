from pathlib import Path

import pytest
from datasets import ClassLabel, Dataset, Features, Sequence, Value

from hf_lineage import ElmoConfig, ElmoForPreTraining, ElmoTokenizer

WORDS = {"DET": ("the", "a"), "NOUN": ("cat", "dog", "sun"), "VERB": ("sat", "ran", "shone")}
PLACES = ("Rome", "Oslo", "Kyoto")


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> str:
    """A tiny biLM with its softmax, as pretraining leaves it."""
    folder = tmp_path_factory.mktemp("elmo")
    config = ElmoConfig(
        vocab_size=5,
        char_embedding_size=4,
        char_cnn_filters=[[1, 8], [2, 8], [3, 8]],
        num_highway_layers=1,
        hidden_size=16,
        lstm_hidden_size=12,
        stateful=True,
        scalar_mix_layer_norm="bilm",
    )
    ElmoForPreTraining(config).save_pretrained(folder)
    ElmoTokenizer(text_split="whitespace").save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def pos_folder(tmp_path_factory) -> Path:
    """Sentences whose words have one tag each, in a folder inside the one that is given."""
    folder = tmp_path_factory.mktemp("pos") / "grammar"
    names = [*WORDS, "X"]
    for split, count in (("train", 48), ("validation", 8), ("test", 8)):
        tokens, tags = [], []
        for number in range(count):
            length = 1 + number % 3
            sentence = [WORDS[tag][(number + place) % len(WORDS[tag])] for place in range(length) for tag in WORDS]
            tokens.append(sentence)
            tags.append([names.index(tag) for _ in range(length) for tag in WORDS])
        if split == "test":  # a word that is not in training
            tokens[0][1], tags[0][1] = "unseen", names.index("X")
        write(folder / f"{split}.parquet", tokens, upos=tags, names=names)
    return folder.parent


@pytest.fixture(scope="session")
def ner_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ner")
    names = ["O", "B-location", "I-location"]
    for split, count in (("train", 24), ("validation", 6), ("test", 6)):
        tokens = [["in", "New", PLACES[number % 3], "we", "sat"] for number in range(count)]
        write(folder / f"{split}.parquet", tokens, ner_tags=[[0, 1, 2, 0, 0]] * count, names=names)
    return folder


@pytest.fixture(scope="session")
def wic_folder(tmp_path_factory) -> Path:
    """Pairs of `bank` and others beside words that tell the sense, and a row whose word was not found."""
    folder = tmp_path_factory.mktemp("wic")
    for split, count in (("train", 60), ("validation_subset", 12)):
        rows: dict[str, list] = {name: [] for name in ("word", "sentence1", "sentence2", "start1", "start2", "end1")}
        rows |= {"end2": [], "idx": [], "label": []}
        for number in range(count):
            word, is_same = f"word{number % 10}", number % 2 == 0
            first, second = f"the river {word} .", f"a {'river' if is_same else 'money'} {word}."
            starts = first.index(word), second.index(word)
            rows["word"].append(word)
            rows["sentence1"].append(first)
            rows["sentence2"].append(second)
            rows["start1"].append(starts[0] if number else -1)
            rows["end1"].append(starts[0] + len(word) if number else -1)
            rows["start2"].append(starts[1])
            rows["end2"].append(starts[1] + len(word))
            rows["idx"].append(number)
            rows["label"].append(int(is_same))
        strings = dict.fromkeys(("word", "sentence1", "sentence2"), Value("string"))
        numbers = dict.fromkeys(("start1", "start2", "end1", "end2", "idx"), Value("int32"))
        features = Features({**strings, **numbers, "label": ClassLabel(names=["False", "True"])})
        Dataset.from_dict(rows, features=features).to_parquet(folder / f"{split}.parquet")
    return folder


def write(path: Path, tokens: list[list[str]], names: list[str], **tags: list[list[int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    ((column, values),) = tags.items()
    features = Features({"tokens": Sequence(Value("string")), column: Sequence(ClassLabel(names=names))})
    Dataset.from_dict({"tokens": tokens, column: values}, features=features).to_parquet(path)
