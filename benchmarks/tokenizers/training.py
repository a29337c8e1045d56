"""What training a unigram vocabulary costs against SentencePiece called directly on the same text.

Each run has a process of its own, and the runs of each kind take turns. Two things are measured of it: the training
alone, from reading the files to the written tokenizer, and the whole process, from starting Python to its end.
Linux only: the kernel tells how much memory a training takes at most.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sentencepiece
from rich.console import Group
from rich.table import Table

from hf_lineage.albert.sentencepiece_albert import read_sentencepiece_model
from tokenizer_training import unigram
from tokenizer_training.text import TextLines
from tokenizer_training.unigram_families import ALBERT, USER_DEFINED_SYMBOLS
from tokenizer_training.unigram_text import normalization_table, prepared_sentences

LABELS = {
    "prepared": "SentencePiece, given prepared text",
    "direct": "SentencePiece, reading and preparing",
    "ours": "tokenizer_training",
}
# starts a process and waits for it: a process that this one started itself would count this one's memory as its own
_LAUNCH = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
seconds = time.perf_counter() - start
peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([done.returncode, done.stdout, done.stderr, seconds, peak]))
"""
_MEASURE = """
def _status(name):
    (line,) = (line for line in open("/proc/self/status") if line.startswith(name))
    return 1024 * int(line.split()[1])

import json, sys, time
given = json.loads(sys.argv[1])
before, start = _status("VmRSS:"), time.perf_counter()
train(given)
print(json.dumps([time.perf_counter() - start, _status("VmHWM:") - before]))
"""
_CODE = {
    "prepared": """
import sentencepiece

def train(given):
    sentencepiece.SentencePieceTrainer.train(**given["options"], input=given["prepared"])
""",
    "direct": """
import gzip
import pathlib
import sentencepiece
from hf_lineage import LineageAlbertTokenizer

def lines(inputs, normalize):
    for path in map(pathlib.Path, inputs):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as text:
                yield from map(normalize, text)

def train(given):
    normalize = LineageAlbertTokenizer().backend_tokenizer.normalizer.normalize_str
    sentences = lines(given["inputs"], normalize)
    sentencepiece.SentencePieceTrainer.train(**given["options"], sentence_iterator=sentences)
""",
    "ours": """
from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer

def train(given):
    text = TextLines(given["inputs"], held_out=0)
    train_albert_tokenizer(text, given["output"], given["options"]["vocab_size"], overwrite=True)
""",
}


@dataclass
class Runs:
    """Wall clock and peak of the resident memory of each run."""

    seconds: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)

    def add(self, seconds: float, peak_bytes: int) -> None:
        """Takes the next run."""
        self.seconds.append(seconds)
        self.peak_bytes.append(peak_bytes)

    def ratios(self, others: "Runs") -> tuple[float, float]:
        """Medians, over the runs side by side, of these runs' time and memory divided by the others'."""
        time, memory = (
            statistics.median(own / other for own, other in zip(mine, theirs, strict=True))
            for mine, theirs in ((self.seconds, others.seconds), (self.peak_bytes, others.peak_bytes))
        )
        return time, memory


@dataclass(frozen=True)
class TrainingCost:
    """The runs of each variant.

    Args:
        training: Of the training alone; memory is what it adds to that of the imports.
        process: Of the whole process; `"ours"` is `python -m tokenizer_training`.
        is_equal: Whether ours gives the pieces and scores of SentencePiece on the prepared text.
    """

    training: dict[str, Runs]
    process: dict[str, Runs]
    is_equal: bool


def measure_training(inputs: Sequence[Path], folder: Path, vocab_size: int, repeats: int) -> TrainingCost:
    """Trains an ALBERT-style vocabulary on all lines.

    The prepared text is written beforehand, outside of the time of any.

    Args:
        inputs: Files or folders of text.
        folder: Where to write.
        vocab_size: Number of pieces.
        repeats: Runs of each variant.

    Raises:
        ValueError: If a variant cannot train so.
    """
    prepared, output = folder / "prepared.txt", folder / "ours"
    _prepare(inputs, prepared)
    texts = [str(path) for path in inputs]
    given = {"inputs": texts, "prepared": str(prepared), "output": str(output)}
    options = unigram.trainer_options(ALBERT, vocab_size, 0.99995, USER_DEFINED_SYMBOLS)
    command = ["-m", "tokenizer_training", "albert", "--vocab_size", str(vocab_size), "--held_out", "0"]
    command += ["--output", str(output), "--overwrite", *texts]
    training, process = ({variant: Runs() for variant in LABELS} for _ in range(2))
    for _ in range(repeats):
        for variant in LABELS:
            arguments = {**given, "options": {**options, "model_prefix": str(folder / variant)}}
            printed, whole = _run("-c", _CODE[variant] + _MEASURE, json.dumps(arguments))
            seconds, peak_bytes = json.loads(printed.splitlines()[-1])
            training[variant].add(seconds, peak_bytes)
            if variant == "ours":
                _, whole = _run(*command)
            process[variant].add(*whole)
    models = [read_sentencepiece_model(file) for file in (folder / "prepared.model", output / "spiece.model")]
    return TrainingCost(training, process, models[0].vocab == models[1].vocab)


def render(cost: TrainingCost) -> Group:
    """Tables of what the variants cost."""
    equal = "equal to SentencePiece's on the prepared text, scores included"
    return Group(
        _table("training alone, without imports: medians", cost.training),
        _table("whole processes: medians", cost.process),
        f"The vocabulary is {equal if cost.is_equal else 'NOT ' + equal}.",
    )


def _table(title: str, runs: dict[str, Runs]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("", "seconds", "peak memory, MB"):
        table.add_column(column, justify="right")
    for variant, label in LABELS.items():
        seconds, peak_bytes = statistics.median(runs[variant].seconds), statistics.median(runs[variant].peak_bytes)
        table.add_row(label, f"{seconds:.1f}", f"{peak_bytes / 1e6:,.0f}")
    for variant in ("prepared", "direct"):
        ratios = runs["ours"].ratios(runs[variant])
        table.add_row(f"ratio to {variant}, median of pairs", *(f"{ratio:.3f}" for ratio in ratios))
    return table


def _prepare(inputs: Sequence[Path], prepared: Path) -> None:
    charsmap = normalization_table(sentencepiece, keep_accents=False)
    preparer: Any = ALBERT.tokenizer_class(_spm_precompiled_charsmap=charsmap)
    normalize = preparer.backend_tokenizer.normalizer.normalize_str
    with prepared.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in prepared_sentences(TextLines(inputs, held_out=0).read("prepare"), normalize, True):
            file.write(f"{sentence}\n")


def _run(*arguments: str) -> tuple[str, tuple[float, int]]:
    """What a Python of these arguments prints, and its seconds and peak memory."""
    launched = subprocess.run(
        [sys.executable, "-c", _LAUNCH, sys.executable, *arguments], capture_output=True, text=True, check=True
    )
    status, printed, errors, seconds, peak = json.loads(launched.stdout)
    if status:
        raise ValueError(f"training failed: {errors.strip().splitlines()[-1]}")
    return printed, (seconds, peak)
