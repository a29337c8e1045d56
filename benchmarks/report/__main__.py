"""Make tables and plots of results.

`python -m benchmarks.report DIR [DIR …] [--output FILE.html] [--markdown FILE.md]`
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import one_line_errors
from benchmarks.glue.results import write_text
from benchmarks.report.collect import Collected, collect
from benchmarks.report.markdown import render_markdown


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Folders, searched with the folders in them, or JSON files of benchmarks.glue and benchmarks.speed.",
        ),
    ],
    output: Annotated[Path | None, typer.Option(help="HTML file, with plots, that needs nothing beside it.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Markdown file; without any file it goes to stdout.")] = None,
) -> None:
    """Make tables and plots of the results in some folders."""
    render_page = _page_renderer() if output is not None else None
    collected = collect(paths)
    text = render_markdown(collected)
    if output is not None and render_page is not None:
        write_text(output, render_page(collected))
        print(f"Wrote {output}.")
    if markdown is not None:
        write_text(markdown, text)
        print(f"Wrote {markdown}.")
    if output is None and markdown is None:
        print(text, end="")


def _page_renderer() -> Callable[[Collected], str]:
    """Return `render_page`, whose libraries only the HTML report needs."""
    try:
        from benchmarks.report.page import render_page
    except ModuleNotFoundError as error:
        raise ValueError(f"The HTML report needs {error.name}: pip install '.[report]'.") from error
    return render_page


def main() -> None:
    """Run the command; an error in what the user gave is one line on stderr and exit status 2."""
    with one_line_errors("benchmarks.report"):
        typer.run(report)


if __name__ == "__main__":
    main()
