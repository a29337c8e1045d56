"""What the one-line file in a repository imports whose code is this package.

A class that transformers gets from a repository is told to copy its own file whenever it is saved. That is right for
code that lives in the repository; for a class of this package it would go on for the whole process, and what is copied
would lack the rest. So repositories get the classes in a wrapper that takes no such order.
"""

import wrapt

import hf_lineage


class PackageClass(wrapt.ObjectProxy):
    """A class of this package for a repository, which stays the class that it is."""

    def register_for_auto_class(self, auto_class: str | type | None = None) -> None:
        """Leaves the class alone: what is saved needs no code, the package is the code."""


def __getattr__(name: str) -> PackageClass:
    if name in hf_lineage.PUBLIC_NAMES:
        return PackageClass(getattr(hf_lineage, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["PackageClass"]
