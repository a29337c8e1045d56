import json
import mmap
import sys
from pathlib import Path

import pytest

from benchmarks.speed import memory, xlnet

TINY = xlnet.Sizes(
    d_model=16, n_head=2, d_inner=16, vocab_size=50, forward_layers=1, training_layers=1, shapes=((2, 8), (2, 16)),
    prompt_tokens=4, new_tokens=2,
)  # fmt: skip

linux = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux counts it")


def hold(size: int) -> None:
    """Takes memory from the system and gives it back, whatever the process has in stock."""
    with mmap.mmap(-1, size) as held:
        for place in range(0, size, mmap.PAGESIZE):
            held[place] = 1


@linux
def test_what_a_run_holds_at_once_is_counted(monkeypatch):
    """Of two sides, one holds 40 MB more for a moment and frees it."""

    class Workload:
        inputs = (0,)

        @staticmethod
        def baseline(value):
            hold(50_000_000)

        @staticmethod
        def candidate(value):
            hold(10_000_000)

    monkeypatch.setattr(memory, "select", lambda cases, names: [type("Case", (), {"build": lambda self: Workload})()])
    found = {side: memory._measure("xlnet", "any", side, 1, None) for side in ("baseline", "candidate")}
    assert 48e6 < found["baseline"] < 56e6
    assert 9e6 < found["candidate"] < 16e6


@linux
def test_a_case_runs_in_a_process_of_its_own():
    name = "pretraining-2x16"
    assert name in [case.name for case in xlnet.cases(TINY)]
    assert memory.peak_memory("xlnet", name, "candidate", threads=1, sizes=TINY) >= 0


@linux
def test_the_command_writes_a_table_and_a_file(tmp_path, monkeypatch, capsys):
    peaks = {"baseline": iter([900, 1000, 1100]), "candidate": iter([700, 800, 500])}
    monkeypatch.setattr(memory, "peak_memory", lambda family, name, side, threads: next(peaks[side]) * 10**6)
    memory.memory("xlnet", only=["generation"], repeats=3, threads=1, output=tmp_path / "out.json")
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["cases"][0]["ratio_of_medians"] == pytest.approx(0.7)
    printed = capsys.readouterr().out
    assert all(number in printed for number in ("1000", "700", "0.70"))


def test_wrong_names_are_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["memory", "gpt"])
    with pytest.raises(SystemExit) as caught:
        memory.main()
    assert caught.value.code == 2
    assert "the family must be one of albert, elmo, xlnet, got 'gpt'" in capsys.readouterr().err
