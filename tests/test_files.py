import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hf_lineage
from hf_lineage.files import atomic_file, atomic_folder

REPOSITORY = str(Path(hf_lineage.__file__).parents[1])


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def fill(context, *actions):
    """Runs actions inside a context manager, on what it gives; those that are exceptions are raised."""
    with context as temporary:
        for action in actions:
            if isinstance(action, type):
                raise action
            action(temporary)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "a.txt"
    with atomic_file(path) as temporary:
        assert temporary.parent == tmp_path
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    with atomic_file(str(path)) as temporary:
        temporary.write_text("newer")
        assert path.read_text() == "new"
    assert path.read_text() == "newer"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("content", [None, "old"])
def test_a_failure_leaves_the_old_file(error, content, tmp_path):
    path = tmp_path / "a.txt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error):
        fill(atomic_file(path), lambda temporary: temporary.write_text("half"), error)
    assert names(tmp_path) == ([] if content is None else ["a.txt"])
    assert content is None or path.read_text() == content


def test_a_file_in_a_folder_that_is_not_there(tmp_path):
    path = tmp_path / "absent" / "a.txt"
    with pytest.raises(ValueError, match=r"there is no folder .*absent"), atomic_file(path):
        pass
    assert names(tmp_path) == []


def test_a_file_in_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kept").touch()
    with pytest.raises((OSError, ValueError), match="a"), atomic_file(tmp_path / "a") as temporary:
        temporary.write_text("new")
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["kept"]


@pytest.mark.skipif(os.name != "posix", reason="permissions as on POSIX")
def test_permissions_follow_the_umask(tmp_path, umask):
    with atomic_file(tmp_path / "file") as temporary:
        temporary.touch()
    with atomic_folder(tmp_path / "folder") as temporary:
        (temporary / "inside").touch()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "folder/inside").stat().st_mode) == 0o640
    assert os.umask(0o027) == 0o027


@pytest.mark.parametrize("before", ["absent", "absent parents", "empty"])
def test_a_folder_appears_whole(before, tmp_path):
    path = tmp_path / "parents/of/it" if before == "absent parents" else tmp_path / "it"
    if before == "empty":
        path.mkdir()
    with atomic_folder(path) as temporary:
        (temporary / "sub").mkdir()
        (temporary / "sub" / "a.txt").write_text("new")
        assert not path.exists() or not any(path.iterdir())
    assert (path / "sub" / "a.txt").read_text() == "new"
    assert names(path.parent) == ["it"]


def test_a_folder_replaces_another_only_if_told(tmp_path):
    path = tmp_path / "it"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(ValueError, match=r"it exists and is not empty.*overwr"), atomic_folder(path):
        pytest.fail("the block must not run")
    assert names(path) == ["old"]
    with atomic_folder(path, overwrite=True) as temporary:
        assert names(temporary) == []
        (temporary / "new").touch()
        assert names(path) == ["old"]
    assert names(path) == ["new"]
    assert names(tmp_path) == ["it"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_never_replaces_a_file(overwrite, tmp_path):
    (tmp_path / "it").write_text("old")
    with pytest.raises(ValueError, match="it must be a folder"), atomic_folder(tmp_path / "it", overwrite):
        pytest.fail("the block must not run")
    assert (tmp_path / "it").read_text() == "old"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_folder(error, tmp_path):
    path = tmp_path / "it"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(error):
        fill(atomic_folder(path, overwrite=True), lambda temporary: (temporary / "half").touch(), error)
    assert names(tmp_path) == ["it"]
    assert names(path) == ["old"]
    with pytest.raises(error):
        fill(atomic_folder(tmp_path / "other"), error)
    assert names(tmp_path) == ["it"]


def test_a_folder_that_someone_else_has_filled_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "it"

    def fill_the_target(temporary):
        (temporary / "mine").touch()
        path.mkdir()
        (path / "theirs").touch()

    with pytest.raises((ValueError, OSError), match="it"):
        fill(atomic_folder(path), fill_the_target)
    assert names(path) == ["theirs"]
    assert names(tmp_path) == ["it"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "old").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target", target_is_directory=True)
    with atomic_folder(tmp_path / "link", overwrite=True) as temporary:
        (temporary / "new").touch()
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "target") == ["new"]
    assert names(tmp_path) == ["link", "target"]


def test_the_working_directory_can_be_filled(tmp_path, monkeypatch):
    folder = tmp_path / "it"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with atomic_folder(".") as temporary:
        (temporary / "new").touch()
    assert names(folder) == ["new"]
    assert names(tmp_path) == ["it"]


KILLED = """
import sys, time
from hf_lineage.files import atomic_file, atomic_folder
with atomic_folder(sys.argv[1] + "/folder") as folder, atomic_file(sys.argv[1] + "/file") as file:
    (folder / "half").write_text("half")
    file.write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_a_killed_process_leaves_nothing_under_the_final_names(tmp_path):
    (tmp_path / "file").write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": REPOSITORY},
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    process.stdout.close()
    assert (tmp_path / "file").read_text() == "old"
    assert not (tmp_path / "folder").exists()
    assert all(name.startswith((".file.", ".folder.")) for name in set(names(tmp_path)) - {"file"})


REPLACED_AGAIN_AND_AGAIN = """
import sys
from hf_lineage.files import atomic_file
number = 0
while True:
    number += 1
    with atomic_file(sys.argv[1]) as file:
        file.write_text(f"{number} " * 20_000)
    if number == 1:
        print("ready", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_a_reader_never_sees_half_a_file(tmp_path):
    path = tmp_path / "file"
    process = subprocess.Popen(
        [sys.executable, "-c", REPLACED_AGAIN_AND_AGAIN, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": REPOSITORY},
    )
    try:
        assert process.stdout.readline() == "ready\n"
        end = time.monotonic() + 0.5
        versions = set()
        while time.monotonic() < end:
            values = path.read_text().split()
            assert len(values) == 20_000
            assert len(set(values)) == 1
            versions.add(values[0])
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()
    assert len(versions) > 1
