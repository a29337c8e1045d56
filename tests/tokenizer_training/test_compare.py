from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from transformers import BertTokenizer, PreTrainedTokenizer

from hf_lineage import ElmoTokenizer
from tokenizer_training.compare import _differing, compare_tokenizers, render
from tokenizer_training.segments import Piece

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def bert(*words):
    return BertTokenizer(vocab={word: number for number, word in enumerate([*SPECIAL, *words])}, do_lower_case=False)


@pytest.fixture
def comparison():
    first = bert("un", "##able", "##a", "##ble", "the", "cat", "[x]", "[", "]", "x")
    second = bert("una", "##ble", "the", "cat", "s", "##at", "[", "]", "x")
    return compare_tokenizers(("one", "other"), (first, second), ["unable the", "the  unable", "[x] sat", "cat"])


def test_differences_are_counted(comparison):
    assert comparison.different_words == 3
    assert comparison.different_lines == 3
    (most, count), (unknown, once) = comparison.differences
    assert (most.text, most.first, most.second, count) == ("unable", ("un", "able"), ("una", "ble"), 2)
    assert (unknown.text, unknown.first, unknown.second, once) == ("sat", ("sat",), ("s", "at"), 1)
    assert [back.exact for back in comparison.round_trips] == [2, 2]
    assert [back.up_to_white_space for back in comparison.round_trips] == [3, 4]
    found = comparison.as_dict()
    assert found["different_word_rate"] == round(3 / 7, 6)
    assert found["different_line_rate"] == 0.75
    assert [each["unknown"] for each in found["tokenizers"]] == [1, 0]
    assert [each["round_trip_up_to_white_space"] for each in found["tokenizers"]] == [0.75, 1]


def test_tables_show_text_as_it_is(comparison):
    console = Console(width=100, record=True)
    console.print(render(comparison))
    printed = " ".join(console.export_text().split())
    assert "4 lines, 7 words" in printed
    assert "cut differently: 42.857% of words, 75.000% of lines" in printed
    assert "un · able" in printed
    same = bert("[x]", "[", "]", "x")
    console.print(render(compare_tokenizers(("[red]a", "b"), (same, same), ["[x]\x07"])))
    printed = console.export_text()
    assert "No word is cut differently." in printed
    assert "[red]a" in printed


def test_elmos_words_against_pieces():
    comparison = compare_tokenizers(("elmo", "bert"), (ElmoTokenizer(), bert("do", "n", "'", "t")), ["don't do"])
    ((difference, _),) = comparison.differences
    assert (difference.first, difference.second) == (("do", "n't"), ("don", "'", "t"))
    assert comparison.reports[0].unknown == 0


def test_tokenizers_without_places_are_refused():
    class Slow(PreTrainedTokenizer):
        def get_vocab(self):
            return {}

        @property
        def vocab_size(self):
            return 0

    with pytest.raises(ValueError, match="must tell the places of its tokens, which Slow does not"):
        compare_tokenizers(("a", "b"), (Slow(), ElmoTokenizer()), ["a"])


cuts = st.sets(st.integers(1, 11)).map(lambda inner: [0, *sorted(inner), 12])


@settings(max_examples=300, deadline=None)
@given(cuts, cuts)
def test_stretches_lie_between_places_where_both_cut(one, other):
    pieces = [[Piece(start, end, True) for start, end in pairwise(cut)] for cut in (one, other)]
    stretches = list(_differing(*pieces))
    common = sorted(set(one) & set(other))
    expected = [
        (start, end)
        for start, end in pairwise(common)
        if [cut for cut in one if start <= cut <= end] != [cut for cut in other if start <= cut <= end]
    ]
    assert [stretch[:2] for stretch in stretches] == expected
    for start, end, first, second in stretches:
        assert "".join("x" * (piece.end - piece.start) for piece in first) == "x" * (end - start)
        assert sum(piece.end - piece.start for piece in second) == end - start
