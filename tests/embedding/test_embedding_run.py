import json
import os
import random
import resource
import signal
import sys
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest
from filelock import FileLock
from safetensors.numpy import load_file

from hf_lineage.embedding.encoders import load_encoder
from hf_lineage.embedding.outputs import FORMATS
from hf_lineage.embedding.reading import SentenceReader
from hf_lineage.embedding.run import embed_file

SUFFIX = {"hdf5": ".hdf5", "safetensors": ".safetensors", "parquet": ".parquet", "npy": ".npy"}


@pytest.fixture
def text(tmp_path) -> Path:
    """Sentences of 0 to 9 words, some of them twice."""
    generator = random.Random(0)
    lines = [" ".join(generator.choices(["a", "bb", "the", "漢字"], k=generator.randrange(10))) for _ in range(60)]
    path = tmp_path / "input.txt"
    path.write_text("\n".join(["", "the", "/ .", *lines, "the", ""]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(params=["all", "top"])
def encoder(request, elmo_folder):
    return load_encoder(str(elmo_folder), request.param)


def read(path, kind):
    """The vectors of each sentence, and the index of sentences."""
    if kind == "hdf5":
        with h5py.File(path) as file:
            assert all(file[str(number)].dtype == np.float32 for number in range(len(file) - 1))
            index = json.loads(file["sentence_to_index"][0])  # as AllenNLP's users do
            return [file[str(number)][...] for number in range(len(file) - 1)], index
    if kind == "safetensors":
        from safetensors import safe_open

        arrays = load_file(path)
        with safe_open(path, "np") as file:
            index = json.loads(file.metadata()["sentence_to_index"])
        return [arrays[str(number)] for number in range(len(arrays))], index
    if kind == "npy":
        vectors, offsets = np.load(path / "vectors.npy", mmap_mode="r"), np.load(path / "offsets.npy")
        index = json.loads((path / "sentence_to_index.json").read_text())
        arrays = [vectors[start:end] for start, end in pairwise(offsets)]
        return [array.swapaxes(0, 1) if array.ndim == 3 else array for array in arrays], index
    table = pytest.importorskip("pyarrow.parquet", reason="needs the extra embedding").read_table(path)
    assert table["sentence"].to_pylist() == list(range(len(table)))
    index = {name: str(number) for number, name in enumerate(table["text"].to_pylist())}
    counts = [len(tokens) for tokens in table["tokens"].to_pylist()]
    layers = (3,) if "list<element: list" in str(table.schema.field("vectors").type) else ()
    arrays = [
        np.array(vectors, np.float32).reshape(*layers, count, 16)
        for vectors, count in zip(table["vectors"].to_pylist(), counts, strict=True)
    ]
    return arrays, index


def content(path):
    if path.is_file():
        return path.read_bytes()
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*")}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_holds_the_vectors_of_every_line(kind, encoder, text, tmp_path):
    output = tmp_path / f"output{SUFFIX[kind]}"
    seen = []
    result = embed_file(encoder, SentenceReader(text), output, max_batch_tokens=20, report=seen.append)
    lines = text.read_text(encoding="utf-8").splitlines()
    total = sum(len(line.split()) for line in lines)
    assert (result.sentences, result.tokens, result.computed) == (len(lines), total, total)
    assert (seen[-1].tokens, seen[-1].total, seen[-1].resumed) == (total, total, 0)
    arrays, index = read(output, kind)
    assert index == {line.strip(): str(number) for number, line in enumerate(lines)}
    assert len(arrays) == len(lines)
    expected = encoder.embedder.embed_batch([line.split() for line in lines])
    for vectors, wanted in zip(arrays, expected, strict=True):
        assert vectors.shape == wanted.shape
        np.testing.assert_allclose(vectors, wanted, atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input.txt", output.name]


@pytest.mark.parametrize("kind", FORMATS)
def test_sentences_can_be_forgotten(kind, encoder, text, tmp_path):
    output = tmp_path / "output"
    embed_file(encoder, SentenceReader(text), output, kind, with_sentences=False)
    with pytest.raises((KeyError, FileNotFoundError)):
        read(output, kind)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("lines", ["\n", "\n\n\n", "a"])
def test_inputs_of_little(kind, lines, encoder, tmp_path):
    (tmp_path / "input.txt").write_text(lines)
    output = tmp_path / f"output{SUFFIX[kind]}"
    embed_file(encoder, SentenceReader(tmp_path / "input.txt"), output)
    arrays, _ = read(output, kind)
    assert [array.shape[-2] for array in arrays] == [len(line.split()) for line in lines.splitlines()]


class CallCounter:
    """Counts the calls of C functions in the package, and kills the process at one of them."""

    def __init__(self, last=None):
        self.calls, self.last = 0, last

    def __call__(self, frame, event, argument):
        if event == "c_call" and "hf_lineage" in frame.f_code.co_filename:
            self.calls += 1
            if self.calls == self.last:
                os.kill(os.getpid(), signal.SIGKILL)

    def run(self, action):
        sys.setprofile(self)
        try:
            action()
        finally:
            sys.setprofile(None)
        return self.calls


def killed_at(call, action):
    """Runs something in a process of its own, killed at one of its calls; returns whether it ended before."""
    process = os.fork()
    if not process:
        status = 1
        try:
            CallCounter(call).run(action)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(process, 0)
    assert status in (0, signal.SIGKILL)
    return status == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", FORMATS)
def test_kills_lose_nothing_and_repeat_nothing(kind, encoder, text, tmp_path):
    undisturbed = tmp_path / f"undisturbed{SUFFIX[kind]}"
    calls = CallCounter().run(lambda: embed_file(encoder, SentenceReader(text), undisturbed, max_batch_tokens=2))
    window_of, encode = windows_of(text), encoder.encode
    generator = random.Random(kind)

    def run(output, log):
        with log.open("w", encoding="utf-8") as file:

            def logged(batch):
                file.write(json.dumps(batch) + "\n")
                file.flush()
                return encode(batch)

            encoder.encode = logged
            embed_file(encoder, SentenceReader(text), output, max_batch_tokens=2)

    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        output, log = folder / f"output{SUFFIX[kind]}", folder / "log"
        state = folder / f"{output.name}.partial" / "state.json"
        kills = 0
        while not output.exists():
            done = json.loads(state.read_text())["windows"] if state.exists() else 0
            # anywhere: setting up, computing, giving the final name; a run that goes on has fewer calls
            call = generator.randrange(1, calls) if kills < 8 else calls
            kills += not killed_at(call, lambda output=output, log=log: run(output, log))
            # what an earlier run has put on the disk is not computed again
            batches = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
            assert all(max(window_of[tuple(words)]) >= done for batch in batches for words in batch)
        assert kills
        if state.exists():  # killed between the final name and the end
            run(output, log)
        assert not state.parent.exists()
        assert content(output) == content(undisturbed)


def windows_of(text):
    """The windows that a sentence is in, when one takes 32 words."""
    from hf_lineage.embedding.batching import windows

    found: dict[tuple, list[int]] = {}
    for number, window in enumerate(windows(SentenceReader(text), 32)):
        for sentence in window:
            found.setdefault(tuple(sentence.tokens), []).append(number)
    return found


class Interruption(Exception):
    """Ends a run before its end."""


def interrupted(encoder, text, output, **arguments):
    def stop(progress):
        if progress.tokens > 100:
            raise Interruption

    with pytest.raises(Interruption):
        embed_file(encoder, SentenceReader(text), output, max_batch_tokens=2, report=stop, **arguments)


def test_a_run_goes_on_only_where_all_is_the_same(encoder, elmo_folder, text, tmp_path):
    output = tmp_path / "output.hdf5"
    interrupted(encoder, text, output)
    assert not output.exists()
    other = load_encoder(str(elmo_folder), "average")
    with pytest.raises(ValueError, match=r"begun with other arguments \(layers: '(all|top)', now 'average'\)"):
        embed_file(other, SentenceReader(text), output, max_batch_tokens=2)
    with pytest.raises(ValueError, match="max_batch_tokens: 2, now 3"):
        embed_file(encoder, SentenceReader(text), output, max_batch_tokens=3)
    before = text.read_text(encoding="utf-8")
    text.write_text(before + "more\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other arguments \(input\)"):
        embed_file(encoder, SentenceReader(text), output, max_batch_tokens=2)
    text.write_text(before, encoding="utf-8")
    result = embed_file(encoder, SentenceReader(text), output, max_batch_tokens=2)
    assert 0 < result.computed < result.tokens - 60
    interrupted(encoder, text, output, overwrite=True)
    earlier = output.read_bytes()
    result = embed_file(other, SentenceReader(text), output, max_batch_tokens=2, overwrite=True)
    assert result.computed == result.tokens
    assert output.read_bytes() != earlier


def test_outputs_that_stand_there(encoder, text, tmp_path):
    output = tmp_path / "output"
    output.write_text("mine")
    with pytest.raises(ValueError, match="exists: choose another name, or overwrite it"):
        embed_file(encoder, SentenceReader(text), output, "npy")
    for kind in ("npy", "hdf5", "hdf5", "parquet", "npy"):  # a folder in the place of a file, and so on
        embed_file(encoder, SentenceReader(text), output, kind, overwrite=True)
        assert output.is_dir() == (kind in ("npy", "parquet"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input.txt", "output"]


def test_an_input_that_changes_is_noticed(encoder, text, tmp_path):
    class Changing(SentenceReader):
        passes = 0

        def __iter__(self):
            self.passes += 1
            return iter([*super().__iter__()][self.passes - 1 :])

    with pytest.raises(ValueError, match="the input has changed while it was read"):
        embed_file(encoder, Changing(text), tmp_path / "output.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["input.txt"]


def test_what_is_refused_leaves_nothing(encoder, text, tmp_path):
    (tmp_path / "empty").write_text("")
    (tmp_path / "damaged.jsonl").write_text("[]\n{")
    for source, name, message in (
        (text, "absent/a.hdf5", "there is no folder"),
        (text, "a.xyz", "does not tell its format"),
        (tmp_path / "empty", "a.hdf5", "the input is empty"),
        (tmp_path / "damaged.jsonl", "a.hdf5", "line 2: no JSON"),
    ):
        with pytest.raises(ValueError, match=message):
            embed_file(encoder, SentenceReader(source), tmp_path / name)
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        embed_file(encoder, SentenceReader(text), tmp_path / "a.hdf5", max_batch_tokens=0)
    with pytest.raises(ValueError, match="the format must be one of hdf5, safetensors, parquet, npy, got 'x'"):
        embed_file(encoder, SentenceReader(text), tmp_path / "a", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged.jsonl", "empty", "input.txt"]
    folder = tmp_path / "a.hdf5.partial"
    folder.mkdir()
    with FileLock(folder / "lock"), pytest.raises(ValueError, match="another run is writing"):
        embed_file(encoder, SentenceReader(text), tmp_path / "a.hdf5")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["hdf5", "parquet"])
def test_ten_times_the_input_needs_no_more_memory(kind, elmo_folder, tmp_path):
    encoder = load_encoder(str(elmo_folder))

    def peak(lines):
        """Peak memory of a process that embeds so many lines, kilobytes."""
        source = tmp_path / f"{lines}.txt"
        source.write_text("the words of a line that is short\n" * lines)
        reading, writing = os.pipe()
        if not (process := os.fork()):
            embed_file(encoder, SentenceReader(source), tmp_path / f"{lines}", kind, max_batch_tokens=512)
            os.write(writing, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss).encode())
            os._exit(0)
        os.waitpid(process, 0)
        return int(os.read(reading, 100))

    small, large = peak(2000), peak(20_000)
    assert large < 1.1 * small
    if kind == "parquet":  # HDF5 keeps a kilobyte or so of each dataset, and there is one for each line
        assert large - small < 12_000  # the vectors of the larger one are 26,880 kB
