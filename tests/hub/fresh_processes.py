"""Scripts in processes that have not imported what they are about, with this package or without it.

Importing torch and transformers takes seconds, so one process imports them and forks a child for each script.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

import hf_lineage

REPOSITORY = str(Path(hf_lineage.__file__).parents[1])

_RUN_EACH = """
import json, os, sys, tempfile, traceback
paths, cases = json.loads(sys.stdin.read())
sys.path[:0] = paths
import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, TokenizersBackend
torch.set_num_threads(1)
assert "hf_lineage" not in sys.modules
def run(script, variables):
    try:
        exec(script, {"__name__": "__main__", **variables})
        return 0
    except SystemExit as error:
        return error.code
    except BaseException:
        traceback.print_exc()
        return 1
results = {}
for name, (script, variables) in cases.items():
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            status = run(script, variables)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        results[name] = [status, output.read()]
print(json.dumps(results))
"""


def run_scripts(
    cases: dict[str, tuple[str, dict]], environment: dict[str, str], site: Path | None = None
) -> dict[str, tuple[int, str]]:
    """Runs each script in a process of its own.

    Args:
        cases: Name -> script, and the variables that it finds set.
        environment: Additions to the environment.
        site: The only folder with packages beside Python's own; by default this package and all of those here.

    Returns:
        Name -> exit status, and what was printed.
    """
    isolated = [] if site is None else ["-I", "-S"]
    paths = [REPOSITORY] if site is None else [str(site)]
    result = subprocess.run(
        [sys.executable, *isolated, "-c", _RUN_EACH],
        input=json.dumps([paths, cases]),
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "0", **environment},
    )
    assert result.returncode == 0, result.stderr
    return {name: tuple(outcome) for name, outcome in json.loads(result.stdout.splitlines()[-1]).items()}


def site_with_only(names: list[str], folder: Path) -> Path:
    """Makes a folder of packages with links to some distributions and what they require, and nothing else."""
    folder.mkdir()
    for found in _with_requirements(names):
        for top in {file.parts[0] for file in found.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            link = folder / top
            if not link.exists() and not top.endswith(".pth"):
                link.symlink_to(Path(str(found.locate_file(top))))
    return folder


def _with_requirements(names: list[str]) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found[name] = distribution(name)
        for requirement in map(Requirement, found[name].requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    return list(found.values())
