import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_lineage.albert.sentencepiece_albert import read_sentencepiece_model

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
PIECES = [
    ("<pad>", 0.0, CONTROL),
    ("<unk>", 0.0, UNKNOWN),
    ("(", 0.0, USER_DEFINED),
    ("▁a", -1.5, NORMAL),
    ("é", -2.25, NORMAL),
]
VOCAB = [(piece, score) for piece, score, _ in PIECES]


def varint(value):
    head = bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
    return head + varint(value >> 7) if value > 0x7F else head


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def model(pieces=PIECES, trainer=b"", normalizer=b"", behind=b""):
    pieces = b"".join(
        field(1, field(1, piece.encode()) + field(2, score) + (field(3, kind) if kind != NORMAL else b""))
        for piece, score, kind in pieces
    )
    return pieces + field(2, trainer) + field(3, normalizer) + behind


def read(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "spiece.model"
    path.write_bytes(data)
    return read_sentencepiece_model(path)


def test_pieces_scores_and_table(tmp_path_factory):
    # with unknown fields of every width, and a normalizer in two parts as the wire format allows
    extra = field(9, b"x" * 300) + varint(11 << 3 | 1) + bytes(8) + field(12, 2**40) + field(13, 1.0)
    data = model(trainer=field(3, 1) + field(4, 5), normalizer=field(2, b"\x00table"), behind=extra)
    data += field(3, field(3, 1) + field(5, 1))
    found = read(data, tmp_path_factory)
    assert found.vocab == VOCAB
    assert found.unk_id == 1
    assert found.charsmap == b"\x00table"
    assert read(model(), tmp_path_factory).charsmap == b""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no pieces"),
        (field(2, b""), "no pieces"),
        (b"<html>not a model</html>", "spiece.model is not a SentencePiece model"),
        (model(PIECES[2:]), "one unknown piece, it has 0"),
        (model([*PIECES, ("<unk2>", 0.0, UNKNOWN)]), "one unknown piece, it has 2"),
        (model([*PIECES, ("<0x0A>", 0.0, BYTE)]), "falls back to bytes"),
        (model(trainer=field(3, 2)), "must be unigram"),
        (model(trainer=field(24, 1)), "treat_whitespace_as_suffix"),
        (model(normalizer=field(3, 0) + field(4, 0)), "without add_dummy_prefix and remove_extra_whitespaces"),
        (model(normalizer=field(2, 7)), "the number 7 where text"),
        (model(behind=field(1, field(1, b"x") + field(2, 3))), "where text or a message"),
        (model(behind=field(1, field(1, b"x") + field(2, b"abc"))), "no 32-bit number"),
        (model(behind=field(1, field(1, b"x") + field(3, b"abc"))), "3 bytes where an integer"),
        (model(behind=field(1, field(1, b"\xff"))), "utf-8"),
        (model(behind=b"\x0b"), "wire type 3"),
        (model(behind=b"\x80" * 11), "more than ten bytes"),
        (model(behind=b"\x0a\xff\xff\xff\xff\x0f"), "a field of 4294967295 bytes where 0 are left"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_files_are_refused(data, message, tmp_path_factory):
    with pytest.raises(ValueError, match=message):
        read(data, tmp_path_factory)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(OSError, match=r"absent\.model"):
        read_sentencepiece_model(tmp_path / "absent.model")


@given(length=st.integers(0, len(model()) - 1))
def test_a_cut_file_never_gives_other_pieces(length, tmp_path_factory):
    try:
        found = read(model()[:length], tmp_path_factory)
    except ValueError:
        return
    assert found.vocab == VOCAB[: len(found.vocab)]


@given(place=st.integers(0, len(model()) - 1), byte=st.integers(0, 255))
def test_a_broken_file_is_read_or_refused(place, byte, tmp_path_factory):
    data = bytearray(model())
    data[place] = byte
    try:
        found = read(bytes(data), tmp_path_factory)
    except ValueError:
        return
    assert 0 <= found.unk_id < len(found.vocab)


def test_every_published_model_as_sentencepiece_reads_it(shared):
    sentencepiece = pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")
    files = sorted((shared / "fixtures" / "tokenizers").glob("*/spiece.model"))
    assert files
    for file in files:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
        found = read_sentencepiece_model(file)
        expected = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]
        assert found.vocab == expected
        assert found.unk_id == processor.unk_id()
