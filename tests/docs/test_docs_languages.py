"""Both READMEs say the same things."""

import io
import re
import tokenize

import pytest
from docs_pages import headings, links, table_rows, tokens_of

ENGLISH, CHINESE = "README.md", "README.zh-CN.md"
READMES = [ENGLISH, CHINESE]


def without_comments(language: str, code: str) -> str:
    """Code as it runs."""
    if language == "python":
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        return " ".join(token.string for token in tokens if token.type != tokenize.COMMENT)
    return "\n".join(re.sub(r"(^|\s)#.*$", "", line).rstrip() for line in code.splitlines())


def structure(page: str) -> list[str]:
    """Headings, paragraphs, lists, tables and blocks in their order."""
    return [f"{token.type} {token.tag} {token.info}".strip() for token in tokens_of(page) if token.type != "inline"]


def code(page: str) -> list[str]:
    return [without_comments(token.info, token.content) for token in tokens_of(page) if token.type == "fence"]


def numbers(page: str) -> list[list[str]]:
    """The numbers of each section, whatever their order; "93.6 million" and "93.6M" are the same."""
    sections: list[list[str]] = [[]]
    for token in tokens_of(page):
        if token.type == "heading_open":
            sections.append([])
        for child in token.children or ():
            if child.type == "text":
                sections[-1] += re.findall(r"\d+(?:[.,]\d+)*(?:e-?\d+)?", child.content)
    return [sorted(section) for section in sections]


def names(page: str) -> list[list[str]]:
    """What stands in backticks, by section, whatever the order."""
    sections: list[list[str]] = [[]]
    for token in tokens_of(page):
        if token.type == "heading_open":
            sections.append([])
        sections[-1] += [child.content for child in token.children or () if child.type == "code_inline"]
    return [sorted(section) for section in sections]


def test_headings_are_as_many_and_of_the_same_levels():
    levels = [[heading.level for heading in headings(page)] for page in READMES]
    assert levels[0] == levels[1]
    assert len(levels[0]) > 10


def test_paragraphs_lists_and_tables_follow_each_other_alike():
    assert structure(ENGLISH) == structure(CHINESE)


def test_tables_have_as_many_cells():
    assert [len(row) for row in table_rows(ENGLISH)] == [len(row) for row in table_rows(CHINESE)]


def test_code_is_the_same_but_for_comments():
    assert code(ENGLISH) == code(CHINESE)


@pytest.mark.parametrize("of", [numbers, names])
def test_numbers_and_names_are_the_same(of):
    for english, chinese in zip(of(ENGLISH), of(CHINESE), strict=True):
        assert english == chinese


def test_links_lead_to_the_same_places():
    other = {ENGLISH: CHINESE, CHINESE: ENGLISH}
    assert [other.get(link, link) for link in links(CHINESE)] == links(ENGLISH)


def test_both_lead_to_each_other():
    assert links(ENGLISH)[0] == CHINESE
    assert links(CHINESE)[0] == ENGLISH


def test_other_headings_are_in_the_language_of_the_page():
    for heading in headings(CHINESE):
        assert heading.text in ("hf-lineage", "ELMo") or re.search(r"[\u4e00-\u9fff]", heading.text)
    assert not any(re.search(r"[\u4e00-\u9fff]", heading.text) for heading in headings(ENGLISH))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a  # b", "a"), ('x = "#"  # c', 'x = "#"')],
)
def test_comments_are_cut_off(text, expected):
    assert without_comments("python", text).split() == expected.split()
    assert without_comments("bash", "make demo   # 训练") == "make demo"
