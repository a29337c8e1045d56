"""Command lines as others may read them: without secrets, and without the folders of a machine."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "***"
_SECRET_NAME = re.compile(r"TOKEN(?!I)|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY", re.IGNORECASE)
_SECRET_FLAG = re.compile(r"^--?[\w-]*(token|secret|password|passwd|credential|api[_-]?key)$", re.IGNORECASE)
_HUB_TOKEN = re.compile(r"\b(hf|api_org)_[A-Za-z0-9]{20,}\b")
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+@")
_SHORTEST_SECRET = 8  # shorter values, such as "1", would be found everywhere
# The start of an absolute path
_ROOT = r"(?:file:/*|~|[A-Za-z]:(?=[\\/])|\\(?=\\))?[\\/](?![\\/])"
# A value that is a path and nothing else, so that spaces belong to it; and one among others, but no part of a URL
_WHOLE_PATH = re.compile(rf"""^(?P<before>(?:--?[\w-]+=)?)(?P<path>{_ROOT}[^,;"'\])}}]*)$""")
_PATH = re.compile(rf"""(?P<before>^|[=,;:"'\s\[({{])(?P<path>{_ROOT}[^,;"'\s\])}}]*)""")


def without_secrets(words: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
    """Returns a command line in which no token, password or key can be read.

    Hidden are values of environment variables whose names speak of secrets, tokens of the Hub, users and passwords in
    addresses, and what follows a flag such as `--hub_token`.

    Args:
        words: The command line, word by word.
        environment: Variables by name; those of this process by default.
    """
    environment = os.environ if environment is None else environment
    values = [
        value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET
    ]
    public: list[str] = []
    is_secret = False
    for word in words:
        flag, equals, _ = word.partition("=")
        if is_secret and not word.startswith("-"):
            word = HIDDEN
        elif equals and _SECRET_FLAG.match(flag):
            word = f"{flag}={HIDDEN}"
        is_secret = bool(_SECRET_FLAG.match(word)) and os.sep not in word
        for value in values:
            word = word.replace(value, HIDDEN)
        public.append(_USER_OF_URL.sub(f"{HIDDEN}@", _HUB_TOKEN.sub(HIDDEN, word)))
    return public


def hide_secrets(content: Any) -> Any:
    """Returns JSON's strings, lists and dictionaries with every string as in `without_secrets`."""
    if isinstance(content, dict):
        return {
            name: HIDDEN if isinstance(value, str) and _SECRET_FLAG.match(f"--{name}") else hide_secrets(value)
            for name, value in content.items()
        }
    if isinstance(content, str):
        return without_secrets([content])[0]
    return [hide_secrets(item) for item in content] if isinstance(content, (list, tuple)) else content


def without_folders(text: str) -> str:
    """Returns a text in which of each absolute path only the last name is left."""
    path = _WHOLE_PATH if _WHOLE_PATH.match(text) else _PATH
    return path.sub(lambda found: found["before"] + _last_name(found["path"]), text)


def public_command(words: Sequence[str]) -> str:
    """Returns a command line for a shell, without secrets and without the folders of a machine.

    Args:
        words: The command line, as in `sys.orig_argv`.
    """
    public = [without_folders(word) for word in without_secrets(words)]
    if public and re.match(r"(.*[\\/])?python[\d.]*(\.exe)?$", public[0]):
        public[0] = "python"
    return shlex.join(public)


def _last_name(path: str) -> str:
    names = [name for name in re.split(r"[\\/]+", path) if name not in ("", "~")]
    return names[-1] if names else "."


__all__ = ["HIDDEN", "hide_secrets", "public_command", "without_folders", "without_secrets"]
