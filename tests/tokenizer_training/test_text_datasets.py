import pytest

from tokenizer_training.text import TextLines
from tokenizer_training.text_datasets import DatasetLines

datasets = pytest.importorskip("datasets", reason="needs the extra train")

TEXTS = ["one\n\n two ", "three", ""]
LINES = ["one", "two", "three"]


@pytest.fixture
def data():
    return datasets.Dataset.from_dict({"text": TEXTS, "label": [0, 1, 0]})


def read(source, **options):
    return list(TextLines(datasets=[source], held_out=0, **options).read("read"))


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
def test_files(data, tmp_path, suffix):
    file = tmp_path / f"a.{suffix}"
    {"parquet": data.to_parquet, "jsonl": data.to_json, "csv": data.select([0, 1]).to_csv}[suffix](str(file))
    text = TextLines(datasets=[DatasetLines(str(file))], held_out=0)
    assert list(text.read("first")) == list(text.read("second")) == LINES
    assert list(TextLines(datasets=[DatasetLines(str(file))], sample_limit=2, held_out=0).read("read"))


def test_folders_with_splits(data, tmp_path):
    (tmp_path / "files").mkdir()
    data.to_parquet(str(tmp_path / "files" / "validation.parquet"))
    assert read(DatasetLines(str(tmp_path / "files"), split="validation")) == LINES
    data.save_to_disk(str(tmp_path / "one"))
    assert read(DatasetLines(str(tmp_path / "one"))) == LINES
    datasets.DatasetDict(test=data).save_to_disk(str(tmp_path / "several"))
    assert read(DatasetLines(str(tmp_path / "several"), split="test")) == LINES
    with pytest.raises(ValueError, match=r"split must be one of the dataset .*several, test, got 'train'"):
        DatasetLines(str(tmp_path / "several"))
    with pytest.raises(ValueError, match="Bad split: train"):
        DatasetLines(str(tmp_path / "files"))


def test_text_files_come_first(data, tmp_path):
    data.to_parquet(str(tmp_path / "a.parquet"))
    (tmp_path / "b.txt").write_text("zero")
    text = TextLines([tmp_path / "b.txt"], held_out=0, datasets=[DatasetLines(str(tmp_path / "a.parquet"))])
    assert list(text.read("read")) == ["zero", *LINES]


def test_names_of_the_hub_are_streamed(monkeypatch, data):
    asked = []

    def load_dataset(*arguments, **options):
        asked.append((arguments, options))
        return data.to_iterable_dataset()

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert read(DatasetLines("Salesforce/wikitext:wikitext-2-raw-v1", "test")) == LINES
    assert read(DatasetLines("some/corpus")) == LINES
    assert asked == [
        (("Salesforce/wikitext", "wikitext-2-raw-v1"), {"split": "test", "streaming": True}),
        (("some/corpus", None), {"split": "train", "streaming": True}),
    ]


def test_what_is_refused(data, tmp_path):
    data.to_parquet(str(tmp_path / "a.parquet"))
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(ValueError, match=r"text_column must be a column of .*, text, label, got 'body'"):
        DatasetLines(str(tmp_path / "a.parquet"), text_column="body")
    with pytest.raises(ValueError, match="must be a string, got int in row 0"):
        read(DatasetLines(str(tmp_path / "a.parquet"), text_column="label"))
    with pytest.raises(ValueError, match=r"must end in \.parquet, .*; --input reads text files"):
        DatasetLines(str(tmp_path / "a.txt"))
    datasets.Dataset.from_dict({"text": ["", " \n"]}).to_parquet(str(tmp_path / "blank.parquet"))
    with pytest.raises(ValueError, match=r"no text in text of .*blank\.parquet \(train\)"):
        read(DatasetLines(str(tmp_path / "blank.parquet")))
    with pytest.raises(ValueError, match="at least one text file"):
        TextLines()
