"""From a matplotlib figure to an SVG element of an HTML page."""

import io
from contextlib import AbstractContextManager
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.figure import Figure

PANEL_INCHES = (3.6, 2.5)  # about as wide as a narrow screen, so that letters keep their size
NUM_SERIES = 6
TEXT, AXIS, GRID, MUTED = "#010001", "#010002", "#010003", "#010004"
SERIES = tuple(f"#02000{number}" for number in range(1, NUM_SERIES + 1))
# Colour in matplotlib -> colour on the page, which knows whether it is light or dark
_PAGE_COLORS = {
    TEXT: "var(--text)",
    AXIS: "var(--axis)",
    GRID: "var(--grid)",
    MUTED: "var(--muted)",
    **{color: f"var(--series-{number})" for number, color in enumerate(SERIES, start=1)},
}
_STYLE: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.edgecolor": AXIS,
    "axes.labelcolor": TEXT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": AXIS,
    "ytick.color": AXIS,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "text.color": TEXT,
    # A name with dollar signs is a name, not a formula.
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "benchmarks.report",
}
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def styled() -> AbstractContextManager[None]:
    """Return the context in which figures are drawn."""
    return mpl.rc_context(_STYLE)


def to_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Return a figure as an SVG element without fixed colours, font or size.

    Args:
        figure: Drawn in `styled`, in this module's colours.
        name: Unique in the page; begins the ids.
        title: What is shown, for those who do not see it.
        description: Its numbers, in words.
    """
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata=_METADATA)
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            # matplotlib's style would hold for the whole page.
            if child.tag in (f"{_SVG}style", f"{_SVG}metadata"):
                parent.remove(child)
    _name_apart(root, name)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        for attribute, value in element.attrib.items():
            if attribute in ("style", "fill", "stroke"):
                element.set(attribute, _to_page_colors(value))
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    _describe(root, name, title, description)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _name_apart(root: ElementTree.Element, name: str) -> None:
    """Make ids unique in the page, and drop those that nothing refers to."""
    referred = set()
    for element in root.iter():
        target = element.attrib.pop(f"{_XLINK}href", "").removeprefix("#")
        if target:
            referred.add(target)
            element.set("href", f"#{name}-{target}")
        clip = element.get("clip-path")
        if clip is not None:
            identifier = clip.removeprefix("url(#").removesuffix(")")
            referred.add(identifier)
            element.set("clip-path", f"url(#{name}-{identifier})")
    for element in root.iter():
        identifier = element.attrib.pop("id", "")
        if identifier in referred:
            element.set("id", f"{name}-{identifier}")


def _to_page_colors(style: str) -> str:
    for color, on_page in _PAGE_COLORS.items():
        style = style.replace(color, on_page)
    return style


def _describe(root: ElementTree.Element, name: str, title: str, description: str) -> None:
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        element.text = text
        root.insert(position, element)
