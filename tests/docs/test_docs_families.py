"""The pages of the families have one outline, and their tables of fields are those of the classes."""

import ast
import re

import pytest
from docs_pages import headings, spans_of, table_rows

from hf_lineage import ElmoConfig, LineageAlbertConfig, LineageXLNetConfig

PAGES = {"elmo": ElmoConfig, "albert": LineageAlbertConfig, "xlnet": LineageXLNetConfig}


def fields(config_class) -> list[str]:
    """The fields that a class says of its own."""
    return [name for name, kind in config_class.__annotations__.items() if "ClassVar" not in str(kind)]


@pytest.mark.parametrize(("page", "config_class"), PAGES.items())
def test_table_has_every_field_with_its_default(page, config_class):
    rows = [row for row in table_rows(f"docs/{page}.md") if len(row) == 3 and re.fullmatch(r"`\w+`", row[0].content)]
    said = {spans_of(name)[0]: ast.literal_eval(spans_of(default)[0]) for name, default, _ in rows}
    defaults = {name: getattr(config_class(), name) for name in fields(config_class)}
    if config_class is LineageXLNetConfig:
        defaults["d_head"] = None  # which the configuration fills in
    assert said == defaults


@pytest.mark.parametrize("config_class", PAGES.values())
def test_docstring_has_every_field(config_class):
    documented = {
        name
        for line in (config_class.__doc__ or "").splitlines()
        if re.match(r" {8}\w+ \(", line)
        for name in re.findall(r"(\w+) \(", line)
    }
    assert set(fields(config_class)) <= documented


@pytest.mark.parametrize("page", PAGES)
def test_pages_have_one_outline(page):
    outline = ["Equations", "Configuration", "Differences from the original", "transformers", "Speed"]
    found = [heading.text for heading in headings(f"docs/{page}.md") if heading.level == 2]
    places = [max(place for place, text in enumerate(found) if part in text) for part in outline]
    assert places == sorted(places)
