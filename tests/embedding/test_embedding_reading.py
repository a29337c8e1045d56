import gzip
import io
import json
import re
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_lineage.embedding.reading import Sentence, SentenceReader

texts = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\ufeff"), max_size=12)
words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=6)
sentences = st.lists(st.lists(words, max_size=5), max_size=8)


def write(folder, name, text):
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


def tokens(reader):
    return [sentence.tokens for sentence in reader]


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(texts, max_size=10), name=st.sampled_from(["a", "a.txt", "a.b.gz"]), ends=st.booleans())
def test_a_sentence_for_every_line(lines, name, ends, tmp_path_factory):
    text = "\n".join(lines) + ("\n" if ends and lines else "")
    reader = SentenceReader(write(tmp_path_factory.mktemp("text"), name, text))
    expected = text.split("\n")[: None if text and not text.endswith("\n") else -1]
    assert list(reader) == list(reader) == [Sentence(line.strip(), line.split()) for line in expected]


@settings(max_examples=60, deadline=None)
@given(
    content=sentences, forms=st.lists(st.sampled_from(["list", "tokens", "text", "string"]), min_size=8, max_size=8)
)
def test_json_lines(content, forms, tmp_path_factory):
    def line(sentence, form):
        text = " ".join(sentence)
        return {"list": sentence, "tokens": {"id": 1, "tokens": sentence, "text": ""}, "text": {"text": text}}.get(
            form, text
        )

    lines = [json.dumps(line(sentence, form)) for sentence, form in zip(content, forms, strict=False)]
    path = write(tmp_path_factory.mktemp("json"), "a.jsonl.gz", "\n".join([*lines, "", "[]"]))
    assert tokens(SentenceReader(path)) == [*content, [], []]


@settings(max_examples=60, deadline=None)
@given(content=sentences, blanks=st.integers(1, 3))
def test_conll(content, blanks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("conll")
    content = [sentence for sentence in content if sentence]
    text = ("\n" * blanks).join("".join(f"{word}\tO\n" for word in sentence) for sentence in content)
    assert tokens(SentenceReader(write(folder, "a.conll", text))) == content
    text = "\n".join("".join(f"1 {word} O\n" for word in sentence) for sentence in content)
    assert tokens(SentenceReader(write(folder, "b", text), "conll", column=2)) == content


def test_conllu_gives_syntactic_words(tmp_path):
    text = (
        "# sent_id = 1\n# text = vámonos al mar\n1-2\tvámonos\t_\n1\tvamos\tir\n2\tnos\tnosotros\n2.1\tx\t_\n"
        "3-4\tal\t_\n3\ta\ta\n4\tel\tel\n5\tNew York\t_\n\n# a comment alone\n\n\n1\t#\t_\n"
    )
    found = list(SentenceReader(write(tmp_path, "a.conllu", text)))
    assert [sentence.tokens for sentence in found] == [["vamos", "nos", "a", "el", "New York"], [], ["#"]]
    assert found[0].text == "vamos nos a el New York"


def test_text_can_be_cut_into_words(tmp_path):
    path = write(tmp_path, "a.txt", "It isn't over.\n\n")
    found = list(SentenceReader(path, tokenization="words"))
    assert found == [Sentence("It isn't over.", ["It", "is", "n't", "over", "."]), Sentence("", [])]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a b\n\nc")))
    reader = SentenceReader("-")
    assert tokens(reader) == tokens(reader) == [["a", "b"], [], ["c"]]


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.jsonl", '["a"]\n{"tokens": [1]}', {}, "a.jsonl, line 2: neither a text nor a list of words: [1]"),
        ("a.jsonl", "\n{", {}, "a.jsonl, line 2: no JSON"),
        ("a.jsonl", '{"x": 1}', {}, "line 1: no field 'tokens' or 'text' or 'sentence', but 'x'"),
        ("a.jsonl", '{"text": "a"}', {"field": "words"}, "line 1: no field 'words', but 'text'"),
        ("a.jsonl", '["\\ud800"]', {}, "line 1: a half of a surrogate pair"),
        ("a.conllu", "1\ta\nfrog\tb", {}, "line 2: the ID of a word must be 1, 1-2 or 1.1, got 'frog'"),
        ("a.conllu", "1 a", {}, "line 1: not the columns of CoNLL-U"),
        ("a.conll", "a\tO\nb", {"column": 2}, "line 2: no column 2: 'b'"),
        ("a", "", {"input_format": "xml"}, "the input format must be one of text, jsonl, conllu, conll, got 'xml'"),
        ("a", "", {"tokenization": "x"}, "the tokenization must be one of whitespace, words, got 'x'"),
        ("a", "", {"column": 0}, "the column must be at least 1, got 0"),
        ("a", "", {"column": 2}, "a column can be named for 'conll' only, the input format is 'text'"),
        ("a", "", {"field": "x"}, "a field can be named for JSON lines only, the input format is 'text'"),
        ("a", "", {"errors": "x"}, "errors must be 'strict' or 'replace', got 'x'"),
    ],
)
def test_what_is_refused(name, text, options, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        list(SentenceReader(write(tmp_path, name, text), **options))


def test_files_that_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no text file .*absent"):
        SentenceReader(tmp_path / "absent")
    (tmp_path / "latin").write_bytes(b"ok\nna\xefve")
    with pytest.raises(ValueError, match=r"byte 5 \(0xef, in line 2\) is not UTF-8"):
        list(SentenceReader(tmp_path / "latin"))
    assert tokens(SentenceReader(tmp_path / "latin", errors="replace")) == [["ok"], ["na\ufffdve"]]
