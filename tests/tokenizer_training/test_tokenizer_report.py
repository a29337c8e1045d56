import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AlbertTokenizer, BertTokenizer

from hf_lineage import ElmoTokenizer
from tokenizer_training.report import measure_tokenizer, save_report
from tokenizer_training.segments import segment
from tokenizer_training.text import TextLines

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def bert(*words):
    return BertTokenizer(vocab={word: number for number, word in enumerate([*SPECIAL, *words])})


def test_counts():
    report = measure_tokenizer(bert("the", "cat", "##s", "国"), ["The cats", "the DOG dog,cat", "国中", ""] * 600)
    assert report.vocab_size == 9
    assert report.lines == 2400
    assert report.words == 600 * 6
    assert report.characters == 600 * (7 + 13 + 2)
    assert report.tokens == 600 * (3 + 5 + 2)
    assert report.unknown == 600 * 4
    assert dict(report.most_unknown) == {"DOG": 600, "dog": 600, ",": 600, "中": 600}
    assert report.unknown_words == 600 * 3
    assert report.unknown_characters == 600 * 8
    assert report.unknown_rate == 4 / 10
    assert report.word_coverage == 0.5
    assert report.character_coverage == 1 - 8 / 22
    assert report.tokens_per_word == 10 / 6
    assert report.characters_per_token == 22 / 10
    assert report.longest_split == (("cats", ("cat", "s")), ("国中", ("国", "中")))
    assert "40.0000% of 6,000 tokens unknown (most often ',' x 600" in str(report)


def test_nothing():
    report = measure_tokenizer(bert(), [])
    assert (report.unknown_rate, report.tokens_per_word, report.characters_per_token) == (0, 0, 0)
    assert (report.word_coverage, report.character_coverage) == (1, 1)
    assert "most often" not in str(report)


def test_a_lone_word_start_has_no_place_and_a_named_unknown_is_known():
    pieces = [("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0), ("▁", -2.0)]
    tokenizer = AlbertTokenizer(vocab=[*pieces, (",", -1.0), ("▁ab", -1.0), ("c", -1.0)])
    report = measure_tokenizer(tokenizer, ["abc ,", "ab <unk>"])
    assert tokenizer.tokenize("abc ,") == ["▁ab", "c", "▁", ","]
    assert report.longest_split == (("abc", ("ab", "c")),)
    assert report.unknown == 0


def test_words_of_elmos_vocabulary(tmp_path):
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nthe\n")
    report = measure_tokenizer(ElmoTokenizer(tmp_path / "vocab.txt"), ["the cat's the"])
    assert (report.vocab_size, report.tokens, report.unknown, report.unknown_words) == (4, 4, 2, 1)
    assert report.most_unknown == (("'s", 1), ("cat", 1))
    assert measure_tokenizer(ElmoTokenizer(), ["the cat"]).unknown == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abc ", max_size=12), max_size=8))
def test_the_longest_runs_are_found(lines):
    report = measure_tokenizer(bert("a", "##a", "##b", "b"), lines)
    split = {word for line in lines for word in line.split() if len(word) > 1 and "c" not in word}
    expected = sorted(split, key=lambda word: (-len(word), word))[:10]
    assert [text for text, _ in report.longest_split] == expected
    assert all("".join(pieces) == text and len(pieces) > 1 for text, pieces in report.longest_split)


def test_many_split_runs_do_not_pile_up():
    lines = [f"{'a' * length} {'b' * length}" for length in range(2, 700)]
    report = measure_tokenizer(bert("a", "##a", "b", "##b", "aa"), lines)
    # longer words than 100 characters are unknown to WordPiece, so one token
    assert [len(text) for text, _ in report.longest_split] == [100, 100, 99, 99, 98, 98, 97, 97, 96, 96]


def test_files(tmp_path):
    (tmp_path / "text.txt").write_text("the cats\n" * 3 + "a|b *x*\u2028y")
    text = TextLines([tmp_path / "text.txt"], held_out=0)
    report = save_report(bert("the", "cat", "##s"), text, tmp_path)
    data = json.loads((tmp_path / "tokenizer_report.json").read_text(encoding="utf-8"))
    assert data["measured_on"] == "4 lines of the training text, as none were kept out"
    assert (data["tokenizer"], data["is_held_out"], data["vocab_size"]) == ("BertTokenizer", False, 8)
    assert data["tokens_per_word"] == round(report.tokens_per_word, 6)
    assert data["longest_split"] == [{"text": "cats", "pieces": ["cat", "s"]}]
    assert {"text": "*", "count": 2} in data["most_unknown"]
    page = (tmp_path / "tokenizer_report.md").read_text(encoding="utf-8")
    assert "| cats | cat · s |" in page
    assert "| \\| | 1 |" in page
    assert "| \\* | 2 |" in page


def test_long_texts_are_shown_by_their_beginning(tmp_path):
    (tmp_path / "text.txt").write_text(f"{'x' * 5000}\n")
    report = save_report(bert("a"), TextLines([tmp_path / "text.txt"], held_out=0), tmp_path)
    assert report.most_unknown == (("x" * 5000, 1),)
    assert f"(most often '{'x' * 99}…' x 1)" in str(report)
    assert f"| {'x' * 99}… | 1 |" in (tmp_path / "tokenizer_report.md").read_text()
    assert json.loads((tmp_path / "tokenizer_report.json").read_text())["most_unknown"][0]["text"] == "x" * 5000


def test_lines_are_cut_a_few_batches_ahead_and_errors_arrive():
    class Counting(BertTokenizer):
        batches = 0

        def __call__(self, lines, **options):
            self.batches += 1
            if "broken" in lines:
                raise ValueError("broken line")
            return super().__call__(lines, **options)

    tokenizer = Counting(vocab={word: number for number, word in enumerate([*SPECIAL, "a"])})
    segments = segment(tokenizer, ["a"] * 20_000, "read")
    assert next(segments).line == "a"
    segments.close()
    assert 1 <= tokenizer.batches <= 3
    with pytest.raises(ValueError, match="broken line"):
        list(segment(tokenizer, [*["a"] * 1500, "broken"], "read"))
