import re
from collections import Counter
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import pytest

import benchmarks.report
from benchmarks.report.collect import collect
from benchmarks.report.page import render_page
from benchmarks.report.series import MARKERS
from benchmarks.report.svg import SERIES

VOID = {"meta", "link", "br", "img", "input", "hr"}
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> $\\frac{1}{2}$ \x00 & {{ 7 * 7 }}"
STYLE = Path(benchmarks.report.__file__).parent / "templates" / "style.css"


class Page(HTMLParser):
    """Tags with their attributes, the texts within each kind of tag, and whether tags match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        for tag in self._open:
            self.texts[tag][-1] += data

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module")
def render(write, make_run):
    """Render runs made by `make_run`, given as its keyword arguments."""
    return lambda *options, **others: render_page(collect([write(*(make_run(**o) for o in options), **others)]))


@pytest.fixture(scope="module")
def full(render, make_speed) -> str:
    """A page with everything: two models, two seeds, two suites and a measurement."""
    options = [
        {"task": task, "model": model, "seed": seed, "suite": suite}
        for (suite, task), model, seed in product(
            [("glue", "sst2"), ("glue", "mnli"), ("minisuite", "sentiment")], ["m", EVIL], [1, 2]
        )
    ]
    case = {"name": EVIL, "bytes": {"baseline": [2e6], "candidate": [1e6]}, "ratio_of_medians": 0.5}
    memory = {"benchmark": "benchmarks.speed.memory", "family": "xlnet", "cases": [case]}
    return render(*options, albert=make_speed(), xlnet=memory)


def test_the_page_needs_nothing_but_itself(full):
    page = Page(full)
    assert not re.search(r"https?:|//\w|@import|@font-face", full)
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "img", "iframe", "object", "embed", "base", "form"})
    assert page.attributes("src") == []
    assert all(target.startswith(("#", "data:")) for target in page.attributes("href"))
    assert all(target.startswith("#") for target in re.findall(r"url\((.*?)\)", full))
    assert any("default-src 'none'" in content for content in page.attributes("content"))


def test_names_are_text_wherever_they_stand(full):
    page = Page(full)
    assert not [name for name in {name for _, attributes in page.tags for name in attributes} if name.startswith("on")]
    assert any("<script>alert(1)</script>" in cell and "{{ 7 * 7 }}" in cell for cell in page.texts["td"])
    assert any("<script>alert(1)</script>" in text for text in page.texts["desc"])
    assert any("<script>alert(1)</script>" in text for text in page.texts["text"])
    assert any("$\\frac{1}{2}$" in text for text in page.texts["text"])


def test_ids_are_unique_and_every_reference_has_its_target(full):
    page = Page(full)
    ids = Counter(page.attributes("id"))
    assert {name for name, count in ids.items() if count > 1} == set()
    referred = {name for value in page.attributes("aria-labelledby") for name in value.split()}
    referred |= {target[1:] for target in page.attributes("href") if target.startswith("#")}
    referred |= {target[1:] for target in re.findall(r"url\((.*?)\)", full)}
    assert referred <= set(ids)


def test_every_plot_is_described(full):
    page = Page(full)
    plots = [attributes for tag, attributes in page.tags if tag == "svg" and attributes.get("role") == "img"]
    assert len(plots) == page.count("figure") == len(page.texts["figcaption"]) == len(page.texts["desc"])
    assert any("m: score 70.0 ± 0.0 at 192 k parameters" in text for text in page.texts["desc"])
    others = [attributes for tag, attributes in page.tags if tag == "svg" and attributes not in plots]
    assert all(attributes["aria-hidden"] == "true" for attributes in others)
    assert "en" in page.attributes("lang")
    assert any("width=device-width" in content for content in page.attributes("content"))


def test_all_kinds_of_plots_and_tables_are_there(full):
    page = Page(full)
    headings = " ".join(page.texts["h2"] + page.texts["h3"] + page.texts["summary"])
    for title in (
        "GLUE",
        "minisuite",
        "Score against parameters",
        "Score against training FLOPs",
        "Score against inference latency, batches of 1",
        "Score against inference latency, batches of 32",
        "Learning curves",
        "Confusion matrices",
        "Commands",
        "Speed of albert",
        "Peak memory of xlnet",
    ):
        assert title in headings


def test_colours_are_the_pages(full):
    plots = "".join(re.findall(r"<figure>.*?</figure>", full, re.DOTALL))
    assert set(re.findall(r"#[0-9a-f]{6}\b", plots)) <= {"#000000"}  # of clip paths, which are not seen
    assert "var(--series-1)" in plots
    assert "var(--text)" in plots


def test_what_is_not_known_has_no_plot(render):
    headings = " ".join(Page(render({"bare": True, "scores": (0.5,)})).texts["h3"])
    assert "Score against parameters" in headings
    for title in ("FLOPs", "latency", "Learning curves", "Confusion"):
        assert title not in headings


def test_a_band_needs_several_seeds(render):
    assert "fill-opacity: 0.2" not in render({})
    assert "fill-opacity: 0.2" in render({"task": "rte", "seed": 1}, {"task": "rte", "seed": 2})


def test_confusion_matrices_name_the_labels_and_sum_the_seeds(render):
    page = Page(render({"scores": (0.8,)}, {"seed": 2, "scores": (0.5,)}))
    assert any("sst2: m, sum of 2 seeds" in caption for caption in page.texts["caption"])
    assert {"negative", "positive"} <= set(page.texts["th"])
    assert any(cell.startswith("130") and "65 %" in cell for cell in page.texts["td"])


def test_labels_of_a_suite_that_is_not_known_are_numbers(write, make_run):
    page = Page(render_page(collect([write({**make_run(), "suite": "future"})])))
    assert "future" in page.texts["h2"]
    assert {"0", "1"} <= set(page.texts["th"])
    own = {**make_run(arguments={"labels": "bad, good"}), "suite": "files"}
    assert {"bad", "good"} <= set(Page(render_page(collect([write(own)]))).texts["th"])


def test_the_same_results_give_the_same_page(make_run, write):
    collected = collect([write(make_run(), make_run(seed=2))])
    assert render_page(collected) == render_page(collected)


def luminance(color: str) -> float:
    values = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_colours_have_the_contrast_that_wcag_asks_for():
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in STYLE.read_text().split("@media")[:2])
    assert {*light} == {*dark}
    for theme in (light, dark):
        for background in (theme["background"], theme["surface"]):
            assert contrast(theme["text"], background) >= 7
            assert contrast(theme["muted"], background) >= 4.5
        drawn = [theme[f"series-{number}"] for number in range(1, len(SERIES) + 1)]
        assert all(contrast(color, theme["background"]) >= 3 for color in [*drawn, theme["axis"]])
        assert len({*drawn}) == len(SERIES)


def test_models_differ_in_shape_as_well_as_colour():
    looks = {(index % len(SERIES), index % len(MARKERS)) for index in range(len(SERIES) * len(MARKERS))}
    assert len(looks) == len(SERIES) * len(MARKERS)
    assert all(-1.001 <= value <= 1.001 for marker in MARKERS for point in marker for value in point)
