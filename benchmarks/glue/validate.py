"""Check predictions against GLUE's format: `python -m benchmarks.glue.validate ZIP_OR_FOLDER`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.glue.leaderboard import PREDICTION_FILES, check_submission


def main(argv: Sequence[str] | None = None) -> int:
    """Print every fault, or what was checked.

    Args:
        argv: The arguments without the program's name; those of this process by default.

    Returns:
        0 without faults, 1 with some, 2 if there is nothing to read.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.glue.validate", description=__doc__)
    parser.add_argument("path", type=Path, metavar="ZIP_OR_FOLDER", help="submission.zip, or a folder of its files.")
    parser.add_argument("--allow_missing", action="store_true", help="Accept a part of the leaderboard's files.")
    arguments = parser.parse_args(argv)
    try:
        faults = check_submission(arguments.path, arguments.allow_missing)
    except ValueError as error:
        print(f"benchmarks.glue.validate: {error}", file=sys.stderr)
        return 2
    for fault in faults:
        print(fault)
    if faults:
        return 1
    expected = f"{len(PREDICTION_FILES)} files of {sum(file.rows for file in PREDICTION_FILES)} rows"
    print(f"{arguments.path}: right in every row ({'of ' if arguments.allow_missing else ''}{expected})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
