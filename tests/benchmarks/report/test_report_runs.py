import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.report.averages import average_rows
from benchmarks.report.collect import read_run
from benchmarks.report.published import PUBLISHED, published_scores
from benchmarks.report.runs import Estimate, group_runs, split_suites


@pytest.fixture(scope="session")
def rows(make_run):
    """Group runs made by `make_run`, given as its keyword arguments."""

    def group(*options):
        return group_runs([read_run(make_run(**option), str(index)) for index, option in enumerate(options)])

    return group


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=6))
def test_estimates_are_the_mean_and_deviation_of_the_sample(values):
    estimate = Estimate.of(values)
    assert estimate.mean == pytest.approx(statistics.fmean(values))
    assert estimate.count == len(values)
    if len(values) == 1:
        assert estimate.deviation is None
    else:
        assert estimate.deviation == pytest.approx(statistics.stdev(values))
    assert Estimate.of([None, *values, None]) == estimate
    assert Estimate.of([None]) is None


def test_runs_that_differ_in_their_seed_share_a_row(rows):
    (row,) = rows({"seed": 2, "scores": (0.6,)}, {"seed": 1, "scores": (0.8,)}, {"seed": 3, "scores": (0.7,)})
    assert [run.seed for run in row.runs] == [1, 2, 3]
    assert (row.best.mean, row.best.deviation, row.best.count) == (pytest.approx(0.7), pytest.approx(0.1), 3)
    assert row.differing == ()


@pytest.mark.parametrize(
    ("other", "differing"),
    [
        ({"arguments": {"learning_rate": 1e-5}}, ("learning_rate=0.001", "learning_rate=1e-05")),
        ({"platform": {"num_processes": 2, "mixed_precision": "no"}}, ("num_processes=1", "num_processes=2")),
        ({"parameters": {"total": 5}}, ("parameters=192000", "parameters=5")),
        (
            {"data": {"splits": {"validation": {"rows": 9, "is_subset": False}}}},
            ("train rows=100, validation rows=100", "train rows=None, validation rows=9"),
        ),
        (
            {"arguments": {"max_train_samples": 9}, "data": {"train_examples": 9, "train_was_cut": True}},
            ("max_train_samples=None", "max_train_samples=9"),
        ),
    ],
)
def test_runs_of_other_settings_are_never_averaged_together(rows, other, differing):
    found = rows({}, {"seed": 2, **other})
    assert {", ".join(row.differing) for row in found} == {*differing}
    assert [len(row.runs) for row in found] == [1, 1]
    assert len({row.label for row in found}) == 2


def test_a_model_has_the_same_labels_in_every_task(rows):
    slow, fast = {"arguments": {"learning_rate": 1e-5}}, {"arguments": {"learning_rate": 1e-3}}
    found = rows({**slow, "task": "cola"}, {**fast, "task": "cola"}, {**slow, "task": "rte"})
    assert sorted((row.first.task, *row.differing) for row in found) == [
        ("cola", "learning_rate=0.001"),
        ("cola", "learning_rate=1e-05"),
        ("rte", "learning_rate=1e-05"),
    ]


def test_arguments_that_do_not_matter_do_not_part_runs(rows):
    (row,) = rows({}, {"seed": 2, "arguments": {"output_dir": "elsewhere", "save_model": "none"}})
    assert len(row.runs) == 2


def test_a_seed_that_is_there_twice_is_an_error_that_names_both_files(rows):
    with pytest.raises(ValueError, match="1 and 0 are runs of the same model, task, settings and seed"):
        rows({}, {})


def test_rows_are_in_the_order_of_the_suite(rows):
    found = rows({"task": "rte"}, {"task": "mnli"}, {"task": "cola", "model": "z"}, {"task": "cola", "model": "A"})
    assert [(row.first.task, row.label) for row in found] == [
        ("cola", "A"),
        ("cola", "z"),
        ("mnli", "m"),
        ("rte", "m"),
    ]


def test_suites_stay_apart_also_ones_that_are_not_known(rows, make_run):
    unknown = read_run({**make_run(model="x"), "suite": "future"}, "here")
    glue = read_run(make_run(), "there")
    mini = read_run(make_run(task="sentiment", suite="minisuite"), "elsewhere")
    parts = split_suites(group_runs([unknown, glue, mini]))
    assert [[row.first.suite for row in part] for part in parts] == [["future"], ["glue"], ["minisuite"]]


