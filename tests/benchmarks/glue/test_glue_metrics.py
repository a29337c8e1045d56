import dataclasses
import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn_metrics

from benchmarks.glue.metrics import METRICS, TaskMetrics, score
from benchmarks.glue.tasks import GLUE_TASKS, ZH_TASKS, Task, get_suite

ALL_TASKS = [*GLUE_TASKS.values(), *ZH_TASKS.values(), *get_suite("minisuite").values()]
REFERENCES = {
    "accuracy": sklearn_metrics.accuracy_score,
    "f1": sklearn_metrics.f1_score,
    "matthews_correlation": sklearn_metrics.matthews_corrcoef,
    "pearson": lambda references, predictions: float(stats.pearsonr(references, predictions).statistic),
    "spearman": lambda references, predictions: float(stats.spearmanr(references, predictions).statistic),
}
FEW = settings(max_examples=25, deadline=None)


@st.composite
def classifications(draw, num_labels: int):
    size = draw(st.integers(1, 30))
    ids = st.lists(st.integers(0, num_labels - 1), min_size=size, max_size=size)
    return draw(ids), draw(ids)


@st.composite
def scores(draw):
    size = draw(st.integers(2, 30))
    values = st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=size, max_size=size)
    return draw(values), draw(values)


def compute(name: str, predictions, references) -> float:
    result = METRICS[name]().compute(predictions=predictions, references=references)
    assert list(result) == [name]
    return result[name]


@FEW
@given(classifications(num_labels=3))
def test_accuracy_is_that_of_sklearn(data):
    predictions, references = data
    assert compute("accuracy", *data) == sklearn_metrics.accuracy_score(references, predictions)


@FEW
@given(classifications(num_labels=2))
def test_f1_is_that_of_sklearn(data):
    predictions, references = data
    assume(1 in predictions + references)
    assert compute("f1", *data) == sklearn_metrics.f1_score(references, predictions)


@FEW
@given(classifications(num_labels=3))
def test_matthews_correlation_is_that_of_sklearn(data):
    predictions, references = data
    assume(len({*predictions}) > 1 and len({*references}) > 1)
    assert compute("matthews_correlation", *data) == sklearn_metrics.matthews_corrcoef(references, predictions)


@FEW
@given(scores())
def test_correlations_are_those_of_scipy_and_never_nan(data):
    predictions, references = data
    for name, function in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, expected = compute(name, *data), float(function(predictions, references).statistic)
        assert value == (expected if math.isfinite(expected) else 0.0)


@pytest.mark.parametrize("name", ["matthews_correlation", "pearson", "spearman"])
@pytest.mark.parametrize("data", [([1, 1, 1], [0, 1, 0]), ([0, 1, 0], [1, 1, 1]), ([1], [1])])
def test_constant_input_gives_zero_and_a_warning(name: str, data):
    with pytest.warns(UserWarning, match="are equal; 0.0 is reported"):
        assert compute(name, *data) == 0.0


def test_f1_without_the_class_gives_zero_and_a_warning():
    with pytest.warns(UserWarning, match="class 1; 0.0 is reported"):
        assert compute("f1", [0, 0], [0, 0]) == 0.0


def test_f1_of_one_class_on_one_side_is_defined():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compute("f1", [1, 1, 1], [0, 1, 0]) == 0.5
        assert compute("f1", [0, 0, 0], [0, 1, 0]) == 0.0


@pytest.mark.parametrize("name", ["mrpc", "stsb"])
def test_batches_add_up(name: str):
    task = GLUE_TASKS[name]
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 11)) if task.is_regression else rng.integers(0, 2, size=(2, 11))
    whole, parts = TaskMetrics(task), TaskMetrics(task)
    whole.add_batch(*values)
    for start in (0, 4, 10):
        parts.add_batch(*values[:, start : {0: 4, 4: 10, 10: 11}[start]])
    computed = parts.compute()
    assert list(computed) == list(task.metrics)
    assert computed == whole.compute()
    assert score(computed, task) == pytest.approx(sum(computed.values()) / 2)


def test_metrics_start_anew_after_compute():
    metrics = TaskMetrics(GLUE_TASKS["sst2"])
    metrics.add_batch([1], [0])
    assert metrics.compute() == {"accuracy": 0.0}
    metrics.add_batch([1], [1])
    assert metrics.compute() == {"accuracy": 1.0}


def test_bad_batches_are_refused():
    metrics = TaskMetrics(GLUE_TASKS["stsb"])
    with pytest.raises(ValueError, match="must be finite"):
        metrics.add_batch([0.0, math.nan], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"got \(2, 1\) and \(2,\)"):
        metrics.add_batch([[0.0], [1.0]], [0.0, 1.0])


def test_unknown_metrics_are_named():
    with pytest.raises(ValueError, match=r"\('bleu',\); allowed: one or more of accuracy"):
        TaskMetrics(dataclasses.replace(GLUE_TASKS["sst2"], metrics=("bleu",)))


def test_nothing_is_left_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr("evaluate.config.HF_METRICS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    compute("accuracy", [1, 0], [1, 1])
    assert list(tmp_path.iterdir()) == []


@st.composite
def answers(draw, task: Task):
    """Predictions and references of a task; either side may be constant."""
    size = draw(st.integers(2, 40))
    one = st.floats(0, 5, width=32) if task.is_regression else st.integers(0, len(task.labels) - 1)
    side = st.one_of(st.lists(one, min_size=size, max_size=size), one.map(lambda value: [value] * size))
    return draw(side), draw(side)


@pytest.mark.parametrize("task", ALL_TASKS, ids=lambda task: task.name)
def test_metrics_of_every_task_are_those_of_the_libraries(task: Task):
    @settings(max_examples=20, deadline=None)
    @given(answers(task))
    def check(data):
        predictions, references = data
        metrics = TaskMetrics(task)
        cut = len(predictions) // 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for part in (slice(cut), slice(cut, None)):
                metrics.add_batch(predictions[part], references[part])
            computed = metrics.compute()
            expected = {name: REFERENCES[name](references, predictions) for name in task.metrics}
        assert list(computed) == list(task.metrics)
        for name, value in expected.items():
            assert computed[name] == pytest.approx(value if math.isfinite(value) else 0.0, abs=1e-12)
        assert all(math.isfinite(value) for value in computed.values())
        is_constant = len({*predictions}) == 1 or len({*references}) == 1
        correlations = {"matthews_correlation", "pearson", "spearman"} & {*task.metrics}
        if is_constant:
            assert all(computed[name] == 0.0 for name in correlations)
            assert len([note for note in metrics.notes if "are equal; 0.0 is reported" in note]) == len(correlations)

    check()


def test_notes_are_those_of_the_last_computation():
    metrics = TaskMetrics(GLUE_TASKS["stsb"])
    metrics.add_batch([1.0, 1.0], [0.0, 1.0])
    with pytest.warns(UserWarning, match="are equal"):
        metrics.compute()
    assert metrics.notes == [
        f"{name} is undefined because all predictions are equal; 0.0 is reported." for name in ("Pearson", "Spearman")
    ]
    metrics.add_batch([1.0, 2.0], [0.0, 1.0])
    assert metrics.compute() == pytest.approx({"pearson": 1.0, "spearman": 1.0})
    assert metrics.notes == []
