"""`hf-lineage embed` and `hf-lineage elmo-cache`: vectors of words, in and out of context."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import checked_source, quiet_progress

if TYPE_CHECKING:
    from rich.progress import Progress


def embed(
    model: Annotated[str, typer.Argument(help="Folder or Hub name of a model of this package or of transformers.")],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="Text, plain, .gz or .zst; - for standard input.")],
    output: Annotated[Path, typer.Argument(help="File (hdf5, safetensors) or folder (parquet, npy) to write.")],
    layers: Annotated[str, typer.Option(help="all, top, average, or ELMo's scalar mix: mix.")] = "all",
    output_format: Annotated[
        str | None, typer.Option("--format", help="hdf5, safetensors, parquet or npy; by default by OUTPUT's name.")
    ] = None,
    input_format: Annotated[
        str | None, typer.Option(help="text, jsonl, conllu or conll; by default by INPUT's name.")
    ] = None,
    tokenize: Annotated[str, typer.Option(help="How text becomes words: whitespace or words.")] = "whitespace",
    field: Annotated[str | None, typer.Option(help="Key of the words or the text in JSON objects.")] = None,
    column: Annotated[int, typer.Option(help="Column of the word in conll, from 1.")] = 1,
    errors: Annotated[str, typer.Option(help="What is not UTF-8: strict refuses it, replace reads on.")] = "strict",
    pooling: Annotated[str, typer.Option(help="A word is the mean of its sub-words, or the first.")] = "mean",
    batch_tokens: Annotated[int, typer.Option(help="Words of a batch, padding included.")] = 2048,
    cache_size: Annotated[int, typer.Option(help="Words whose context-free vectors ELMo remembers.")] = 32768,
    vocabulary_cache: Annotated[Path | None, typer.Option(help="File of `hf-lineage elmo-cache`.")] = None,
    vocabulary: Annotated[Path | None, typer.Option(help="The words of that file, if it lacks them.")] = None,
    device: Annotated[str | None, typer.Option(help="Where to compute; by default a GPU if there is one.")] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Compute in float32, bfloat16 or float16; by default in what the weights are saved in."),
    ] = None,
    forget_sentences: Annotated[bool, typer.Option(help="Write the vectors without the sentences.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an output, finished or not.")] = False,
) -> None:
    """Write the vectors of every word of a text. A run that was killed goes on when it is started again."""
    from ..embedding.outputs import checked_format
    from ..embedding.reading import SentenceReader

    checked_format(output, output_format)
    reader = SentenceReader(source, input_format, tokenize, field, column, errors)
    quiet_progress()
    from ..embedding.encoders import ElmoEncoder, load_encoder
    from ..embedding.run import embed_file

    encoder = load_encoder(
        checked_source(model),
        layers,
        pooling,
        _device(device),
        batch_tokens,
        cache_size,
        vocabulary_cache,
        vocabulary,
        dtype,
    )
    with _progress("embed", "tokens") as progress:
        task = progress.add_task("embed", total=None)
        started = progress.get_time()
        result = embed_file(
            encoder,
            reader,
            output,
            output_format,
            batch_tokens,
            not forget_sentences,
            overwrite,
            lambda done: progress.update(task, completed=done.tokens - done.resumed, total=done.total - done.resumed),
        )
        seconds = progress.get_time() - started
    said = f"{output}: {result.sentences:,} sentences, {result.tokens:,} tokens"
    if result.computed:
        said += f", {result.computed / seconds:,.0f} tokens/s"
    if result.computed < result.tokens:
        said += f", {result.tokens - result.computed:,} of them by an earlier run"
    if isinstance(encoder, ElmoEncoder) and result.computed:
        said += f", {encoder.embedder.cache_statistics.hit_rate:.1%} of the words known from before"
    typer.echo(said)


def elmo_cache(
    model: Annotated[str, typer.Argument(help="Folder or Hub name of an ELMo model.")],
    vocabulary: Annotated[Path, typer.Argument(help="Words, one a line; plain, .gz or .zst.")],
    output: Annotated[Path, typer.Argument(help="File to write, .hdf5 (as bilm-tf's) or .safetensors.")],
    device: Annotated[str | None, typer.Option(help="Where to compute; by default a GPU if there is one.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a file that exists.")] = False,
) -> None:
    """Write the context-free vectors of a vocabulary, for `hf-lineage embed --vocabulary-cache` and bilm-tf."""
    from ..elmo.vocabulary_cache_elmo import check_cache_name, read_words, write_vocabulary_cache

    check_cache_name(output)
    if output.exists() and not overwrite:
        raise ValueError(f"{output} exists: choose another name, or overwrite it (--overwrite)")
    words = read_words(vocabulary)
    quiet_progress()
    from ..embedding.encoders import ElmoEncoder, load_encoder

    encoder = load_encoder(checked_source(model), device=_device(device))
    if not isinstance(encoder, ElmoEncoder):
        raise ValueError(f"{model} is no ELMo model")
    with _progress("elmo-cache", "words") as progress:
        task = progress.add_task("elmo-cache", total=len(words))
        embedder = encoder.embedder
        write_vocabulary_cache(
            embedder.model, embedder.tokenizer, words, output, lambda done: progress.advance(task, done)
        )
    typer.echo(f"{output}: {len(words):,} words, vectors of {embedder.hidden_size // 2}")


def _device(name: str | None) -> str:
    import torch

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"no device {name!r}: {error}") from error
    return name


@contextmanager
def _progress(description: str, unit: str) -> Iterator["Progress"]:
    """A bar with speed and remaining time, on terminals only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} {unit}/s" if speed else "")

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Speed(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        yield progress


__all__ = ["elmo_cache", "embed"]
