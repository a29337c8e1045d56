"""The models that led to today's, as transformers classes.

Importing this package makes its model types known to transformers' Auto classes and does nothing else: the models, and
torch with them, are imported when they are first used.
"""

import importlib

from .auto import PUBLIC_NAMES, register

__version__ = "0.1.0"

register()


def __getattr__(name: str):
    if name in PUBLIC_NAMES:
        return getattr(importlib.import_module(PUBLIC_NAMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *PUBLIC_NAMES])


__all__ = ["__version__", *PUBLIC_NAMES]
