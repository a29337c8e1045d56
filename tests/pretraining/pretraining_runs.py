"""A small corpus, a tokenizer for it, and ways to run the pretraining command, whole or killed."""

import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import time
from pathlib import Path

import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from hf_lineage.pretraining.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
WORDS = [f"w{number}" for number in range(60)]
MODEL = {
    "hidden_size": 16,
    "embedding_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "hidden_dropout_prob": 0.1,
}


def write_corpus(path: Path, num_documents: int, seed: int) -> Path:
    """Documents whose sentences walk upwards through the vocabulary, so that their order can be learned."""
    generator = random.Random(seed)
    documents = []
    for _ in range(num_documents):
        at = generator.randrange(60)
        sentences = []
        for _ in range(generator.randint(3, 7)):
            length = generator.randint(4, 8)
            sentences.append(" ".join(WORDS[(at + generator.randrange(4)) % 60] for _ in range(length)))
            at += 5
        documents.append("\n".join(sentences))
    path.write_text("\n\n".join(documents) + "\n")
    return path


def write_tokenizer(folder: Path) -> Path:
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    backend = Tokenizer(WordLevel({word: index for index, word in enumerate([*special.values(), *WORDS])}, "[UNK]"))
    backend.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, **{f"{name}_token": token for name, token in special.items()}
    )
    tokenizer.save_pretrained(folder)
    return folder


def command(folder: Path, output: str = "out", **settings) -> list[str]:
    """Arguments of a run on what `prepare` put into the folder; a setting that is `None` is left out."""
    settings = {
        "train_files": folder / "train.txt",
        "validation_files": folder / "validation.txt",
        "tokenizer_name_or_path": folder / "tokenizer",
        "output_dir": folder / output,
        "model_config": json.dumps(MODEL),
        "max_length": 32,
        "max_steps": 20,
        "per_device_train_batch_size": 8,
        "learning_rate": 0.01,
        "logging_steps": 4,
        "save_steps": 3,
        **settings,
    }
    return [
        f"--{name}={value}" if not isinstance(value, list) else word
        for name, value in settings.items()
        if value is not None
        for word in ([value] if not isinstance(value, list) else [f"--{name}", *map(str, value)])
    ]


def prepare(folder: Path, num_documents: int = 60, num_held_out: int = 15) -> Path:
    write_corpus(folder / "train.txt", num_documents, seed=1)
    write_corpus(folder / "validation.txt", num_held_out, seed=2)
    write_tokenizer(folder / "tokenizer")
    return folder


def run(folder: Path, output: str = "out", **settings) -> bool:
    AcceleratorState._reset_state(reset_partial_state=True)
    return main(command(folder, output, **settings))


def run_and_kill(folder: Path, after_step: int, number: int = signal.SIGKILL, output: str = "out", **settings) -> int:
    """Runs the command in a process of its own and sends it a signal at a random moment after a step is reported.

    Returns:
        The process's exit code; 0 if it was faster than the signal.
    """
    (code,) = run_processes(folder, 1, after_step, number, output, **settings)
    return code


def run_processes(
    folder: Path,
    num_processes: int,
    after_step: int | None = None,
    number: int = signal.SIGKILL,
    output: str = "out",
    **settings,
) -> list[int]:
    """Runs the command in processes that work together, and sends one a signal once a step is reported."""
    records = folder / output / "metrics.jsonl"
    port = _free_port()
    processes = [
        multiprocessing.get_context("fork").Process(
            target=_run_child, args=(folder, output, settings, rank, num_processes, port)
        )
        for rank in range(num_processes)
    ]
    for process in processes:
        process.start()
    deadline = time.monotonic() + 120
    while any(process.is_alive() for process in processes):
        if after_step is not None and last_step(records) >= after_step:
            time.sleep(random.random() * 0.02)
            os.kill(processes[-1].pid, number)
            after_step = None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return [process.exitcode for process in processes]


def _run_child(folder: Path, output: str, settings: dict, rank: int, num_processes: int, port: int) -> None:
    if num_processes > 1:
        ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": num_processes, "LOCAL_WORLD_SIZE": num_processes}
        os.environ.update({name: str(value) for name, value in ranks.items()})
        os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
    torch.manual_seed(int.from_bytes(os.urandom(4), "little"))  # whatever the parent drew must not matter
    sys.exit(0 if run(folder, output, **settings) else 143)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def last_step(records: Path) -> int:
    try:
        lines = records.read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return -1
    return max((json.loads(line)["step"] for line in lines if line.endswith("\n")), default=-1)


def results(folder: Path, output: str = "out") -> dict:
    return json.loads((folder / output / "results.json").read_text())


def weights(folder: Path, output: str = "out") -> dict[str, torch.Tensor]:
    return load_file(folder / output / "model" / "model.safetensors")


def assert_same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    different = [name for name in one if not torch.equal(one[name], other[name])]
    assert not different
