"""Whether a run of `benchmarks.glue` that is killed again and again ends as one that is not.

python -m benchmarks.resume_check --kills 20 --output_dir DIR --model_name_or_path … (arguments of benchmarks.glue)

One task, one seed. An undisturbed run comes first. Then the same command is killed (SIGKILL) some milliseconds after
each of so many random steps, wherever it is by then, and started again each time. At the end the weights of the kept
models must be the same bit for bit, and so must all losses and scores.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from benchmarks.glue.__main__ import main as run_glue
from benchmarks.glue.arguments import parse_arguments
from benchmarks.glue.results import RESULTS_FILE, read_json
from benchmarks.glue.training import Training

_KILL_AT = "RESUME_CHECK_KILL_AT"
_LONGEST_DELAY_SECONDS = 0.05


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Args:
        steps: Optimizer steps of the run.
        killed_at: Steps after which it was killed.
        differing_weights: Names of weights that are not the same.
        has_same_scores: Whether all losses and scores are the same.
    """

    steps: int
    killed_at: list[int]
    differing_weights: list[str]
    has_same_scores: bool

    @property
    def is_exact(self) -> bool:
        """Whether nothing differs."""
        return self.has_same_scores and not self.differing_weights


def check(kills: int, output_dir: Path, glue_arguments: Sequence[str], seed: int = 0) -> Outcome:
    """Run a command undisturbed and with kills, and compare.

    Args:
        kills: How often it is killed.
        output_dir: Folder for both runs.
        glue_arguments: Arguments of `benchmarks.glue` but `--output_dir`.
        seed: Seed of the steps at which it is killed.

    Raises:
        ValueError: If the arguments are of more than one run, or it has too few steps to be killed at.
        RuntimeError: If the command fails by itself.
    """
    whole, killed = ([*glue_arguments, f"--output_dir={output_dir / name}"] for name in ("whole", "killed"))
    runs = [_run_folder(arguments) for arguments in (whole, killed)]
    if _start(whole, None):
        raise RuntimeError("the undisturbed run failed")
    steps = read_json(runs[0] / RESULTS_FILE)["last"]["step"]
    if kills >= steps:
        raise ValueError(f"A run of {steps} steps cannot be killed at {kills} of them and then end.")
    rng, killed_at = random.Random(seed), []
    for step in sorted(rng.sample(range(1, steps), kills)):
        delay = rng.uniform(0, _LONGEST_DELAY_SECONDS)
        status = _start(killed, (step, delay))
        if status == -signal.SIGKILL:
            killed_at.append(step)
        elif status:
            raise RuntimeError(f"the run that was to be killed at step {step} failed by itself")
    if _start(killed, None):
        raise RuntimeError("the last part of the killed run failed")
    return Outcome(steps, killed_at, _differing_weights(*runs), _scores(runs[0]) == _scores(runs[1]))


def _run_folder(arguments: Sequence[str]) -> Path:
    parsed = parse_arguments(arguments)
    tasks, seeds = parsed.data.task_names, parsed.fine_tuning.seed_list
    if len(tasks) != 1 or tasks == ["all"] or len(seeds) != 1 or parsed.fine_tuning.save_model == "none":
        raise ValueError("Give one task, one seed and a model to keep: --task_name, --seeds, --save_model.")
    return parsed.fine_tuning.run_dir(tasks[0], seeds[0])


def _start(arguments: Sequence[str], kill_at: tuple[int, float] | None) -> int:
    """Run the command in a process of its own; returns its exit status, that of a kill below 0."""
    environment = {**os.environ, _KILL_AT: json.dumps(kill_at)}
    return subprocess.run([sys.executable, "-m", "benchmarks.resume_check", *arguments], env=environment).returncode


def _kill_this_process(step: int, delay: float) -> None:
    """Kill this process so many seconds after a step, whatever it is doing then."""
    running: list[Training] = []
    plain = Training.__init__

    def remember(self: Training, *arguments: Any) -> None:
        plain(self, *arguments)
        running.append(self)

    Training.__init__ = remember  # type: ignore[assignment, method-assign]

    def watch() -> None:
        while not running or running[-1].num_steps < step:
            time.sleep(0.001)
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _differing_weights(one: Path, other: Path) -> list[str]:
    expected, found = (load_file(run / "model" / "model.safetensors") for run in (one, other))
    names = sorted(expected.keys() | found.keys())
    return [
        name
        for name in names
        if name not in expected or name not in found or not torch.equal(expected[name], found[name])
    ]


def _scores(run: Path) -> list[dict[str, Any]]:
    """Return the records of all epochs without what the clock told."""
    records = read_json(run / RESULTS_FILE)["epochs"]
    return [{name: value for name, value in record.items() if not name.endswith("_seconds")} for record in records]


def main() -> None:
    """Check, say what was found, and exit with status 1 if anything differs."""
    parser = ArgumentParser(prog="python -m benchmarks.resume_check", description=__doc__, allow_abbrev=False)
    parser.add_argument("--kills", type=int, default=20, help="How often the run is killed.")
    parser.add_argument("--output_dir", type=Path, required=True, help="Folder for both runs.")
    own, glue_arguments = parser.parse_known_args()
    outcome = check(own.kills, own.output_dir, glue_arguments)
    print(
        f"{len(outcome.killed_at)} kills in a run of {outcome.steps} steps, after the steps "
        f"{', '.join(map(str, outcome.killed_at))}. Different weights: "
        f"{', '.join(outcome.differing_weights) or 'none'}. All losses and scores the same: "
        f"{'yes' if outcome.has_same_scores else 'no'}."
    )
    if not outcome.is_exact:
        raise SystemExit(1)


if __name__ == "__main__":
    if _KILL_AT in os.environ:
        if (moment := json.loads(os.environ[_KILL_AT])) is not None:
            _kill_this_process(*moment)
        run_glue()
    else:
        try:
            main()
        except ValueError as error:
            print(f"benchmarks.resume_check: {error}", file=sys.stderr)
            raise SystemExit(2) from error
