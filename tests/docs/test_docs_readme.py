"""From the README alone one can say which file to open."""

import ast
import re

import pytest
from docs_pages import FAMILIES, ROOT, spans_of, table_rows

PATH = re.compile(r"[\w./<>-]+(\.py|/)")
ROWS = [row for row in table_rows("README.md") if row and PATH.fullmatch((spans_of(row[-1]) or [""])[0])]


def files_of(row) -> list[str]:
    """The files that a row names; one without a folder is in that of the file before.

    `<family>` stands for every family, and without a folder for one in the family's.
    """
    found: list[str] = []
    for name in spans_of(row[-1]):
        if "<family>" in name:
            path = name if "/" in name else f"hf_lineage/<family>/{name}"
            found += [path.replace("<family>", family) for family in FAMILIES]
            continue
        folder = found[-1].rpartition("/")[0] if found and "/" not in name else ""
        found.append(f"{folder}/{name}" if folder else name)
    return found


def defines(path: str, name: str) -> bool:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return any(getattr(node, "name", None) == name for node in ast.walk(tree))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].content)
def test_files_exist(row):
    for name in files_of(row):
        assert (ROOT / name).exists(), name


def test_no_file_is_named_twice():
    names = [name for row in ROWS for name in files_of(row)]
    assert len(names) == len({*names})


@pytest.mark.parametrize(
    ("to_change", "file", "definition"),
    [
        ("the two-stream mask", "hf_lineage/xlnet/masks_xlnet.py", "content_keys"),
        ("the mask of an order", "hf_lineage/xlnet/permutation_xlnet.py", "perm_mask_of_ranks"),
        ("the n-gram masking", "hf_lineage/pretraining/span_masking.py", "DataCollatorForSpanMasking"),
        ("the ELMo character table", "hf_lineage/elmo/character_encoder_elmo.py", "ElmoCharacterEncoder"),
        ("how a word becomes character ids", "hf_lineage/elmo/tokenization_elmo.py", "ElmoTokenizer"),
        ("a GLUE metric", "benchmarks/glue/metrics.py", "MatthewsCorrelation"),
    ],
)
def test_a_reader_finds_the_file(to_change, file, definition):
    (row,) = (row for row in ROWS if to_change in row[0].content)
    assert file in files_of(row)
    assert defines(file, definition)
