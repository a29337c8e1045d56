import gzip
import io
import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenizer_training.text import LineSample, TextLines

lines_of_text = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")), max_size=20)


def zst(data):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra tokenizers")
    out = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


PACKERS = {"": bytes, ".gz": gzip.compress, ".zst": zst}


def write(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(PACKERS.get(path.suffix, bytes)(data))
    return path


@settings(max_examples=60, deadline=None)
@given(lines=lines_of_text, ending=st.sampled_from(["\n", "\r\n"]), packing=st.sampled_from([*PACKERS]))
def test_lines_are_read_at_every_pass(lines, ending, packing, tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    file = write(folder, f"a.txt{packing}", ending.join(lines).encode())
    more = write(folder, "b.txt", b"\xef\xbb\xbfwith a mark\n\n \t\nlast line")
    text = TextLines([file, more], held_out=0)
    expected = [line.removeprefix("\ufeff" if number == 0 else "").strip() for number, line in enumerate(lines)]
    expected = [line for line in expected if line] + ["with a mark", "last line"]
    assert list(text.read("first")) == expected
    assert list(text.read("second")) == expected


def test_several_packed_parts_in_one_file(tmp_path):
    for suffix, pack in PACKERS.items():
        file = tmp_path / f"a{suffix}"
        file.write_bytes(pack(b"one\ntw") + pack(b"o\nthree"))
        assert list(TextLines([file]).read("read")) == ["one", "two", "three"]


def test_folders(tmp_path):
    for name in ("b.txt", "a/z.txt.gz", "c", ".hidden", ".git/x"):
        write(tmp_path, name, name.encode())
    assert list(TextLines([tmp_path]).read("read")) == ["a/z.txt.gz", "b.txt", "c"]
    assert list(TextLines([str(tmp_path / "a"), tmp_path / "c"]).read("read")) == ["a/z.txt.gz", "c"]


def test_standard_input_can_be_read_twice(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("one\n\né".encode())))
    text = TextLines(["-", write(tmp_path, "a.txt", b"two")])
    for _ in range(2):
        assert list(text.read("read")) == ["one", "é", "two"]


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"fine\nna\xefve\n", "byte 7 (0xef, in line 2)"),
        (b"\xef\xbb\xbfa\xff", "byte 4 (0xff, in line 1)"),
        ("é\né".encode()[:-1], "byte 3 (0xc3, in line 2)"),
        ("ab\n".encode("utf-16"), "byte 0 (0xff, in line 1)"),
    ],
)
def test_what_is_not_utf8_is_placed_or_replaced(packing, data, message, tmp_path):
    file = write(tmp_path, f"a{packing}", data)
    with pytest.raises(ValueError, match=re.escape(f"{file}: {message} is not UTF-8")):
        list(TextLines([file]).read("read"))
    replaced = "".join(TextLines([file], errors="replace").read("read"))
    assert "\ufffd" in replaced
    assert "".join(data.decode("utf-8-sig", "replace").split()) == replaced


def test_damaged_files(tmp_path):
    whole = b"a line that is long enough\n" * 100
    for suffix in (".gz", ".zst"):
        file = tmp_path / f"a{suffix}"
        for data in (PACKERS[suffix](whole)[:-5], b"not packed at all"):
            file.write_bytes(data)
            with pytest.raises(ValueError, match=f"a{suffix} cannot be read to its end"):
                list(TextLines([file]).read("read"))


