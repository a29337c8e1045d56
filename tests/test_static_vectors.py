import gzip
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_lineage.static_vectors import read_static_vectors

WORDS = ["the", "The", "北京", "naïve", "a"]
VECTORS = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)


def text(header: bool) -> bytes:
    lines = [f"{word} {' '.join(map(repr, row.tolist()))}" for word, row in zip(WORDS, VECTORS, strict=True)]
    return "\n".join([*(["5 3"] if header else []), *lines, ""]).encode()


def binary(line_feed: bytes = b"\n") -> bytes:
    rows = (word.encode() + b" " + row.tobytes() + line_feed for word, row in zip(WORDS, VECTORS, strict=True))
    return b"5 3\n" + b"".join(rows)


FORMATS = {
    "GloVe text": text(False),
    "word2vec text": text(True),
    "word2vec binary": binary(),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read_by_its_content(name, packed, tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(FORMATS[name]) if packed else FORMATS[name])
    found = read_static_vectors(path)
    assert (found.words, found.format) == (WORDS, name)
    assert np.array_equal(found.vectors, VECTORS)
    assert found.vectors.dtype == np.float32
    assert not found.is_lower_cased
    some = read_static_vectors(path, limit=2)
    assert some.words == WORDS[:2]
    assert np.array_equal(some.vectors, VECTORS[:2])


def test_what_the_programs_wrote(shared):
    folder = shared / "fixtures/vectors"
    for name, words, size, kind in (
        ("euclidean_vectors.word2vec.bin", 2747, 10, "word2vec binary"),
        ("lee_word2vec_10d.txt.gz", 1750, 10, "word2vec text"),
        ("glove.6B.100d.sample.txt.gz", None, 100, "GloVe text"),
        ("glove.6B.300d.sample.txt.gz", None, 300, "GloVe text"),
    ):
        found = read_static_vectors(folder / name)
        assert found.format == kind
        assert found.vectors.shape == (words or len(found.words), size)
        assert len(set(found.words)) == len(found.words)
    assert found.words[:2] == ["the", ","]
    assert found.is_lower_cased


def test_words_with_spaces_and_words_that_come_twice(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 1.0 2.0\n. . . 3.0 4.0\nthe 5.0 6.0\n")
    found = read_static_vectors(path)
    assert found.words == ["the", ". . ."]
    assert found.vectors.tolist() == [[1, 2], [3, 4]]


def test_binary_without_line_feeds(tmp_path):
    (tmp_path / "v.bin").write_bytes(binary(b""))
    assert read_static_vectors(tmp_path / "v.bin").words == WORDS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no file of word vectors"),
        (b"just text\n", "no file of word vectors"),
        (b"\x80\x04\x95pickle", "no file of word vectors"),
        (b"the 1 2\na 1\n", "vector 2: must be a word and 2 numbers"),
        (b"the 1 2\na 1 x\n", "vector 2: must be a word and 2 numbers"),
        (b"the 1 nan\n", "vector 1: it holds a number that is not finite"),
        (b"9 2\nthe 1 2\n", "says 9 vectors, it holds 1"),
        (b"99999999999999 3\n" + binary()[4:], "says 99999999999999 vectors, it holds 5"),
        (b"2 999999999999\nx ", "a size is 1 to"),
        (binary()[:-8], "12 bytes of a vector, there are"),
        (b"1 3\n" + b"x" * 3000, "no word of at most 1000 bytes"),
        (b"1 3\n", "says 1 vectors|holds no vectors"),
        (gzip.compress(text(False))[:-9], "not a complete gzip file"),
        (b"1 1\nx " + struct.pack("<f", float("inf")), "not finite"),
    ],
)
def test_damaged_files_are_refused(content, message, tmp_path):
    (tmp_path / "vectors").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_static_vectors(tmp_path / "vectors")


def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no file"):
        read_static_vectors(tmp_path / "absent")
    (tmp_path / "v").write_bytes(text(True))
    with pytest.raises(ValueError, match="limit must be None or an integer of at least 1, got 0"):
        read_static_vectors(tmp_path / "v", limit=0)


@given(st.sampled_from([b"", b"\x1f\x8b", b"2 3\n", b"2 1\na ", b"a 1 2\n"]), st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_file_is_read_or_refused(tmp_path_factory, beginning, rest):
    path = tmp_path_factory.getbasetemp() / "any-vectors"
    path.write_bytes(beginning + rest)
    try:
        found = read_static_vectors(path)
    except ValueError:
        return
    assert len(found.words) == len(found.vectors) > 0
    assert np.isfinite(found.vectors).all()
