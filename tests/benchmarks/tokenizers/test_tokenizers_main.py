import sys

import pytest
from transformers import AutoTokenizer

from benchmarks.tokenizers import agreement, families, training
from benchmarks.tokenizers.__main__ import main
from benchmarks.tokenizers.mixed_text import mixed_lines
from hf_lineage import LineageAlbertTokenizer
from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer, train_xlnet_tokenizer

pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")


@pytest.fixture(scope="module")
def trained(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    text = TextLines(list(texts.values()))
    train_albert_tokenizer(text, folder / "albert", 80)
    train_xlnet_tokenizer(text, folder / "xlnet", 85)
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks.tokenizers", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *capsys.readouterr()

    return call


def test_mixed_lines(texts):
    def draw(seed):
        return mixed_lines([texts["english"]], [texts["chinese"]], 1000, seed)

    lines = draw(0)
    assert len(lines) == 1000
    assert draw(0) == lines != draw(1)
    text = "\n".join(lines)
    assert all(part in text for part in ("曹操", "The cat", "import ", "https://", "\x07", "🎉"))


def test_trained_tokenizers_agree_with_sentencepiece(texts, trained, run):
    text = ("--english", texts["english"], "--chinese", texts["chinese"])
    status, printed, errors = run(
        *("agreement", f"albert:{trained / 'albert'}", f"xlnet:{trained / 'xlnet'}", *text, "--lines", 2000)
    )
    assert status == 0, printed + errors
    assert printed.count("2,000") == 2
    status, _, errors = run("agreement", f"bert:{trained / 'albert'}", *text, "--lines", 10)
    assert (status, "the family must be one of albert, xlnet, got 'bert'" in errors) == (2, True)
    status, _, errors = run("agreement", f"albert:{trained}", *text, "--lines", 10)
    assert (status, "there is no" in errors) == (2, True)


def test_what_differs_is_found_and_explained(trained, tmp_path):
    tokenizer = LineageAlbertTokenizer.from_pretrained(trained / "albert")
    (tmp_path / "spiece.model").write_bytes((trained / "albert" / "spiece.model").read_bytes())
    tokenizer.do_lower_case = False
    found = agreement.measure_agreement("albert", trained / "albert", ["the cat", "the [MASK]", "th\ufe0fe cat"])
    assert (found.share, found.named_special_tokens, found.prepared_otherwise) == (1, 1, 1)
    LineageAlbertTokenizer(vocab=[(piece, -1.0 - len(piece)) for piece in tokenizer.get_vocab()]).save_pretrained(
        tmp_path
    )
    (other,) = agreement.measure_agreement("albert", tmp_path, ["the cat sat on the mat"]).differences
    assert other.found != other.expected


def test_families(texts, tmp_path, run):
    text = ("--english", texts["english"], "--chinese", texts["chinese"], "--output", tmp_path)
    status, printed, errors = run(
        *("families", *text, "--only", "gpt", "--only", "words", "--vocab_size", 290, "--lines", 40)
    )
    assert status == 0, printed + errors
    assert all(name in printed for name in ("gpt en", "gpt zh", "words en", "words zh"))
    assert "NO" not in printed
    status, _, errors = run("families", *text, "--only", "t5")
    assert (status, "the family must be one of elmo, albert," in errors) == (2, True)


def test_offsets_that_lead_to_other_text_are_found(trained):
    tokenizer = AutoTokenizer.from_pretrained(trained / "albert")
    line = "The cat ``sat''"
    encoded = tokenizer(line, return_offsets_mapping=True, add_special_tokens=False)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    assert [kind for kind, _ in families.offset_mismatches(tokenizer, line, ids, offsets)] in (
        [],
        ["two quotes that become one"] * 2,
    )
    ((kind, _),) = families.offset_mismatches(tokenizer, line, ids[:1], [(4, 7)])
    assert kind == "other"
    ((kind, _),) = families.offset_mismatches(tokenizer, line, ids[:1], [(0, 16)])
    assert kind == "out of bounds"


def test_training_is_measured_beside_sentencepiece(texts, tmp_path, run):
    status, printed, errors = run(*("training", "--text", texts["english"], "--output", tmp_path, "--vocab_size", 45))
    assert status == 0, errors
    assert "The vocabulary is equal to SentencePiece's" in printed
    assert "training alone" in printed
    assert "whole processes" in printed
    assert printed.count("ratio to prepared") == printed.count("ratio to direct") == 2


def test_runs_are_compared_in_pairs():
    ours, theirs = training.Runs(), training.Runs()
    for own, other, memory in ((2.0, 1.0, 30), (9.0, 3.0, 10), (4.0, 4.0, 20)):
        ours.add(own, memory)
        theirs.add(other, 10)
    assert ours.ratios(theirs) == (2.0, 2.0)


def test_the_memory_of_a_process_is_its_own():
    held = bytearray(300_000_000)
    held[::4096] = b"x" * len(held[::4096])
    printed, (seconds, peak) = training._run("-c", "print('done')")
    assert printed == "done\n"
    assert 0 < seconds < 60
    assert 1_000_000 < peak < 100_000_000
    assert len(held) == 300_000_000
    with pytest.raises(ValueError, match="training failed: ValueError: no"):
        training._run("-c", "raise ValueError('no')")