def test_inputs_that_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "blank").write_bytes(b"\n \n\t\n")
    for inputs, options, message in (
        ([], {}, "at least one"),
        (["absent"], {}, "no text file or folder .*absent"),
        (["folder"], {}, "no files in the folder .*folder"),
        (["empty"], {"errors": "ignore"}, "'strict' or 'replace', got 'ignore'"),
        (["empty"], {"sample_limit": 0}, "sample_limit must be at least 1, got 0"),
        (["empty"], {"held_out": 1}, "held_out must be at least 0 and below 1, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            TextLines([tmp_path / name for name in inputs], **options)
    text = TextLines([tmp_path / "empty", tmp_path / "blank"])
    with pytest.raises(ValueError, match=r"no text in .*empty, .*blank"):
        list(text.read("read"))
    with pytest.raises(ValueError, match="no text in"):
        list(TextLines([tmp_path / "blank"], sample_limit=3).read("read"))


def test_a_sample_is_the_same_for_a_seed_and_at_each_pass(tmp_path):
    lines = [f"line {number}" for number in range(1000)]
    file = write(tmp_path, "a.txt", "\n".join(lines).encode())
    text = TextLines([file], sample_limit=50, seed=1)
    drawn = list(text.read("first"))
    assert len(drawn) == 50
    assert list(text.read("second")) == drawn == list(TextLines([file], sample_limit=50, seed=1).read("read"))
    assert drawn == [line for line in lines if line in set(drawn)]
    assert drawn != list(TextLines([file], sample_limit=50, seed=2).read("read"))
    assert list(TextLines([file], sample_limit=1000, held_out=0).read("read")) == lines


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_held_out_lines_are_not_trained_on(tmp_path, share):
    lines = [f"line {number}" for number in range(3000)] + ["said twice"] * 50
    file = write(tmp_path, "a.txt", "\n".join(lines).encode())
    kept = {}
    for seed in (1, 2):
        text = TextLines([file], seed=seed, held_out=share)
        trained = list(text.read("read"))
        assert list(text.read("read")) == trained
        measured = text.measured()
        assert measured.is_held_out
        assert sorted(trained + measured.lines) == sorted(lines)
        assert not set(trained) & set(measured.lines)
        assert measured == TextLines([file], seed=seed, held_out=share).measured()
        kept[seed] = set(measured.lines)
        # 5 standard deviations of a binomial
        assert abs(len(kept[seed]) - share * 3001) < 5 * (3001 * share * (1 - share)) ** 0.5
        assert f"{len(measured.lines)} lines that were kept out" in str(measured)
    assert kept[1] != kept[2]


def test_what_is_kept_out_does_not_depend_on_the_sample(tmp_path):
    file = write(tmp_path, "a.txt", "\n".join(map(str, range(5000))).encode())
    whole, sampled = TextLines([file]), TextLines([file], sample_limit=20)
    assert set(sampled.read("read")) <= set(whole.read("read"))
    assert sampled.measured() == whole.measured()


def test_measured_lines_where_none_are_kept_out(tmp_path):
    file = write(tmp_path, "a.txt", b"one\ntwo\nthree")
    for options, reason in (({"held_out": 0}, "none were kept out"), ({}, "none fell to the share of 0.01")):
        measured = TextLines([file], **options).measured()
        assert (measured.lines, measured.is_held_out) == (["one", "two", "three"], False)
        assert reason in str(measured)
    sampled = TextLines([file], sample_limit=1)
    assert sampled.measured().lines == list(sampled.read("read"))
    with pytest.raises(ValueError, match=r"keeps all lines of .* out of training"):
        list(TextLines([file], held_out=0.999).read("read"))


def test_at_most_ten_thousand_lines_are_measured(tmp_path):
    file = write(tmp_path, "a.txt", "\n".join(map(str, range(25_000))).encode())
    measured = TextLines([file], held_out=0.5).measured()
    assert len(set(measured.lines)) == 10_000
    assert 12_000 < measured.total < 13_000
    assert f"10,000 lines, drawn from {measured.total:,} that were kept out" in str(measured)


def test_every_line_has_the_same_chance():
    counts = Counter()
    for seed in range(2000):
        sample = LineSample(3, seed).with_lines("abcdefghij")
        counts.update(sample.lines)
    # 600 each expected, with a deviation of 20.5
    assert all(500 < counts[line] < 700 for line in "abcdefghij")


def test_paths_are_kept_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path(), "a.txt", b"x")
    assert TextLines(["a.txt"]).files == [Path("a.txt")]
