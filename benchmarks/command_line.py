"""What the commands of the benchmarks share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_line_errors(program: str) -> Iterator[None]:
    """Makes an error in what the user gave one line on stderr, and exit status 2.

    Args:
        program: The name that the line begins with.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
