import gzip
import pickle
import tracemalloc

import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_lineage.pretraining.corpus import Corpus
from hf_lineage.pretraining.corpus_sources import CompressedText, PlainText, Rows, RowStream

lines = st.sampled_from(["a", "bb é", " indented", "中文。", "", "", " \t", "\u3000", "c\r", "\r"])
texts = st.lists(lines, max_size=12).map("\n".join)


def segments_of(text: str) -> list[list[str]]:
    documents: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip():
            documents[-1].append(line.strip())
        else:
            documents.append([])
    return [document for document in documents if document]


def segments(documents) -> list[list[str]]:
    return [document.segments for document in documents]


def all_blocks(source) -> list[list]:
    return list(source.blocks()) if hasattr(source, "blocks") else list(map(source.block, range(source.num_blocks)))


@settings(max_examples=150, deadline=None)
@given(contents=st.lists(texts, min_size=1, max_size=4).filter(any), size=st.integers(1, 40), compressed=st.booleans())
def test_documents_and_blocks_of_text_files(tmp_path_factory, contents, size, compressed):
    folder = tmp_path_factory.mktemp("corpus")
    paths = []
    for number, content in enumerate(contents):
        data = content.encode()
        paths.append(folder / f"{number}.txt")
        paths[-1].write_bytes(gzip.compress(data) if compressed else data)
    corpus = Corpus(paths, block_size=size)
    documents = list(corpus)
    assert segments(documents) == [document for content in contents for document in segments_of(content)]
    for document in documents:  # where a document is said to begin, it does
        content = contents[document.file].encode()[document.position :].decode()
        assert segments_of(content)[0] == document.segments
    blocks = [block for source in corpus.sources for block in all_blocks(source)]
    assert [document for block in blocks for document in block] == documents
    kind = CompressedText if compressed else PlainText
    assert all(isinstance(source, kind) for source in corpus.sources)


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(texts, min_size=1, max_size=12), size=st.integers(1, 40), shards=st.integers(1, 3))
def test_documents_and_blocks_of_datasets(rows, size, shards):
    expected = [line for row in rows if (line := [line.strip() for line in row.split("\n") if line.strip()])]
    dataset = Dataset.from_dict({"body": rows, "other": rows})
    stream = dataset.to_iterable_dataset(num_shards=min(shards, len(rows)))
    for inputs, kind in ((dataset, Rows), (stream, RowStream)):
        corpus = Corpus(inputs, text_column="body", block_size=size)
        assert segments(corpus) == expected
        assert len({document.identity for document in corpus}) == len(expected)
        blocks = [block for source in corpus.sources for block in all_blocks(source)]
        assert segments(document for block in blocks for document in block) == expected
        assert all(isinstance(source, kind) for source in corpus.sources)


def test_a_folder_gives_its_text_files_in_order(tmp_path):
    for name in ("b.txt", "a/z.txt", ".hidden.txt", ".git/x.txt", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"c.txt.gz"))
    assert segments(Corpus(tmp_path)) == [["a/z.txt"], ["b.txt"], ["c.txt.gz"]]
    assert segments(Corpus([tmp_path / "notes.md", str(tmp_path / "b.txt")])) == [["notes.md"], ["b.txt"]]


def test_small_files_share_a_block(tmp_path):
    for number in range(100):
        (tmp_path / f"{number:03}.txt").write_text(f"document {number}\nof two lines")
        (tmp_path / f"{number:03}.txt.gz").write_bytes(gzip.compress(b"another"))
    plain, *compressed = Corpus(tmp_path, block_size=1000).sources
    assert plain.num_blocks == 3
    assert len(compressed) < 10


def test_a_byte_order_mark_is_not_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbffirst\n\xef\xbb\xbfsecond")
    assert segments(Corpus(tmp_path)) == [["first", "\ufeffsecond"]]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_text_that_is_not_utf8_is_named_with_its_byte(tmp_path, pack):
    path = tmp_path / "a.txt"
    path.write_bytes(pack("é\n\nabc".encode() + b"\xe9\n"))
    with pytest.raises(ValueError, match=r"a\.txt is not UTF-8: byte 7 is 0xe9"):
        list(Corpus(path))


def test_a_broken_archive_is_named(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"some text, long enough to be cut\n" * 100)[:-20])
    with pytest.raises(ValueError, match=r"a\.txt\.gz is not a whole gzip file"):
        list(Corpus(path))


def test_wrong_inputs(tmp_path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "folder").mkdir()
    dataset = Dataset.from_dict({"text": ["a"], "number": [1]})
    for inputs, message in [
        ([], "at least one"),
        (tmp_path / "missing.txt", "no file or folder"),
        (tmp_path / "folder", r"no \*.txt or"),
        (tmp_path / "empty.txt", "no text in"),
        ([tmp_path / "a.txt", tmp_path / "folder" / ".." / "a.txt"], "given twice"),
        (DatasetDict(train=dataset), "one split"),
        ([3], "got int"),
        (dataset.select([]), "must have rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            Corpus(inputs)
    with pytest.raises(ValueError, match="block_size"):
        Corpus(tmp_path / "a.txt", block_size=0)
    for inputs in (dataset, dataset.to_iterable_dataset()):
        with pytest.raises(ValueError, match="text_column must be a column of the dataset, text, number, got 'body'"):
            list(Corpus(inputs, text_column="body"))
    missing = Dataset.from_dict({"text": ["a", None]})
    for inputs in (missing, missing.to_iterable_dataset()):
        with pytest.raises(ValueError, match="must be a string, got NoneType in row 1"):
            list(Corpus(inputs))


def test_another_document_is_found_in_this_source_or_the_next(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt.gz").write_bytes(gzip.compress(f"{name}\n\n{name}".encode()))
    corpus = Corpus(tmp_path, block_size=1)
    documents = list(corpus)
    assert len(corpus.sources) == 2
    assert corpus.other_document(0, documents[:1]) == documents[1]
    assert corpus.other_document(0, documents[1:2]) == documents[0]
    assert corpus.other_document(0, documents[:2]) == documents[2]
    assert corpus.other_document(1, documents[1:]) == documents[0]
    assert corpus.other_document(0, documents) is None


@pytest.mark.parametrize("compressed", [False, True])
def test_memory_does_not_grow_with_the_corpus(tmp_path, compressed):
    text = (b"a sentence of some words\n" * 20 + b"\n") * 4000  # 2 MB
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(text, 1) if compressed else text)
    corpus = pickle.loads(pickle.dumps(Corpus(path, block_size=20_000)))
    (source,) = corpus.sources
    blocks = source.blocks() if compressed else map(source.block, range(source.num_blocks))
    tracemalloc.start()
    try:
        count = sum(len(block) for block in blocks)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 4000
    assert peak < 500_000
