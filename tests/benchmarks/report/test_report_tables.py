import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.report.collect import collect
from benchmarks.report.markdown import render_markdown
from benchmarks.report.tables import count_text

Rows = list[dict[str, str]]


def parse(markdown: str) -> dict[str, Rows]:
    """Read the tables of a Markdown text by their headings; all lines of one must be equally long."""
    found = {}
    for part in re.split(r"^### ", markdown, flags=re.MULTILINE)[1:]:
        lines = [line for line in part.splitlines() if line.startswith("|")]
        assert len({len(line) for line in lines}) <= 1
        cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
        found[part.splitlines()[0]] = [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]
    return found


@pytest.fixture
def markdown(write, make_run):
    """Render runs made by `make_run`, given as its keyword arguments."""
    return lambda *options, **others: render_markdown(collect([write(*(make_run(**o) for o in options), **others)]))


def test_scores_of_a_task_are_mean_and_deviation_over_seeds(markdown):
    options = [{"seed": seed, "scores": (score, score / 2)} for seed, score in ((2, 0.6), (1, 0.8), (3, 0.7))]
    (row,) = parse(markdown(*options))["Scores of every task"]
    assert (row["score (best epoch)"], row["score (last epoch)"]) == ("70.0 ± 10.0", "35.0 ± 5.0")
    assert (row["majority"], row["examples"], row["n"], row["seeds"]) == ("50.0", "100", "3", "1, 2, 3")
    assert row["metrics (best epoch)"] == "accuracy 70.0 ± 10.0"
    assert row["notes"] == ""


def test_a_single_seed_has_no_deviation(markdown):
    text = markdown({"scores": (0.6,)})
    (row,) = parse(text)["Scores of every task"]
    assert (row["score (best epoch)"], row["n"]) == ("60.0", "1")
    assert not re.search(r"\d ±", text)


def test_both_splits_of_mnli_and_both_metrics_are_shown_and_counted_once(markdown):
    found = parse(markdown({"task": "mnli", "scores": (0.5,)}, {"task": "mrpc", "scores": (0.7,)}))
    by_task = {row["task"]: row["metrics (best epoch)"] for row in found["Scores of every task"]}
    assert by_task == {
        "mnli": "validation_matched accuracy 50.0, validation_mismatched accuracy 50.0",
        "mrpc": "accuracy 70.0, f1 70.0",
    }
    (average,) = found["GLUE average"]
    assert average["mean (best epoch)"] == "60.0"
    assert average["tasks"] == "2 of 9 (no cola, sst2, qqp, stsb, qnli, rte, wnli)"
    assert "without WNLI (best)" not in average


def test_the_glue_average_is_given_with_and_without_wnli(markdown):
    tasks = ("cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte")
    options = [{"task": task, "scores": (0.9,)} for task in tasks] + [{"task": "wnli", "scores": (0.0,)}]
    (row,) = parse(markdown(*options))["GLUE average"]
    assert (row["tasks"], row["mean (best epoch)"], row["without WNLI (best)"]) == ("all 9", "80.0", "90.0")


def test_models_stand_above_the_majority_and_published_figures(markdown):
    subset = {"splits": {"train": {"rows": 9, "is_subset": True}}}
    rows = parse(markdown({"task": "cola", "scores": (0.5,)}, {"scores": (0.8,), "data": subset}))["Scores by model"]
    assert rows[0] == {"model": "m", "cola": "50.0", "sst2": "80.0 (t)", "n": "1"}
    assert rows[1] == {"model": "majority class", "cola": "50.0", "sst2": "50.0", "n": "-"}
    bert = next(row for row in rows if "BERT-base" in row["model"])
    assert bert == {"model": "[2] BERT-base (cased) (published, not ours)", "cola": "56.5", "sst2": "-", "n": "-"}


def test_sources_of_published_figures_are_given_and_only_of_those_used(markdown):
    found = parse(markdown({"task": "mrpc"}))["Published figures"]
    assert [row["system"] for row in found] == ["BiLSTM on ELMo", "BERT-base (cased)"]
    assert "arXiv:1804.07461" in found[0]["source"]
    cut = {"train_was_cut": True}
    assert "Published figures" not in parse(markdown({"task": "rte", "data": cut, "seed": 5}))


