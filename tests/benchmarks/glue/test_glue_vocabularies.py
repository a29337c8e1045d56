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
    assert 300 < len(tokenizer) <= 400
    ids = tokenizer(train["sentence"][:50])["input_ids"]
    assert not any(tokenizer.unk_token_id in row for row in ids) or kind == "gpt2"


def test_the_same_text_gives_the_same_files_in_any_process(tmp_path: Path):
    for name in ("one", "two"):
        environment = {**os.environ, "PYTHONHASHSEED": str(len(name) + ord(name[0])), "RAYON_NUM_THREADS": "2"}
        subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / name)], env=environment, check=True, timeout=200)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) >= 8
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


def test_both_sentences_are_read_and_lines_in_a_text_do_not_matter(tmp_path: Path):
    task = GLUE_TASKS["rte"]
    train = Dataset.from_dict({"sentence1": ["aa\nbb aa bb"] * 20, "sentence2": ["zz yy zz yy"] * 20})
    tokenizer = train_vocabulary("bert", 40, task, train, tmp_path / "tokenizer")
    assert tokenizer.unk_token_id not in tokenizer("aa bb zz yy")["input_ids"]


def test_a_small_text_gives_a_small_vocabulary_and_too_small_a_one_none(tmp_path: Path):
    task = GLUE_TASKS["sst2"]
    train = load_task("sentiment")["train"].select(range(100))
    assert 32 <= len(train_vocabulary("albert", 8000, task, train, tmp_path / "small")) < 400
    with pytest.raises(ValueError, match=r"the text is enough for a vocabulary of|vocabulary of at least"):
        train_vocabulary("albert", 8000, task, Dataset.from_dict({"sentence": ["a b"]}), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_one_that_is_there_is_loaded(tmp_path: Path):
    task, train = MINISUITE_TASKS["agreement"], load_task("agreement")["train"]
    first = train_vocabulary("bert", 300, task, train, tmp_path / "tokenizer")
    again = train_vocabulary("bert", 200, task, train.select(range(3)), tmp_path / "tokenizer")
    assert again.get_vocab() == first.get_vocab()
