import io
import json
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console

from benchmarks.speed import __main__ as main
from benchmarks.speed import albert
from benchmarks.speed.cases import Case, CaseResult
from benchmarks.speed.pairs import PairTimes
from benchmarks.speed.report import cpu_model, describe, render, write_report

TINY = albert.Sizes(
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    embedding_size=8,
    albert_vocab_size=50,
    bert_vocab_size=50,
    batch_size=2,
    num_tokens=12,
    ragged_batch_sizes=(3,),
    mean_length=6,
    median_length=5,
)


def result(name="some", wanted=None, baseline=(4.0, 9.0), candidate=(2.0, 3.0)):
    times = {clock: PairTimes(list(baseline), list(candidate)) for clock in ("wall", "cpu")}
    case = Case(name, "what is done", "Theirs", "Ours", wanted, 1e-5, build=lambda: None)
    return CaseResult(case, {"tokens": 7}, {"output": 2e-6}, times)


def rendered(report, width=120):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render(report))
    return console.export_text()


def test_the_command_writes_what_it_prints(tmp_path, monkeypatch, capsys):
    everything = albert.cases(TINY)
    monkeypatch.setattr(albert, "cases", lambda: everything)
    path = tmp_path / "albert.json"
    main.speed("albert", only=["forward", "glue-packed"], repeats=3, threads=1, output=path)
    report = json.loads(path.read_text())
    assert [case["name"] for case in report["cases"]] == ["glue-packed", "forward"]
    assert report["family"] == "albert"
    assert report["platform"]["num_threads"] == torch.get_num_threads() == 1
    assert report["versions"]["torch"] == torch.__version__
    for case in report["cases"]:
        assert case["pairs"] == len(case["wall"]["baseline_seconds"]) == len(case["cpu"]["candidate_seconds"]) == 4
        assert case["wall"]["ratio_min"] <= case["wall"]["ratio_median"] <= case["wall"]["ratio_max"]
    printed = capsys.readouterr().out
    assert "LineageAlbertModel" in printed
    assert f"{report['cases'][1]['wall']['ratio_median']:.2f}" in printed
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "gpt"}, "must be one of albert, elmo, xlnet, got 'gpt'"),
        ({"only": ["forward", "backward"]}, r"one of pretraining, .*forward, got backward"),
        ({"output": Path("no-such-folder/albert.json")}, "no folder no-such-folder"),
        ({"output": Path(__file__).parent}, "--output .* it is a folder"),
    ],
)
def test_wrong_arguments_are_found_before_work_starts(arguments, message, monkeypatch):
    monkeypatch.setattr(main, "run_case_alone", lambda *_: pytest.fail("work started"))
    with pytest.raises(ValueError, match=message):
        main.speed(**{"family": "albert", "threads": 1, **arguments})


def test_a_wrong_argument_is_one_line_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks.speed", "albert", "--only", "nothing"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        "benchmarks.speed: --only must be one of " + ", ".join(case.name for case in albert.cases()) + ", got nothing"
    ]


def test_a_report_has_the_numbers_and_what_they_were_measured_on():
    report = describe("albert", [result(wanted=2.0)])
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert set(report["versions"]) == {"hf_lineage", "python", "transformers", "torch", "numpy"}
    assert report["date"].endswith("+00:00")
    assert report["platform"]["cpu"] == cpu_model()
    (case,) = report["cases"]
    assert case["wall"] == {
        "ratio_median": 2.5,
        "ratio_min": 2.0,
        "ratio_max": 3.0,
        "baseline_seconds_median": 6.5,
        "candidate_seconds_median": 2.5,
        "baseline_seconds": [4.0, 9.0],
        "candidate_seconds": [2.0, 3.0],
    }
    assert (case["is_fast_enough"], case["pairs"], case["facts"]) == (True, 2, {"tokens": 7})


def test_the_table_says_what_was_missed():
    slow = result("slow", wanted=3.0)
    text = rendered(describe("albert", [result("free"), result("fast", wanted=2.5), slow]))
    assert text.count("missed") == 1
    for expected in ("2.50", "2.00 .. 3.00", "6500", "2500", "3.00", "what is done", "2e-06"):
        assert expected in text


@pytest.mark.skipif(not Path("/proc/cpuinfo").is_file(), reason="needs Linux's list of processors")
def test_the_processor_has_a_name():
    assert cpu_model()


def test_a_failed_write_leaves_the_old_report(tmp_path):
    path = tmp_path / "report.json"
    write_report(path, {"ratio": 1.0})
    with pytest.raises(ValueError, match="JSON"):
        write_report(path, {"ratio": float("nan")})
    assert json.loads(path.read_text()) == {"ratio": 1.0}
    assert list(tmp_path.iterdir()) == [path]