def test_marks_and_differing_settings_are_noted(markdown):
    slow = {"arguments": {"learning_rate": 1e-5}, "dev_selected": True}
    rows = parse(markdown({}, slow))["Scores of every task"]
    assert [row["notes"] for row in rows] == ["learning_rate=0.001", "dev-selected; learning_rate=1e-05"]


def test_costs_are_shown_as_far_as_they_are_known(markdown):
    (row,) = parse(markdown({}))["Costs"]
    assert row["parameters"] == "192 k"
    assert row["by part"] == "embeddings 120 k, encoder 70 k, classifier 2 k"
    assert (row["FLOPs, forward, an example"], row["FLOPs, training"]) == ("12 M", "3.6 T")
    assert row["inference, ms an example, batch of 1"] == "4.2"
    assert row["inference, ms an example, batch of 32"] == "0.8"
    assert row["peak memory"] == "512.0 MB"


def test_unknown_costs_have_no_column(markdown):
    (row,) = parse(markdown({"bare": True}))["Costs"]
    assert [*row] == ["task", "model", "parameters", "training examples/s", "run, s"]


def test_commands_are_given_once_without_the_folder_of_the_interpreter(markdown):
    text = markdown({"seed": 1}, {"seed": 2}, {"task": "rte"}, {"task": "rte", "seed": 2, "command": ["py", "it's"]})
    commands = text[text.index("### Commands") :]
    assert commands.count("```bash") == 2
    assert "m: sst2 (seeds 1, 2); rte (seed 1):\n\n```bash\npython3 -m benchmarks.glue" in commands
    assert "/usr/bin" not in commands
    assert "py 'it'\"'\"'s'" in commands


def test_names_stay_within_their_cell_and_are_no_html(markdown):
    text = markdown({"model": "a|b\n<img src=x onerror=alert(1)> & c", "command": ["python", "``` <b>"]})
    (row,) = parse(text)["Scores of every task"]
    assert row["model"] == r"a\|b &lt;img src=x onerror=alert(1)> &amp; c"
    assert "````bash\npython '``` <b>'\n````" in text


def test_each_suite_has_its_own_part(markdown):
    text = markdown({}, {"task": "sentiment", "suite": "minisuite"})
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == ["GLUE", "minisuite"]
    assert "Mean over tasks" not in text
    assert "GLUE average" not in text


def test_measurements_of_speed_and_memory_have_tables(markdown, make_speed):
    case = {"name": "a", "bytes": {"baseline": [2e6, 4e6], "candidate": [1e6]}, "ratio_of_medians": 0.33}
    memory = {"benchmark": "benchmarks.speed.memory", "family": "xlnet", "cases": [case]}
    found = parse(markdown(albert=make_speed(), xlnet=memory))
    fast, slow = found["Speed of albert"]
    assert (fast["times faster, wall clock"], fast["wanted"]) == ("2.50 (2.00 to 3.00)", "2.00")
    assert (slow["times faster, wall clock"], slow["wanted"]) == ("0.80 (0.70 to 0.90)", "1.50, missed")
    (row,) = found["Peak memory of xlnet"]
    assert [*row.values()] == ["a", "3.0 MB", "1.0 MB", "0.33"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (999, "999"),
        (999.6, "1 k"),
        (1234, "1.23 k"),
        (999_499, "999 k"),
        (999_500, "1 M"),
        (3.6e12, "3.6 T"),
    ],
)
def test_counts_have_three_digits_and_a_prefix(value, text):
    assert count_text(value) == text


@given(st.floats(1e-3, 9e20))
def test_counts_are_close_to_the_number(value):
    number, _, prefix = count_text(value).partition(" ")
    size = dict(zip(["", *"kMGTPE"], (1000**power for power in range(7)), strict=True))[prefix]
    assert float(number) * size == pytest.approx(value, rel=5.1e-3)
