"""Which code a repository holds, and which class in it answers in each Auto class."""

from functools import cache
from pathlib import Path

from transformers.dynamic_module_utils import get_relative_import_files

from .. import __version__
from ..auto import FAMILIES, Family

PACKAGE = Path(__file__).parents[1]
SHIM = "needs_hf_lineage"  # module of the one-line file

_SHIM_TEXT = '''"""The code of this model is the package hf-lineage (`pip install hf-lineage`)."""

from hf_lineage.hub.shim import {names}
'''
_ORIGIN = "# From hf-lineage {version} (Apache-2.0), as the code of this model.\n"


def code_files(family: Family) -> list[Path]:
    """The files of this package that a family needs to run without it.

    They are found as transformers finds them in a repository: from the configuration, the models and the tokenizer,
    along flat relative imports.
    """
    starts = [_file(module) for module in _start_modules(family)]
    needed = {path for start in starts for path in (start, *map(Path, get_relative_import_files(start)))}
    return sorted(needed)


def code_texts(family: Family, with_code: bool) -> dict[str, str]:
    """The files with code for a repository.

    Args:
        family: The model's family.
        with_code: Whether the family's files are the code, or else the package is.

    Returns:
        Name of each file and what it holds.
    """
    if with_code:
        origin = _ORIGIN.format(version=__version__)
        return {path.name: origin + path.read_text(encoding="utf-8") for path in code_files(family)}
    names = [family.config[1], family.tokenizer[1], *family.models.values()]
    return {f"{SHIM}.py": _SHIM_TEXT.format(names=", ".join(sorted(set(names))))}


@cache
def code_names() -> frozenset[str]:
    """Every name that a file with code of this package can have in a repository, whatever the family."""
    return frozenset({f"{SHIM}.py"}).union(path.name for family in FAMILIES.values() for path in code_files(family))


def model_auto_map(family: Family, with_code: bool) -> dict[str, str]:
    """The `auto_map` of config.json: each Auto class in which the family answers, and where its class is."""
    models = {
        auto_class: _reference(family.module_of(auto_class), name, with_code)
        for auto_class, name in family.models.items()
    }
    return {"AutoConfig": _reference(*family.config, with_code), **models}


def tokenizer_auto_map(family: Family, with_code: bool) -> dict[str, list[str | None]]:
    """The `auto_map` of tokenizer_config.json, in transformers' form for a tokenizer: a pair whose second is None."""
    return {"AutoTokenizer": [_reference(*family.tokenizer, with_code), None]}


def _start_modules(family: Family) -> tuple[str, ...]:
    return family.config[0], family.modeling, family.modeling_tasks, family.tokenizer[0]


def _reference(module: str, name: str, with_code: bool) -> str:
    return f"{module.rpartition('.')[2] if with_code else SHIM}.{name}"


def _file(module: str) -> Path:
    return PACKAGE.joinpath(*module.strip(".").split(".")).with_suffix(".py")


__all__ = ["code_files", "code_names", "code_texts", "model_auto_map", "tokenizer_auto_map"]
