import pytest
import torch

from benchmarks.speed.cases import (
    Case,
    CaseResult,
    Workload,
    check_agreement,
    largest_difference,
    relative_difference,
    run_case,
)
from benchmarks.speed.pairs import PairTimes


class Recorder:
    """A workload of two inputs that keeps what was done with it."""

    def __init__(self, differences=0.0):
        self.done = []
        self.by_input = {"a": differences, "b": 0.0}

    def build(self):
        return Workload(
            baseline=lambda value: self.done.append(("baseline", value)),
            candidate=lambda value: self.done.append(("candidate", value)),
            inputs=["a", "b"],
            differences=self._differences,
            facts={"tokens": 3},
        )

    def _differences(self, value):
        self.done.append(("differences", value))
        return {"output": self.by_input[value], "loss": 0.0}

    def case(self, wanted=None):
        return Case("name", "what is done", "theirs", "ours", wanted=wanted, tolerance=1e-5, build=self.build)


def test_both_sides_are_compared_and_warmed_up_on_every_input_before_they_are_timed():
    recorder = Recorder(differences=1e-6)
    result = run_case(recorder.case(), num_pairs=4)
    warm_up = [(side, value) for value in "ab" for side in ("baseline", "candidate")]
    assert recorder.done[:2] == [("differences", "a"), ("differences", "b")]
    assert recorder.done[2:6] == warm_up
    assert len(recorder.done[6:]) == 2 * 4
    assert result.differences == {"output": 1e-6, "loss": 0.0}
    assert result.facts == {"tokens": 3}
    assert all(len(times.ratios) == 4 for times in result.times.values())


@pytest.mark.parametrize("difference", [2e-5, float("inf")])
def test_different_computations_are_not_timed(difference):
    recorder = Recorder(differences=difference)
    with pytest.raises(ValueError, match=r"name: ours and theirs differ in output by .*at most 1e-05"):
        run_case(recorder.case(), num_pairs=1)
    assert {what for what, _ in recorder.done} == {"differences"}


def test_the_largest_difference_over_inputs_is_kept():
    recorder = Recorder()
    recorder.by_input = {"a": 3e-6, "b": 2e-6}
    assert check_agreement(recorder.case(), recorder.build())["output"] == 3e-6


@pytest.mark.parametrize(("wanted", "expected"), [(None, None), (1.5, True), (2.0, True), (2.1, False)])
def test_fast_enough_is_the_median_by_the_wall_clock(wanted, expected):
    times = {"wall": PairTimes([2.0, 2.0, 90.0], [1.0, 1.0, 1.0]), "cpu": PairTimes([9.0] * 3, [1.0] * 3)}
    assert CaseResult(Recorder().case(wanted), {}, {}, times).is_fast_enough is expected


def test_largest_difference_is_absolute():
    assert largest_difference(torch.tensor([1.0, -5.0]), torch.tensor([1.5, -2.0])) == 3.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_a_number_differs_from_everything(bad):
    values = torch.tensor([0.0, bad])
    assert largest_difference(values, torch.zeros(2)) == float("inf")
    assert largest_difference(values, values) == float("inf")


def test_tensors_of_other_shapes_or_names_cannot_be_compared():
    with pytest.raises(ValueError, match="shapes"):
        largest_difference(torch.zeros(2), torch.zeros(1, 2))
    with pytest.raises(ValueError, match=r"only one side has \['b'\]"):
        relative_difference({"a": torch.zeros(1)}, {"a": torch.zeros(1), "b": torch.zeros(1)})


def test_relative_difference_has_one_scale():
    expected = {"large": torch.tensor([-4.0, 1.0]), "small": torch.tensor([1e-3])}
    actual = {"large": torch.tensor([-4.0, 1.0]), "small": torch.tensor([2e-3])}
    assert relative_difference(actual, expected) == pytest.approx(1e-3 / 4)
