import os
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import Dataset
from transformers import GPT2Tokenizer

from benchmarks.glue.tasks import GLUE_TASKS
from benchmarks.glue.vocabularies import train_vocabulary
from benchmarks.minisuite import MINISUITE_TASKS, load_task
from hf_lineage import LineageAlbertTokenizer, LineageXLNetTokenizer

ROOT = Path(__file__).resolve().parents[3]
KINDS = {"albert": LineageAlbertTokenizer, "xlnet": LineageXLNetTokenizer, "gpt2": GPT2Tokenizer}
SCRIPT = """
import sys
from pathlib import Path
from benchmarks.glue.vocabularies import train_vocabulary
from benchmarks.minisuite import MINISUITE_TASKS, load_task
for kind in ("albert", "xlnet", "bert", "gpt2"):
    task = MINISUITE_TASKS["agreement"]
    train_vocabulary(kind, 400, task, load_task("agreement")["train"], Path(sys.argv[1], kind))
"""


@pytest.mark.parametrize("kind", [*KINDS, "bert"])
def test_the_tokenizer_is_that_of_the_family_and_knows_the_text(kind: str, tmp_path: Path):
    task, train = MINISUITE_TASKS["agreement"], load_task("agreement")["train"]
    tokenizer = train_vocabulary(kind, 400, task, train, tmp_path / "tokenizer")
    assert isinstance(tokenizer, KINDS.get(kind, object))
    assert 100 < len(tokenizer) <= 400
    ids = tokenizer(train["sentence"][:50])["input_ids"]
    assert not any(tokenizer.unk_token_id in row for row in ids) or kind == "gpt2"


def test_the_same_text_gives_the_same_files_in_any_process(tmp_path: Path):
    task, train = MINISUITE_TASKS["agreement"], load_task("agreement")["train"]
    for kind in (*KINDS, "bert"):
        train_vocabulary(kind, 400, task, train, tmp_path / "here" / kind)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "RAYON_NUM_THREADS": "2"}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "there")]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=200)
    files = sorted(path.relative_to(tmp_path / "here") for path in (tmp_path / "here").rglob("*") if path.is_file())
    assert len(files) >= 8
    for file in files:
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes(), file


def test_both_sentences_are_read_and_lines_in_a_text_do_not_matter(tmp_path: Path):
    task = GLUE_TASKS["rte"]
    texts = load_task("word_sense")["train"]
    first, second = ([text.replace(" ", "\n", 1) for text in texts[name][:]] for name in ("sentence1", "sentence2"))
    train = Dataset.from_dict({"sentence1": [text.upper() for text in first], "sentence2": second})
    tokenizer = train_vocabulary("xlnet", 300, task, train, tmp_path / "tokenizer")
    for text in (first[0].upper(), second[0]):
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.unk_token_id not in ids
        assert len(ids) < len(text)


def test_a_small_text_gives_a_small_vocabulary_and_too_small_a_one_none(tmp_path: Path):
    task = GLUE_TASKS["sst2"]
    train = load_task("sentiment")["train"].select(range(100))
    assert 32 <= len(train_vocabulary("albert", 8000, task, train, tmp_path / "small")) < 400
    with pytest.raises(ValueError, match=r"the text is enough for a vocabulary of|vocabulary of at least"):
        train_vocabulary("albert", 8000, task, Dataset.from_dict({"sentence": ["a b"]}), tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("kind", ["albert", "xlnet"])
@pytest.mark.parametrize("name", sorted(MINISUITE_TASKS))
def test_unigram_pieces_of_a_small_text_are_its_words(kind: str, name: str, tmp_path: Path):
    task, train = MINISUITE_TASKS[name], load_task(name)["train"]
    tokenizer = train_vocabulary(kind, 600, task, train, tmp_path / "tokenizer")
    words = {word for text in train[task.text_columns[0]] for word in text.split() if word.isalpha()}
    whole = [word for word in words if len(tokenizer.tokenize(word)) == 1]
    assert len(whole) > 0.9 * len(words)


def test_one_that_is_there_is_loaded(tmp_path: Path):
    task, train = MINISUITE_TASKS["agreement"], load_task("agreement")["train"]
    first = train_vocabulary("bert", 300, task, train, tmp_path / "tokenizer")
    again = train_vocabulary("bert", 200, task, train.select(range(3)), tmp_path / "tokenizer")
    assert again.get_vocab() == first.get_vocab()
