"""Embedding a file: reads, computes, writes, and after a kill goes on where it was."""

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .batching import batches_by_length, windows
from .layouts import VectorShape
from .outputs import Output, checked_format, make_output
from .reading import Sentence, SentenceReader
from .survey import SentenceDigest, Survey, survey
from .work_folder import WorkFolder

_BATCHES_PER_WINDOW = 16


class Encoder(Protocol):
    """What computes the vectors of sentences.

    Args:
        shape: Shape of a sentence's vectors.
        settings: What decides, beside a sentence's words, its vectors; plain JSON values.
    """

    shape: VectorShape
    settings: dict[str, Any]

    def encode(self, batch: list[list[str]]) -> list[np.ndarray]:
        """Returns the float32 vectors of sentences, none of which is empty."""


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Args:
        tokens: Words that are done.
        total: All words.
        resumed: Words that were done by an earlier run.
    """

    tokens: int
    total: int
    resumed: int


@dataclass(frozen=True)
class EmbeddingResult:
    """What a run has written.

    Args:
        sentences: Number of sentences in the file.
        tokens: Number of words in the file.
        computed: Words that this run has computed; the others were done before.
    """

    sentences: int
    tokens: int
    computed: int


def embed_file(
    encoder: Encoder,
    reader: SentenceReader,
    output: str | os.PathLike,
    output_format: str | None = None,
    max_batch_tokens: int = 2048,
    with_sentences: bool = True,
    overwrite: bool = False,
    report: Callable[[Progress], object] | None = None,
) -> EmbeddingResult:
    """Writes the vectors of all words of a file.

    Until it is complete, the output is made in a folder `OUTPUT.partial` beside it. A run with the same arguments that
    finds such a folder goes on there, and the output is the same to the bit.

    Args:
        encoder: Computes the vectors.
        reader: Reads the sentences.
        output: The file (`hdf5`, `safetensors`) or folder (`parquet`, `npy`).
        output_format: One of those; `None` goes by the name of the output.
        max_batch_tokens: Words of a batch, padding included.
        with_sentences: Whether to write the sentences beside the vectors.
        overwrite: Whether an output, or an unfinished run with other arguments, may be replaced.
        report: Is told how far the run is.

    Raises:
        ValueError: If the input is not as it must be or changes meanwhile, the output exists, another run is making it
            or has begun it with other arguments, or an argument is out of range.
    """
    output = Path(output)
    kind = checked_format(output, output_format)
    if max_batch_tokens < 1:
        raise ValueError(f"max_batch_tokens must be at least 1, got {max_batch_tokens}")
    if not output.parent.is_dir():
        raise ValueError(f"cannot write {output}: there is no folder {output.parent}")
    work = WorkFolder(output)
    settings = {
        "format": kind,
        "with_sentences": with_sentences,
        "max_batch_tokens": max_batch_tokens,
        **reader.settings,
        **encoder.settings,
    }
    with work.locked():
        if finished := work.finished(settings):
            return EmbeddingResult(**finished, computed=0)
        if os.path.lexists(output) and not overwrite:
            raise ValueError(f"{output} exists: choose another name, or overwrite it (--overwrite)")
        made = make_output(work.path, kind, encoder.shape, with_sentences)
        found = work.begin(settings, overwrite, lambda: survey(reader, work.path))
        if work.windows is None:
            made.prepare(found)
            work.save(0)
        made.open()
        with closing(made):
            computed = _embed(encoder, reader, made, found, max_batch_tokens, work, report)
        work.finish(made.target, {"sentences": found.sentences, "tokens": found.tokens})
    return EmbeddingResult(found.sentences, found.tokens, computed)


def _embed(
    encoder: Encoder,
    sentences: Iterable[Sentence],
    output: Output,
    found: Survey,
    max_batch_tokens: int,
    work: WorkFolder,
    report: Callable[[Progress], object] | None,
) -> int:
    """Computes the windows that are not done; returns how many words these have."""
    done = work.windows or 0
    digest = SentenceDigest()
    first = tokens = resumed = 0
    for number, window in enumerate(windows(sentences, _BATCHES_PER_WINDOW * max_batch_tokens)):
        for sentence in window:
            digest.update(sentence)
        lengths = [len(sentence.tokens) for sentence in window]
        if number < done:
            resumed += sum(lengths)
            tokens = resumed
        else:
            for places in batches_by_length(lengths, max_batch_tokens):
                batch = [window[place].tokens for place in places]
                for place, vectors in zip(places, encoder.encode(batch), strict=True):
                    output.write(first + place, vectors)
                tokens += sum(map(len, batch))
                if report:
                    report(Progress(tokens, found.tokens, resumed))
            output.end_window(first, window)
            work.save(number + 1)
        first += len(window)
    if digest.hexdigest() != found.digest:
        work.give_up()  # vectors may have been written over others
        raise ValueError("the input has changed while it was read: start again")
    return tokens - resumed


__all__ = ["EmbeddingResult", "Encoder", "Progress", "embed_file"]
