"""Write the API reference from the docstrings: `python -m docs.build_api [--output DIR]`."""

import argparse
import pkgutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pdoc
import pdoc.render

import hf_lineage

DEFAULT_OUTPUT = Path("build", "api")


def build_api(output: Path, name: str = "hf_lineage") -> None:
    """Writes a page for each module, and what the search needs.

    Args:
        output: Folder to write to; pages that are there are replaced.
        name: The module or package to write, with all in it.

    Raises:
        RuntimeError: If a module cannot be imported, since what it imports is not installed.
    """
    pdoc.render.configure(docformat="google", show_source=False, footer_text=f"hf-lineage {hf_lineage.__version__}")
    with names_shown(), warnings.catch_warnings():
        # annotations that classes inherit name what only their own modules import
        warnings.filterwarnings("ignore", "Error parsing type annotation", UserWarning)
        warnings.filterwarnings("ignore", "Failed to run TYPE_CHECKING code", UserWarning)
        pdoc.pdoc(name, output_directory=output)


@contextmanager
def names_shown() -> Iterator[None]:
    """For a while, puts into the package what pdoc looks for in it: public names and the names of its modules."""
    package, listed = vars(hf_lineage), hf_lineage.__all__
    lazy = [name for name in hf_lineage.PUBLIC_NAMES if name not in package]
    package.update({name: getattr(hf_lineage, name) for name in lazy})
    inside = [module.name for module in pkgutil.iter_modules(hf_lineage.__path__)]
    hf_lineage.__all__ = list(dict.fromkeys([*listed, *inside]))
    try:
        yield
    finally:
        hf_lineage.__all__ = listed
        for name in lazy:
            del package[name]


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the reference and says where it is."""
    parser = argparse.ArgumentParser(prog="python -m docs.build_api", description=__doc__, allow_abbrev=False)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help=f"Folder; by default {DEFAULT_OUTPUT}.")
    arguments = parser.parse_args(argv)
    build_api(arguments.output)
    print(f"{arguments.output / 'index.html'}")


if __name__ == "__main__":
    main()
