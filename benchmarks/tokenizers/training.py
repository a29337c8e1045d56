"""What training a unigram vocabulary costs against SentencePiece called directly on the same prepared text."""

import multiprocessing
import resource
import statistics
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


@dataclass(frozen=True)
class TrainingCost:
    """Seconds and bytes of each variant, by run, and whether both gave the same pieces and scores.

    Args:
        seconds: Wall clock of the training alone, imports left out.
        peak_bytes: The highest resident memory of the process.
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
    """Trains an ALBERT-style vocabulary on all lines, each time in a process of its own.

    SentencePiece alone is given a file of the prepared text, which is written beforehand, outside of its time.

    Args:
        inputs: Files or folders of text.
        folder: Where to write.
        vocab_size: Number of pieces.
        repeats: Runs of each variant.
    """
    seconds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    peaks: dict[str, list[int]] = {variant: [] for variant in VARIANTS}
    prepared = folder / "prepared.txt"
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(_prepare, (inputs, prepared))
    for _ in range(repeats):
        for variant in VARIANTS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                taken, peak = pool.apply(_train, (variant, inputs, prepared, folder, vocab_size))
            seconds[variant].append(taken)
            peaks[variant].append(peak)
    pieces = [read_sentencepiece_model(_model(folder, variant)).vocab for variant in VARIANTS]
    return TrainingCost(seconds, peaks, pieces[0] == pieces[1])


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


def _train(variant: str, inputs: Sequence[Path], prepared: Path, folder: Path, vocab_size: int) -> tuple[float, int]:
    start = time.perf_counter()
    if variant == "ours":
        text = TextLines(inputs, held_out=0)
        unigram.train_albert_tokenizer(text, folder / variant, vocab_size, overwrite=True)
    else:
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            input=str(prepared),
            model_prefix=str(_model(folder, variant).with_suffix("")),
            model_type="unigram",
            vocab_size=vocab_size,
            character_coverage=0.99995,
            **unigram.ALBERT.ids,
            control_symbols=list(unigram.ALBERT.control_symbols),
            user_defined_symbols=list(unigram.USER_DEFINED_SYMBOLS),
            normalization_rule_name="identity",
            pretokenization_delimiter=unigram._PIECE_BOUNDARY,
            num_threads=unigram._THREADS,
            minloglevel=unigram._ERRORS_ONLY,
        )
    taken = time.perf_counter() - start
    return taken, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _model(folder: Path, variant: str) -> Path:
    return folder / "ours" / "spiece.model" if variant == "ours" else folder / "direct.model"
