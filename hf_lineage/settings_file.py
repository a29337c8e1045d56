"""Settings of a command in a file, YAML or JSON, in place of flags."""

import difflib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml  # type: ignore[import-untyped]


class _Loader(yaml.SafeLoader):
    """YAML 1.2 in the two places where people meet the difference: 1e-3 is a number, and no is a word."""

    yaml_implicit_resolvers: ClassVar[dict] = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_settings_file(path: str) -> dict[str, Any]:
    """Reads a file of settings.

    Raises:
        ValueError: If it cannot be read, or is no mapping.
    """
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"--config: cannot read {path}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"--config: {path} must hold settings and their values, got {content!r:.80}")
    return content


def settings_as_words(values: dict[str, Any], names: Sequence[str], path: str | None) -> list[str]:
    """Returns settings from a file as they would stand on a command line, so that both are read alike.

    Args:
        values: From `read_settings_file`.
        names: The settings there are.
        path: The file, for messages.

    Raises:
        ValueError: If there is no setting of a name.
    """
    words = []
    for name, value in values.items():
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}"
            raise ValueError(f"--config: {path} has an unknown setting {name!r}{hint}")
        if value is None:
            continue
        if isinstance(value, list):
            words += [f"--{name}", *map(str, value)]
        else:
            words.append(f"--{name}={json.dumps(value) if isinstance(value, dict) else value}")
    return words


__all__ = ["read_settings_file", "settings_as_words"]
