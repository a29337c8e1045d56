import io
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from hf_lineage.pretraining.checkpoints import (
    latest_checkpoint,
    random_state,
    remove_checkpoints,
    save_checkpoint,
    set_random_state,
)


def fill(folder: Path) -> None:
    (folder / "weights").write_bytes(bytes(range(256)) * 9000)
    (folder / "sub").mkdir()
    (folder / "sub" / "empty").touch()


def save(folder: Path, *steps: int, limit: int = 10) -> None:
    for step in steps:
        save_checkpoint(folder, step, fill, limit)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_is_found(tmp_path: Path):
    assert latest_checkpoint(tmp_path) is None
    save(tmp_path, 9, 10, 100)
    assert latest_checkpoint(tmp_path) == tmp_path / "step-00000100"
    assert (tmp_path / "step-00000100" / "weights").stat().st_size == 2304000


def test_only_the_last_are_kept(tmp_path: Path):
    save(tmp_path, 1, 2, 3, limit=2)
    assert names(tmp_path) == ["step-00000002", "step-00000003"]
    save(tmp_path, 4, limit=1)
    assert names(tmp_path) == ["step-00000004"]


def test_an_old_one_is_removed_only_once_the_new_one_is_there(tmp_path: Path):
    save(tmp_path, 1)

    def fail(folder: Path) -> None:
        (folder / "weights").write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(tmp_path, 2, fail, 1)
    assert names(tmp_path) == ["step-00000001"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: (path / "weights").write_bytes(b"x" + (path / "weights").read_bytes()[1:]), "weights does not"),
        (lambda path: (path / "weights").write_bytes((path / "weights").read_bytes()[:-1]), "weights does not"),
        (lambda path: (path / "sub" / "empty").unlink(), "empty"),
        (lambda path: (path / "checksums.json").unlink(), "checksums.json"),
        (lambda path: (path / "checksums.json").write_text("{"), "Expecting"),
        (lambda path: (path / "checksums.json").write_text("[]"), "attribute"),
        (shutil.rmtree, None),
    ],
)
def test_the_one_before_a_damaged_one_is_taken(tmp_path: Path, caplog, damage, reason):
    save(tmp_path, 1, 2)
    damage(tmp_path / "step-00000002")
    assert latest_checkpoint(tmp_path) == tmp_path / "step-00000001"
    assert [reason in record.getMessage() for record in caplog.records] == ([True] if reason else [])


def test_if_all_are_damaged_nothing_is_overwritten_silently(tmp_path: Path):
    save(tmp_path, 1, 2)
    for path in tmp_path.iterdir():
        (path / "weights").unlink()
    with pytest.raises(ValueError, match=r"step-00000001, step-00000002.*--overwrite_output_dir"):
        latest_checkpoint(tmp_path)


def test_a_damaged_one_does_not_displace_a_good_one_and_is_replaced_in_time(tmp_path: Path):
    save(tmp_path, 1, 2, 3)
    (tmp_path / "step-00000003" / "weights").unlink()
    save(tmp_path, 2, limit=1)
    assert latest_checkpoint(tmp_path) == tmp_path / "step-00000002"
    save(tmp_path, 3, limit=1)
    assert names(tmp_path) == ["step-00000003"]
    assert latest_checkpoint(tmp_path) == tmp_path / "step-00000003"


def test_what_killed_processes_left_is_cleared_away(tmp_path: Path):
    save(tmp_path, 1)
    shutil.copytree(tmp_path / "step-00000001", tmp_path / ".step-00000002.a1b2")
    shutil.copytree(tmp_path / "step-00000001", tmp_path / ".step-00000000.removed")
    (tmp_path / "step-notes").mkdir()
    assert latest_checkpoint(tmp_path) == tmp_path / "step-00000001"
    assert names(tmp_path) == ["step-00000001", "step-notes"]


def test_all_can_be_removed(tmp_path: Path):
    save(tmp_path, 1, 2)
    (tmp_path / "notes").touch()
    remove_checkpoints(tmp_path)
    assert names(tmp_path) == ["notes"]


def test_checksums_are_of_all_files(tmp_path: Path):
    save(tmp_path, 1)
    digests = json.loads((tmp_path / "step-00000001" / "checksums.json").read_text())
    assert set(digests) == {"weights", "sub/empty"}
    assert digests["sub/empty"] == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def draw() -> tuple:
    return random.random(), np.random.random(), np.random.normal(), torch.rand(3).tolist()


def test_random_states_come_back_through_a_file_without_classes():
    device = torch.device("cpu")
    np.random.normal()  # leaves a second number behind in the generator
    random.gauss(0, 1)
    file = io.BytesIO()
    torch.save(random_state(device), file)
    expected = [draw() for _ in range(3)], random.gauss(0, 1)
    draw()
    file.seek(0)
    set_random_state(torch.load(file, weights_only=True), device)
    assert ([draw() for _ in range(3)], random.gauss(0, 1)) == expected


def test_a_random_state_of_another_device_is_refused():
    state = {**random_state(torch.device("cpu")), "device": torch.zeros(1)}
    with pytest.raises(ValueError, match="another kind of device than cpu"):
        set_random_state(state, torch.device("cpu"))
