from pathlib import Path

import pytest

ENGLISH = [f"The cat number {number} sat on the mat, (it) said: {number},{number} dogs ran." for number in range(60)]
CHINESE = [f"却说曹操引军第{number}日而来，众将皆惊。" for number in range(60)]


@pytest.fixture(scope="session")
def texts(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("texts")
    for name, lines in (("english", ENGLISH), ("chinese", CHINESE)):
        (folder / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    return {name: folder / f"{name}.txt" for name in ("english", "chinese")}
