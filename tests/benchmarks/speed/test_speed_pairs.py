import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.speed.pairs import PairTimes, schedule, time_pairs

SECONDS = st.lists(
    st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=30
)  # baseline and candidate of each pair


def test_the_summary_is_of_the_ratios_of_pairs():
    times = PairTimes(baseline=[2.0, 9.0, 4.0], candidate=[1.0, 3.0, 1.0])
    assert times.ratios == [2.0, 3.0, 4.0]
    assert times.summary() == {
        "ratio_median": 3.0,
        "ratio_min": 2.0,
        "ratio_max": 4.0,
        "baseline_seconds_median": 4.0,
        "candidate_seconds_median": 1.0,
    }


def test_what_slows_both_runs_of_a_pair_does_not_move_the_median():
    quiet = PairTimes(baseline=[2.0, 2.0, 2.0], candidate=[1.0, 1.0, 1.0])
    disturbed = PairTimes(baseline=[2.0, 20.0, 2.0], candidate=[1.0, 10.0, 1.0])
    assert disturbed.summary()["ratio_median"] == quiet.summary()["ratio_median"]
    assert sum(disturbed.candidate) > sum(quiet.candidate)


@given(SECONDS)
def test_the_median_lies_in_the_range_and_swapping_sides_inverts_it(pairs):
    baseline, candidate = map(list, zip(*pairs, strict=True))
    summary = PairTimes(baseline, candidate).summary()
    assert summary["ratio_min"] <= summary["ratio_median"] <= summary["ratio_max"]
    swapped = PairTimes(candidate, baseline).summary()
    assert swapped["ratio_min"] == pytest.approx(1 / summary["ratio_max"])
    if len(pairs) % 2:
        assert swapped["ratio_median"] == pytest.approx(1 / summary["ratio_median"])


def test_sides_of_different_length_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        PairTimes([1.0, 2.0], [1.0]).summary()


def test_one_input_is_run_in_the_order_abba():
    assert schedule(1, 4) == [(0, True), (0, False), (0, True), (0, False)]


@given(st.integers(1, 9), st.integers(1, 60))
def test_every_input_is_run_equally_often_in_both_orders(num_inputs, num_pairs):
    pairs = schedule(num_inputs, num_pairs)
    assert num_pairs <= len(pairs) < num_pairs + 2 * num_inputs
    counts = {pair: pairs.count(pair) for pair in set(pairs)}
    assert set(counts) == {(index, first) for index in range(num_inputs) for first in (True, False)}
    assert len(set(counts.values())) == 1
    assert [index for index, _ in pairs[:num_inputs]] == list(range(num_inputs))


@pytest.mark.parametrize(("num_inputs", "num_pairs"), [(0, 1), (1, 0), (1, -2)])
def test_nothing_to_time_is_an_error(num_inputs, num_pairs):
    with pytest.raises(ValueError, match="at least one"):
        schedule(num_inputs, num_pairs)


def test_each_run_is_timed_by_every_clock_and_booked_on_its_side():
    now = {"wall": 100.0, "cpu": 7.0}
    calls = []

    def pretend(side, wall, cpu):
        def run(value):
            calls.append((side, value))
            now["wall"] += wall * value
            now["cpu"] += cpu * value

        return run

    times = time_pairs(
        pretend("baseline", 4.0, 6.0),
        pretend("candidate", 1.0, 2.0),
        inputs=[1, 3],
        pairs=[(0, True), (1, False), (0, False)],
        clocks={name: lambda name=name: now[name] for name in now},
    )
    assert calls == [
        ("baseline", 1),
        ("candidate", 1),
        ("candidate", 3),
        ("baseline", 3),
        ("candidate", 1),
        ("baseline", 1),
    ]
    assert times["wall"] == PairTimes([4.0, 12.0, 4.0], [1.0, 3.0, 1.0])
    assert times["cpu"] == PairTimes([6.0, 18.0, 6.0], [2.0, 6.0, 2.0])
    assert times["cpu"].summary()["ratio_median"] == statistics.median([3.0, 3.0, 3.0])


def test_the_clocks_are_of_the_wall_and_of_the_process():
    def busy(_):
        return sum(range(20_000))

    times = time_pairs(busy, busy, [None], schedule(1, 2))
    assert set(times) == {"wall", "cpu"}
    for by_clock in times.values():
        assert len(by_clock.baseline) == len(by_clock.candidate) == 2
        assert all(seconds > 0 for seconds in by_clock.baseline + by_clock.candidate)
