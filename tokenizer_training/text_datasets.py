"""Lines of a text column of a dataset that the package `datasets` loads."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_ROWS_AT_ONCE = 1000
_BUILDERS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}
_SAVED_DATASET = ("dataset_info.json", "dataset_dict.json")


class DatasetLines:
    """The lines of a dataset's texts that are not blank. A dataset of the Hub is streamed.

    Args:
        name: Name on the Hub, with its configuration as `NAME:CONFIG` if it has several; or a parquet, JSON or CSV
            file, a folder of them, or a folder that `save_to_disk` wrote.
        split: Which split to read. A file has the split `train`.
        text_column: The column that holds the text.

    Raises:
        ValueError: If the package `datasets` is not installed or the dataset has no such split or column.
        OSError: If the dataset is not there.
    """

    size = None

    def __init__(self, name: str, split: str = "train", text_column: str = "text"):
        self.name = name
        self.split = split
        self.text_column = text_column
        self._dataset = _loaded(name, split)
        columns = self._dataset.column_names
        if columns is not None and text_column not in columns:
            raise ValueError(
                f"text_column must be a column of the dataset {name}, {', '.join(columns)}, got {text_column!r}"
            )

    def __str__(self) -> str:
        return f"{self.text_column} of {self.name} ({self.split})"

    def read(self, advance: Callable[[int], object]) -> Iterator[str]:
        """Reads the dataset from its first row.

        Args:
            advance: Told how many characters were read since last time.

        Yields:
            Lines without white space around them.

        Raises:
            ValueError: If a text is no string.
        """
        row = 0
        for batch in self._dataset.iter(batch_size=_ROWS_AT_ONCE):
            if self.text_column not in batch:
                raise ValueError(
                    f"text_column must be a column of the dataset {self.name}, {', '.join(batch)}, got "
                    f"{self.text_column!r}"
                )
            for text in batch[self.text_column]:
                if not isinstance(text, str):
                    raise ValueError(f"{self}: a text must be a string, got {type(text).__name__} in row {row}")
                yield from filter(None, map(str.strip, text.split("\n")))
                row += 1
            advance(sum(map(len, batch[self.text_column])))


def _loaded(name: str, split: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise ValueError("reading a dataset needs the package datasets: pip install 'datasets>=5.0'") from error
    path = Path(name)
    if path.is_file():
        if path.suffix not in _BUILDERS:
            raise ValueError(
                f"a dataset's file must end in {', '.join(_BUILDERS)}, got {name}; --input reads text files"
            )
        return datasets.load_dataset(_BUILDERS[path.suffix], data_files=name, split=split, streaming=True)
    if path.is_dir() and any((path / file).is_file() for file in _SAVED_DATASET):
        return _split(datasets.load_from_disk(name), name, split)
    source, _, config = (name, "", "") if path.exists() else name.partition(":")
    return datasets.load_dataset(source, config or None, split=split, streaming=True)


def _split(saved: Any, name: str, split: str) -> Any:
    if not isinstance(saved, dict):  # a single split, which has no name on disk
        return saved
    if split not in saved:
        raise ValueError(f"split must be one of the dataset {name}, {', '.join(saved)}, got {split!r}")
    return saved[split]
