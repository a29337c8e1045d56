import pytest
from datasets import Dataset

from benchmarks.minisuite import MINISUITE_TASKS, load_task
from benchmarks.minisuite.__main__ import main, write_parquet


def read(path, cache_dir):
    return Dataset.from_parquet(str(path), cache_dir=str(cache_dir), keep_in_memory=True)


def test_tasks_are_written_and_shown(tmp_path, capsys):
    output_dir = tmp_path / "minisuite"
    main(["--output_dir", str(output_dir), "--seed", "3", "--num_examples", "2"])
    written = sorted(str(path.relative_to(output_dir)) for path in output_dir.rglob("*") if path.is_file())
    assert written == sorted(
        f"{name}/{split}.parquet" for name in MINISUITE_TASKS for split in ("train", "validation")
    )
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3 * len(MINISUITE_TASKS)
    for name in MINISUITE_TASKS:
        for split, expected in load_task(name, 3).items():
            rows = read(output_dir / name / f"{split}.parquet", tmp_path / "cache")
            assert rows.features == expected.features
            assert rows.to_dict() == expected.to_dict()
    first = load_task("sentiment", 3)["train"][0]["sentence"]
    assert printed[0] == "sentiment (2000 train, 500 validation)"
    assert printed[1].endswith(first)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "train.parquet"
    write_parquet(Dataset.from_dict({"sentence": ["old"]}), path)

    def fail(self, target, *args, **kwargs):
        target.write_bytes(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(Dataset, "to_parquet", fail)
    with pytest.raises(OSError, match="disk full"):
        write_parquet(Dataset.from_dict({"sentence": ["new"]}), path)
    assert list(tmp_path.iterdir()) == [path]
    assert read(path, tmp_path / "cache")["sentence"] == ["old"]


@pytest.mark.parametrize("arguments", [["--seed", "-1"], ["--num_examples", "-1"]])
def test_bad_arguments_write_nothing(tmp_path, arguments):
    with pytest.raises(ValueError, match="at least 0"):
        main(["--output_dir", str(tmp_path / "out"), *arguments])
    assert not (tmp_path / "out").exists()
