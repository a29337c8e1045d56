"""What training a unigram vocabulary costs against SentencePiece called directly on the same text.

Each runs in a Python of its own. What counts is the training, from reading the files to the written tokenizer: its
time, and by how much it lifts the resident memory at its highest; imports are left out. Linux only: the kernel tells.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from hf_lineage.albert.sentencepiece_albert import read_sentencepiece_model
from tokenizer_training import unigram
from tokenizer_training.text import TextLines

# SentencePiece given a file of text that is prepared already; given lines that are read and prepared one by one; ours
VARIANTS = ("prepared", "direct", "ours")
_MEASURE = """
def _status(name):
    (line,) = (line for line in open("/proc/self/status") if line.startswith(name))
    return 1024 * int(line.split()[1])

import json, sys, time
given = json.loads(sys.argv[1])
before, start = _status("VmRSS:"), time.perf_counter()
train(given)
print(time.perf_counter() - start, _status("VmHWM:") - before)
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


@dataclass(frozen=True)
class TrainingCost:
    """Seconds and bytes of each variant, by run.

    Args:
        seconds: Wall clock of the training.
        peak_bytes: By how much it lifts the resident memory.
        is_equal: Whether ours gives the pieces and scores of SentencePiece on the prepared text.
    """

    seconds: dict[str, list[float]]
    peak_bytes: dict[str, list[int]]
    is_equal: bool

    def median(self, of: str, variant: str) -> float:
        """The median run of a variant, in `"seconds"` or `"peak_bytes"`."""
        return statistics.median(getattr(self, of)[variant])


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
    common = {"inputs": [str(path) for path in inputs], "prepared": str(prepared), "output": str(output)}
    seconds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    peaks: dict[str, list[int]] = {variant: [] for variant in VARIANTS}
    for _ in range(repeats):
        for variant in VARIANTS:
            options = _options(folder / variant, vocab_size)
            taken, peak = _run(_CODE[variant] + _MEASURE, {**common, "options": options})
            seconds[variant].append(taken)
            peaks[variant].append(peak)
    models = [read_sentencepiece_model(file) for file in (folder / "prepared.model", output / "spiece.model")]
    return TrainingCost(seconds, peaks, models[0].vocab == models[1].vocab)


def render(cost: TrainingCost) -> Table:
    """A table of what the variants cost."""
    table = Table(title="training, medians", title_justify="left")
    for column in ("", "seconds", "peak memory, MB"):
        table.add_column(column, justify="right")
    labels = ("SentencePiece, prepared file", "SentencePiece, reading and preparing", "tokenizer_training")
    for variant, label in zip(VARIANTS, labels, strict=True):
        peak = cost.median("peak_bytes", variant) / 1e6
        table.add_row(label, f"{cost.median('seconds', variant):.1f}", f"{peak:,.0f}")
    for variant in ("prepared", "direct"):
        ratios = (cost.median(of, "ours") / cost.median(of, variant) for of in ("seconds", "peak_bytes"))
        table.add_row(f"ratio to {variant}", *(f"{ratio:.3f}" for ratio in ratios))
    equal = "equal to SentencePiece's on the prepared file, scores included"
    table.caption = f"The vocabulary is {equal if cost.is_equal else 'NOT ' + equal}."
    return table


def _prepare(inputs: Sequence[Path], prepared: Path) -> None:
    charsmap = unigram._charsmap(unigram._sentencepiece(), keep_accents=False)
    preparer: Any = unigram.ALBERT.tokenizer_class(_spm_precompiled_charsmap=charsmap)
    normalize = preparer.backend_tokenizer.normalizer.normalize_str
    with prepared.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in unigram._sentences(TextLines(inputs, held_out=0).read("prepare"), normalize):
            file.write(f"{sentence}\n")


def _options(prefix: Path, vocab_size: int) -> dict[str, Any]:
    return {
        "model_prefix": str(prefix),
        "model_type": "unigram",
        "vocab_size": vocab_size,
        "character_coverage": 0.99995,
        **unigram.ALBERT.ids,
        "control_symbols": list(unigram.ALBERT.control_symbols),
        "user_defined_symbols": list(unigram.USER_DEFINED_SYMBOLS),
        "normalization_rule_name": "identity",
        "pretokenization_delimiter": unigram._PIECE_BOUNDARY,
        "num_threads": unigram._THREADS,
        "minloglevel": unigram._ERRORS_ONLY,
    }


def _run(code: str, arguments: dict[str, Any]) -> tuple[float, int]:
    """What the code, run by a Python of its own, has measured."""
    done = subprocess.run([sys.executable, "-c", code, json.dumps(arguments)], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"training failed: {done.stderr.strip().splitlines()[-1]}")
    taken, peak = done.stdout.split()[-2:]
    return float(taken), int(peak)
