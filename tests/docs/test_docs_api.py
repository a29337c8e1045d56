"""Everything public has a docstring, and the API reference is built from them."""

import importlib
import inspect
import pkgutil
import re
import warnings
from types import FunctionType

import pdoc.doc
import pytest
from pdoc.doc import empty

import hf_lineage
from docs.build_api import build_api, names_shown

MODULES = [
    module.name
    for module in pkgutil.walk_packages(hf_lineage.__path__, "hf_lineage.")
    if not module.name.endswith("__main__")
]


def own_methods(owner: type) -> dict[str, object]:
    """The public methods and properties that a class defines itself."""
    kinds = (property, classmethod, staticmethod, FunctionType)
    return {
        name: getattr(owner, name)
        for name, member in vars(owner).items()
        if not name.startswith("_") and isinstance(member, kinds)
    }


@pytest.mark.parametrize("name", ["hf_lineage", *MODULES])
def test_modules_and_what_they_offer_have_docstrings(name):
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    for public in getattr(module, "__all__", ()):
        found = getattr(module, public)
        if inspect.isfunction(found) or inspect.isclass(found):
            assert found.__doc__, f"{name}.{public}"
        for method, function in own_methods(found).items() if inspect.isclass(found) else ():
            assert inspect.getdoc(function), f"{name}.{public}.{method}"


FORWARDS = {
    name: vars(getattr(hf_lineage, name))["forward"]
    for name in hf_lineage.PUBLIC_NAMES
    if "forward" in getattr(getattr(hf_lineage, name), "__dict__", {})
}


@pytest.mark.parametrize("name", FORWARDS)
def test_every_argument_of_a_model_is_documented(name):
    forward = inspect.unwrap(FORWARDS[name])
    for parameter in inspect.signature(forward).parameters.values():
        if parameter.name != "self" and parameter.kind != parameter.VAR_KEYWORD:
            assert re.search(rf"\b{parameter.name}\b", forward.__doc__), parameter.name


def test_reference_is_built_without_warnings(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        build_api(tmp_path, "hf_lineage.xlnet.permutation_xlnet")
    page = (tmp_path / "hf_lineage" / "xlnet" / "permutation_xlnet.html").read_text(encoding="utf-8")
    assert "Who cannot see whom" in page
    # the sections of a docstring are read as such
    assert "<h6 id=" in page
    assert "Args:" not in page


def test_reference_has_what_is_imported_when_it_is_used():
    before = {*vars(hf_lineage)}
    with names_shown():
        module = pdoc.doc.Module(hf_lineage)
        shown = {name for name, member in module.members.items() if member.obj is not empty}
        inside = {submodule.name for submodule in module.submodules}
    assert {*hf_lineage.PUBLIC_NAMES} <= shown
    assert {"albert", "elmo", "xlnet", "pretraining"} <= inside
    # and the package is again what it was
    assert not vars(hf_lineage).keys() & {*hf_lineage.PUBLIC_NAMES} - before
    assert hf_lineage.__all__ == ["__version__", *hf_lineage.PUBLIC_NAMES]
