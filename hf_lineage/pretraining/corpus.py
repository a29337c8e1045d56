"""Documents of a corpus, read in blocks so that memory does not grow with the corpus."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict

from .corpus_sources import AnySource, CompressedText, Document, PlainText, Rows, RowStream, TextFile, check_column

_SMALLEST_BLOCK, _LARGEST_BLOCK, _BLOCKS = 2**14, 2**18, 128
_GZIP_MAGIC = b"\x1f\x8b"
_SAMPLED_ROWS = 100

CorpusInput: TypeAlias = str | os.PathLike | Dataset | IterableDataset
TextUnit = Literal["document", "line"]


class Corpus:
    """A corpus in files or in `datasets`, which can be pickled and holds no text itself.

    A text file is UTF-8, plain or gzip (told by its content): one segment (a sentence or a paragraph) a line, a blank
    line or the end of the file between documents. A row of a dataset is a document, each line of its text a segment.
    Blank segments are left out.

    Reading goes by blocks, runs of whole documents of about `block_size` bytes. Which documents make a block depends
    on the corpus and `block_size` alone. Plain files and a `datasets.Dataset` are read from the middle at no cost,
    gzip files and a `datasets.IterableDataset` only from the start.

    Args:
        inputs (file, folder, `datasets.Dataset`, `datasets.IterableDataset`, or a list of these):
            Of a folder all files named `*.txt` and `*.txt.gz` are taken, in the order of their names, in its folders
            too, but nothing that is hidden.
        text_column (`str`, defaults to `"text"`):
            Column of the datasets that holds the text.
        block_size (`int` or `None`, defaults to `None`):
            Bytes of text in a block. `None` takes a 128th of the text, but at least 16 KiB and at most 256 KiB.
        text_unit (`str`, defaults to `"document"`):
            `"line"` makes a document of each line of a text file, for text that has no blank lines between documents.

    Raises:
        ValueError: If an input is missing, empty, given twice or of the wrong kind.
    """

    files: list[str]
    sources: tuple[AnySource, ...]
    block_size: int

    def __init__(
        self,
        inputs: CorpusInput | Sequence[CorpusInput],
        *,
        text_column: str = "text",
        block_size: int | None = None,
        text_unit: TextUnit = "document",
    ):
        if block_size is not None and block_size < 1:
            raise ValueError(f"block_size must be at least 1, got {block_size}")
        if text_unit not in get_args(TextUnit):
            raise ValueError(f"text_unit must be 'document' or 'line', got {text_unit!r}")
        single = isinstance(inputs, (str, os.PathLike, Dataset, IterableDataset, DatasetDict, IterableDatasetDict))
        given: list[Any] = [inputs] if single else list(cast(Sequence[CorpusInput], inputs))
        if not given:
            raise ValueError("inputs must name at least one file, folder or dataset, got none")
        for value in given:
            if not isinstance(value, (str, os.PathLike, Dataset, IterableDataset)):
                raise ValueError(
                    "inputs must be files, folders, datasets.Dataset or datasets.IterableDataset (one split of a "
                    f"DatasetDict), got {type(value).__name__}"
                )
        files = _text_files([Path(value) for value in given if isinstance(value, (str, os.PathLike))])
        datasets = [(value, _mean_text(value, text_column)) for value in given if isinstance(value, Dataset)]
        streams = [value for value in given if isinstance(value, IterableDataset)]
        size = sum(file.text_size for file in files) + sum(len(dataset) * mean for dataset, mean in datasets)
        self.block_size = block_size or (_LARGEST_BLOCK if streams else _default_block_size(size))
        self.files = [file.path for file in files]
        self.sources = (
            *self._text_sources(files, text_unit == "line"),
            *(self._rows(dataset, text_column, mean) for dataset, mean in datasets),
            *(source for stream in streams for source in self._row_streams(stream, text_column)),
        )

    def __iter__(self) -> Iterator[Document]:
        for source in self.sources:
            yield from source

    def other_document(self, source_index: int, documents: Sequence[Document]) -> Document | None:
        """The first document, from that source on, that is none of `documents`; `None` if there is no other."""
        known = {document.identity for document in documents}
        for source in (*self.sources[source_index:], *self.sources[:source_index]):
            for other in source:
                if other.identity not in known:
                    return other
        return None

    def _text_sources(self, files: list[TextFile], by_line: bool) -> Iterator[AnySource]:
        if plain := tuple(file for file in files if file.size and not file.compressed):
            yield PlainText(plain, self.block_size, by_line)
        gathered: list[TextFile] = []  # small neighbours, so that a block is not as small as the smallest file
        for file in files:
            if file.compressed:
                gathered.append(file)
                if sum(file.text_size for file in gathered) >= self.block_size:
                    yield CompressedText(tuple(gathered), self.block_size, by_line)
                    gathered = []
        if gathered:
            yield CompressedText(tuple(gathered), self.block_size, by_line)

    def _rows(self, dataset: Dataset, column: str, mean: int) -> Rows:
        rows_per_block = max(1, self.block_size // mean)
        return Rows(
            self._numbered("dataset"), dataset.select_columns([column]), column, rows_per_block, mean * len(dataset)
        )

    def _row_streams(self, dataset: IterableDataset, column: str) -> Iterator[RowStream]:
        if dataset.column_names is not None:
            check_column(dataset.column_names, column)
        for shard in range(dataset.num_shards):
            number = self._numbered("dataset shard")
            yield RowStream(number, dataset, shard, column, self.block_size)

    def _numbered(self, name: str) -> int:
        self.files.append(f"{name} {len(self.files)}")
        return len(self.files) - 1


def _default_block_size(size: int) -> int:
    return min(max(size // _BLOCKS, _SMALLEST_BLOCK), _LARGEST_BLOCK)


def _mean_text(dataset: Dataset, column: str) -> int:
    """Mean length of a text, at least 1."""
    check_column(dataset.column_names, column)
    if not len(dataset):
        raise ValueError(f"inputs must have rows, got an empty dataset: {dataset}")
    sample = dataset.select_columns([column])[: min(_SAMPLED_ROWS, len(dataset))][column]
    return max(1, sum(len(text or "") for text in sample) // len(sample))


def _text_files(inputs: list[Path]) -> list[TextFile]:
    paths = [path for given in inputs for path in _paths(given)]
    seen: dict[Path, Path] = {}
    for path in paths:
        resolved = path.resolve()
        if resolved in seen:
            raise ValueError(f"{path} is given twice, as {seen[resolved]} too")
        seen[resolved] = path
    files = [TextFile(number, str(path), path.stat().st_size, _is_gzip(path)) for number, path in enumerate(paths)]
    if files and not any(file.size for file in files):
        raise ValueError(f"there is no text in {', '.join(map(str, inputs))}: nothing but empty files")
    return files


def _paths(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ValueError(
            f"there is no file or folder {path}; of a dataset of the Hub give what "
            "datasets.load_dataset(..., streaming=True) returns"
        )
    files = sorted(
        file
        for file in path.rglob("*")
        if file.name.endswith((".txt", ".txt.gz"))
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not files:
        raise ValueError(f"there are no *.txt or *.txt.gz files in {path}")
    return files


def _is_gzip(path: str | os.PathLike) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == _GZIP_MAGIC


__all__ = ["Corpus", "CorpusInput", "Document", "TextUnit"]
