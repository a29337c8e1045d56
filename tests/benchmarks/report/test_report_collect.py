import json
import math
from pathlib import Path

import pytest

from benchmarks.report.collect import collect, read_run


def test_runs_and_measurements_are_found_below_folders_and_counted_once(write, make_run, make_speed):
    folder = write(make_run(seed=1), make_run(seed=2), albert=make_speed(), config={"model_type": "bert"})
    collected = collect([folder, folder / "0", folder / "albert.json"])
    assert [run.seed for run in collected.runs] == [1, 2]
    assert [report["family"] for report in collected.speed] == ["albert"]
    assert collected.memory == ()


def test_measurements_of_memory_are_told_from_those_of_speed(write):
    case = {"name": "a", "bytes": {"baseline": [20, 30], "candidate": [10]}, "ratio_of_medians": 0.4}
    memory = {"benchmark": "benchmarks.speed.memory", "family": "xlnet", "cases": [case]}
    assert collect([write(memory=memory)]).memory == (memory,)


def test_optional_fields_may_be_missing(make_run):
    run = read_run(make_run(bare=True, majority_baseline=None, platform=None, git=None), "here")
    assert (run.baseline, run.training_flops, run.peak_memory, run.latency, run.parts) == (None, None, None, {}, {})
    assert (run.was_dev_selected, run.stopped_early, run.num_tried, run.machine) == (False, False, 0, "")


def test_optional_fields_are_read(make_run):
    selection = {"dev_selected": True, "selected": {"learning_rate": 1e-3}, "tried": [{}, {}]}
    run = read_run(make_run(stopped_early=True, **selection), "here")
    assert run.latency == {1: 0.0042, 32: 0.0008}
    assert (run.forward_flops, run.training_flops, run.peak_memory) == (12_000_000, 3_600_000_000_000, 512_000_000)
    assert (run.was_dev_selected, run.selected, run.num_tried) == (True, {"learning_rate": 1e-3}, 2)
    assert run.stopped_early
    assert run.best.confusion == {"validation": ((80, 20), (20, 80))}
    assert run.best.metrics == {"validation": {"accuracy": 0.8}}


def test_test_splits_have_no_part_in_the_scores(make_run):
    splits = {"validation": {"rows": 9}, "test": {"rows": 7, "is_subset": True}}
    run = read_run(make_run(data={"splits": splits}), "here")
    assert (run.split_rows, run.subsets) == ({"validation": 9}, ())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": None}, "lacks 'task'"),
        ({"seed": "1"}, "seed must be an integer, got '1'"),
        ({"seed": True}, "seed must be an integer, got True"),
        ({"best": {"score": "high", "validation": {}}}, "best: score must be a finite number, got 'high'"),
        ({"best": {"score": math.nan, "validation": {}}}, "best: score must be a finite number, got nan"),
        ({"best": {"score": 1, "validation": {"v": {"f1": None}}}}, "validation: v lacks 'f1'"),
        ({"data": []}, r"data must be an object, got \[\]"),
        ({"flops": {"training_total": math.inf}}, "flops: training_total must be a finite number"),
        ({"inference_latency_seconds": {"many": 1}}, "names must be batch sizes, got 'many'"),
        (
            {"last": {"score": 1, "validation": {"v": {"confusion_matrix": [[1, 2]]}}}},
            "v: confusion_matrix must be a square of counts",
        ),
    ],
)
def test_what_is_wrong_in_a_run_is_named(make_run, change, message):
    with pytest.raises(ValueError, match=f"here.*{message}"):
        read_run({**make_run(), **change}, "here")


def test_nothing_found_missing_folders_and_damaged_files_are_named(tmp_path: Path, write, make_speed):
    with pytest.raises(ValueError, match=r"No results of benchmarks\.glue or benchmarks\.speed in "):
        collect([tmp_path])
    with pytest.raises(ValueError, match=r"no file or folder .*absent"):
        collect([tmp_path / "absent"])
    cut = json.dumps(make_speed())[:-20]
    (tmp_path / "speed.json").write_text(cut)
    with pytest.raises(ValueError, match=r"speed\.json is not a results file"):
        collect([tmp_path])
    (tmp_path / "speed.json").unlink()
    (tmp_path / "results.json").write_text('{"benchmark": "benchmarks.glue", "seed": NaN}')
    with pytest.raises(ValueError, match=r"results\.json is not a results file: NaN"):
        collect([tmp_path])


def test_measurements_that_lack_something_are_named(write, make_speed):
    with pytest.raises(ValueError, match="has no cases"):
        collect([write(albert=make_speed(cases=[]))])
    case = make_speed()["cases"][0]
    with pytest.raises(ValueError, match="cases: wall: ratio_min must be above 0, got 0"):
        collect([write(albert=make_speed(cases=[{**case, "wall": {**case["wall"], "ratio_min": 0}}]))])


def test_large_files_of_models_are_not_read(write, make_run):
    folder = write(make_run())
    (folder / "tokenizer.json").write_text("{" + " " * 1000 + '"benchmarks.speed')
    assert len(collect([folder]).runs) == 1
