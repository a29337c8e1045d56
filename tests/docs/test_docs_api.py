"""Everything public has a docstring, and the API reference is built from them."""

import importlib
import inspect
import pkgutil
import warnings

import pytest

import hf_lineage
from docs.build_api import build_api

MODULES = [
    module.name
    for module in pkgutil.walk_packages(hf_lineage.__path__, "hf_lineage.")
    if not module.name.endswith("__main__")
]


def own_members(owner: type) -> list[tuple[str, object]]:
    """The public methods and properties that a class defines itself."""
    return [
        (name, getattr(member, "fget", None) or getattr(member, "__func__", member))
        for name, member in vars(owner).items()
        if not name.startswith("_") and isinstance(member, (property, classmethod, staticmethod, type(own_members)))
    ]


@pytest.mark.parametrize("name", ["hf_lineage", *MODULES])
def test_modules_and_what_they_offer_have_docstrings(name):
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    for public in getattr(module, "__all__", ()):
        found = getattr(module, public)
        if not callable(found) or getattr(found, "__module__", "").partition(".")[0] != "hf_lineage":
            continue  # a constant, or an application of typer
        if inspect.isclass(found) or inspect.isfunction(found):
            assert found.__doc__, f"{name}.{public}"
        for member, function in own_members(found) if inspect.isclass(found) else ():
            assert inspect.getdoc(function), f"{name}.{public}.{member}"


@pytest.mark.parametrize("name", hf_lineage.PUBLIC_NAMES)
def test_docstrings_of_public_functions_tell_the_arguments(name):
    found = getattr(hf_lineage, name)
    functions = {name: found} if inspect.isfunction(found) else dict(own_members(found))
    for called, function in functions.items():
        parameters = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
        documented = (function.__doc__ or "") + (found.__doc__ or "")
        if called != "forward" or not parameters:
            continue
        assert "Args:" in documented, f"{name}.{called}"
        for parameter in parameters:
            assert parameter in documented, f"{name}.{called}: {parameter}"


def test_reference_is_built_without_warnings(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        build_api(tmp_path, "hf_lineage.xlnet.permutation_xlnet")
    page = (tmp_path / "hf_lineage" / "xlnet" / "permutation_xlnet.html").read_text(encoding="utf-8")
    assert "Who cannot see whom" in page
    # the sections of a docstring are read as such
    assert "<h6 id=" in page
    assert "Args:" not in page


def test_reference_finds_what_is_imported_when_it_is_used():
    pdoc = pytest.importorskip("pdoc.doc")
    importlib.import_module("docs.build_api")._show_what_is_lazy()
    module = pdoc.Module(hf_lineage)
    assert {*hf_lineage.PUBLIC_NAMES} <= {member.name for member in module.members.values() if member.obj is not pdoc.empty}
    assert {"albert", "elmo", "xlnet", "pretraining"} <= {submodule.name for submodule in module.submodules}