def test_marks_tell_what_keeps_scores_from_being_compared(rows):
    subset = {"train": {"rows": 9999, "is_subset": True}, "validation": {"rows": 13, "is_subset": True}}
    data = {"splits": subset, "missing_splits": ["validation_mismatched"], "train_examples": 7, "train_was_cut": True}
    subset["train"]["bad_rows"] = 2
    selection = {"dev_selected": True, "selected": {"learning_rate": 1e-3}, "tried": [{}, {}, {}]}
    (row,) = rows({"data": data, "stopped_early": True, **selection})
    assert row.marks == [
        "train is a subset (9999 rows)",
        "validation is a subset (13 rows)",
        "2 damaged rows of train left out",
        "trained on 7 examples",
        "no validation_mismatched",
        "dev-selected among 3 settings: learning_rate=0.001",
        "stopped early (1 of 1 seeds)",
    ]
    assert row.flags == "tvcdm"
    (evaluated,) = rows({"data": {"train_examples": 0}})
    assert (evaluated.marks, evaluated.flags) == (["evaluated only"], "e")
    (plain,) = rows({})
    assert (plain.marks, plain.flags) == ([], "")


def test_notes_of_the_metrics_are_marks(rows):
    validation = {"validation": {"accuracy": 0.5, "loss": 1.0, "examples": 2, "notes": ["All predictions are equal."]}}
    constant = {"seed": 2, "best": {"epoch": 1, "score": 0.5, "validation": validation}}
    (row,) = rows({}, constant)
    assert row.marks == ["All predictions are equal. (1 of 2 seeds)"]
    assert row.metric_names == ["accuracy"]


def test_seeds_of_different_origin_are_marked(rows):
    (row,) = rows(
        {"versions": {"torch": "2.6"}},
        {
            "seed": 2,
            "git": {"commit": "f", "has_changes": True},
            "platform": {"num_processes": 1, "mixed_precision": "no"},
        },
    )
    assert row.marks == [f"seeds ran with different {what}" for what in ("commits", "package versions", "machines")]


def test_averages_count_each_task_once_and_leave_wnli_out_besides(rows):
    scores = {"sst2": 0.8, "rte": 0.6, "wnli": 0.4}
    (average,) = average_rows(rows(*({"task": task, "scores": (score,)} for task, score in scores.items())))
    assert average.best.mean == pytest.approx(0.6)
    assert average.best_without_wnli.mean == pytest.approx(0.7)
    assert average.best.deviation is None
    assert average.missing == ("cola", "mrpc", "qqp", "stsb", "mnli", "qnli")


def test_the_deviation_of_an_average_is_that_of_the_seeds_means(rows):
    options = [
        {"task": task, "seed": seed, "scores": (score,)}
        for task, of_seed in {"sst2": (0.8, 0.9), "rte": (0.6, 0.5)}.items()
        for seed, score in enumerate(of_seed, start=1)
    ]
    (average,) = average_rows(rows(*options))
    assert (average.best.mean, average.best.deviation) == (pytest.approx(0.7), pytest.approx(0))
    (uneven,) = average_rows(rows(*options[:-1]))
    assert (uneven.best.mean, uneven.best.deviation) == (pytest.approx((0.85 + 0.6) / 2), None)
    assert uneven.best_without_wnli is None


def test_an_average_picks_no_setting_and_needs_several_tasks(rows):
    other = {"arguments": {"learning_rate": 1e-5}}
    assert [average.label for average in average_rows(rows({}, {"task": "rte"}, other))] == ["m (learning_rate=0.001)"]
    assert [average.label for average in average_rows(rows({}, {"task": "rte"}, other, {"task": "rte", **other}))] == [
        "m (learning_rate=0.001)",
        "m (learning_rate=1e-05)",
    ]
    assert average_rows(rows({}, {"seed": 2})) == []


def test_confusion_matrices_are_summed_over_seeds_if_all_have_one(rows):
    (row,) = rows({"scores": (0.8,)}, {"seed": 2, "scores": (0.5,)})
    assert row.confusion("validation") == [[130, 70], [70, 130]]
    assert row.confusion("test") is None
    (partly,) = rows({"scores": (0.8,)}, {"seed": 2, "scores": (0.5,), "bare": True, "parameters": {"total": 192_000}})
    assert partly.confusion("validation") is None


def test_published_figures_stand_only_beside_the_same_data(rows):
    (row,) = rows({"task": "mrpc"})
    found = {PUBLISHED[number - 1].system: score for number, score in published_scores(row).items()}
    assert found == {"BiLSTM on ELMo": pytest.approx(76.55), "BERT-base (cased)": pytest.approx(86.46)}
    for data in (
        {"train_was_cut": True},
        {"missing_splits": ["validation"]},
        {"train_examples": 0},
        {"splits": {"validation": {"rows": 3, "is_subset": True}}},
    ):
        (other,) = rows({"task": "mrpc", "data": data})
        assert published_scores(other) == {}
    (mini,) = rows({"task": "sentiment", "suite": "minisuite"})
    assert published_scores(mini) == {}


def test_published_figures_have_as_many_numbers_as_the_task_has_metrics():
    for published in PUBLISHED:
        for task, figures in published.figures.items():
            # of MNLI a source may give the mean of the two splits
            assert len(figures) in ({1, 2} if task == "mnli" else {2} if task in ("mrpc", "qqp", "stsb") else {1})
            assert all(0 < figure < 100 for figure in figures)
