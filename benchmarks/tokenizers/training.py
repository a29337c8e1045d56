"""What training a unigram vocabulary costs against SentencePiece called directly on the same prepared text.

Each runs in a Python of its own, imports included; SentencePiece's imports nothing else. Linux only: the kernel tells
the highest memory.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from hf_lineage.albert.sentencepiece_albert import read_sentencepiece_model
from tokenizer_training import unigram
from tokenizer_training.text import TextLines

VARIANTS = ("direct", "ours")
_TELL_MEMORY = """
for line in open("/proc/self/status"):
    if line.startswith("VmHWM:"):
        print(1024 * int(line.split()[1]))
"""
_CODE = {
    "direct": "import json, sys, sentencepiece\nsentencepiece.SentencePieceTrainer.train(**json.loads(sys.argv[1]))\n",
    "ours": "import json, sys\n"
    "from tokenizer_training.text import TextLines\n"
    "from tokenizer_training.unigram import train_albert_tokenizer\n"
    "given = json.loads(sys.argv[1])\n"
    "text = TextLines(given['inputs'], held_out=0)\n"
    "train_albert_tokenizer(text, given['output'], given['vocab_size'], overwrite=True)\n",
}


@dataclass(frozen=True)
class TrainingCost:
    """Seconds and bytes of each variant, by run, and whether both gave the same pieces and scores.

    Args:
        seconds: Wall clock of the process.
        peak_bytes: Its highest resident memory.
        is_equal: Whether the vocabularies are equal.
    """

    seconds: dict[str, list[float]]
    peak_bytes: dict[str, list[int]]
    is_equal: bool

    def ratio(self, of: str) -> float:
        """Ours to direct, by medians, of `"seconds"` or `"peak_bytes"`."""
        direct, ours = (statistics.median(getattr(self, of)[variant]) for variant in VARIANTS)
        return ours / direct


def measure_training(inputs: Sequence[Path], folder: Path, vocab_size: int, repeats: int) -> TrainingCost:
    """Trains an ALBERT-style vocabulary on all lines.

    SentencePiece alone is given a file of the prepared text, which is written beforehand, outside of its time.

    Args:
        inputs: Files or folders of text.
        folder: Where to write.
        vocab_size: Number of pieces.
        repeats: Runs of each variant.

    Raises:
        ValueError: If a variant cannot train so.
    """
    prepared, direct, ours = folder / "prepared.txt", folder / "direct.model", folder / "ours"
    _prepare(inputs, prepared)
    arguments: dict[str, dict[str, Any]] = {
        "direct": _direct_arguments(prepared, direct, vocab_size),
        "ours": {"inputs": [str(path) for path in inputs], "output": str(ours), "vocab_size": vocab_size},
    }
    seconds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    peaks: dict[str, list[int]] = {variant: [] for variant in VARIANTS}
    for _ in range(repeats):
        for variant in VARIANTS:
            taken, peak = _run(_CODE[variant] + _TELL_MEMORY, arguments[variant])
            seconds[variant].append(taken)
            peaks[variant].append(peak)
    models = [read_sentencepiece_model(file) for file in (direct, ours / "spiece.model")]
    return TrainingCost(seconds, peaks, models[0].vocab == models[1].vocab)


def render(cost: TrainingCost) -> Table:
    """A table of what the variants cost."""
    table = Table(title="training, medians", title_justify="left")
    for column in ("", "seconds", "peak memory, MB"):
        table.add_column(column, justify="right")
    for variant, label in zip(VARIANTS, ("SentencePiece", "tokenizer_training"), strict=True):
        peak = statistics.median(cost.peak_bytes[variant]) / 1e6
        table.add_row(label, f"{statistics.median(cost.seconds[variant]):.1f}", f"{peak:,.0f}")
    table.add_row("ratio", f"{cost.ratio('seconds'):.3f}", f"{cost.ratio('peak_bytes'):.3f}")
    table.caption = f"The vocabularies are {'equal, scores included' if cost.is_equal else 'NOT equal'}."
    return table


def _prepare(inputs: Sequence[Path], prepared: Path) -> None:
    charsmap = unigram._charsmap(unigram._sentencepiece(), keep_accents=False)
    preparer: Any = unigram.ALBERT.tokenizer_class(_spm_precompiled_charsmap=charsmap)
    normalize = preparer.backend_tokenizer.normalizer.normalize_str
    with prepared.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in unigram._sentences(TextLines(inputs, held_out=0).read("prepare"), normalize):
            file.write(f"{sentence}\n")


def _direct_arguments(prepared: Path, model: Path, vocab_size: int) -> dict[str, Any]:
    return {
        "input": str(prepared),
        "model_prefix": str(model.with_suffix("")),
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
    """Seconds and highest memory of a Python that runs the code."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, json.dumps(arguments)], capture_output=True, text=True)
    taken = time.perf_counter() - start
    if done.returncode:
        raise ValueError(f"training failed: {done.stderr.strip().splitlines()[-1]}")
    return taken, int(done.stdout.split()[-1])
