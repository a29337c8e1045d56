"""The loop with a family that carries something from batch to batch, as memories and LSTM states will be."""

import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from datasets import IterableDataset
from pretraining_runs import assert_same_weights, prepare, results, run, run_and_kill, run_processes, weights
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from hf_lineage.pretraining.objective import FAMILIES, Objective, objective_class

NUM_ROWS, NUM_WINDOWS = 4, 6  # of each shard's stream


class SumConfig(PreTrainedConfig):
    model_type = "sum_of_numbers"


class SumModel(PreTrainedModel):
    """One weight that is to bring the sum of all numbers so far to one."""

    config_class = SumConfig

    def __init__(self, config: SumConfig) -> None:
        super().__init__(config)
        self.scale = nn.Linear(1, 1)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        pass

    def forward(self, total: torch.Tensor) -> torch.Tensor:
        return (self.scale(total) - 1).square().mean()


@dataclass
class SumArguments:
    log: list[str] = field(default_factory=list, metadata={"help": "Where to write what is carried."})


def windows(shards: list[int]):
    """Windows of streams, those of one moment next to each other, so that a batch has a row for each stream."""
    for shard in shards:
        for window in range(NUM_WINDOWS):
            for row in range(NUM_ROWS):
                yield {"number": float(shard + 10 * row + 0.01 * window)}


class SumObjective(Objective):
    arguments_class = SumArguments

    def create_model(self) -> PreTrainedModel:
        return SumModel(SumConfig())

    def load_model(self, folder: str) -> PreTrainedModel:
        return SumModel.from_pretrained(folder)

    def train_dataset(self, num_shards: int) -> IterableDataset:
        return IterableDataset.from_generator(windows, gen_kwargs={"shards": list(range(num_shards))})

    def validation_datasets(self, num_shards: int) -> dict[str, IterableDataset]:
        return {"numbers": self.train_dataset(num_shards)}

    def collator(self):
        return lambda features: {"number": torch.tensor([[feature["number"]] for feature in features])}

    def counts(self, inputs):
        return {"square": torch.tensor(len(inputs["number"]))}

    def num_tokens(self, inputs):
        return torch.tensor(len(inputs["number"]))

    def losses(self, model, inputs, carried):
        total = inputs["number"] + (0 if carried is None else carried["totals"][0])
        if self.own.log:
            with Path(self.own.log[0]).open("a") as file:
                file.write(f"{total.flatten().tolist()}\n")
        return {"square": model(total / 100)}, {"totals": (total.detach(),)}

    def evaluate(self, model, inputs, carried, name):
        losses, carried = self.losses(model, inputs, carried)
        return {"sum": losses["square"] * len(inputs["number"]), "count": len(inputs["number"])}, carried

    def summarize(self, sums, name):
        return {"square": sums["sum"] / sums["count"], "count": sums["count"]}


OPTIONS = {
    "family": "sum",
    "validation_files": None,
    "model_config": None,
    "per_device_train_batch_size": NUM_ROWS,
    "per_device_eval_batch_size": NUM_ROWS,
    "max_steps": 21,
    "save_steps": 2,
    "logging_steps": 3,
    "optimizer": "adamw",
}


@pytest.fixture(autouse=True)
def _family(monkeypatch):
    monkeypatch.setitem(FAMILIES, "sum", (__name__, "SumObjective"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    torch.set_num_threads(1)
    return prepare(tmp_path_factory.mktemp("runs"))


def carried(path: Path) -> list[list[float]]:
    return [[round(float(number), 2) for number in line.strip("[]\n").split(",")] for line in path.open()]


def expected_totals(shard: int) -> list[list[float]]:
    rows = [shard + 10 * row for row in range(NUM_ROWS)]
    return [[round((w + 1) * row + 0.01 * w * (w + 1) / 2, 2) for row in rows] for w in range(NUM_WINDOWS)]


def test_what_is_carried_follows_the_streams_and_starts_anew_in_each_pass(folder: Path, tmp_path: Path):
    log = tmp_path / "log"
    assert run(folder, "carried", **OPTIONS, log=log)
    found = carried(log)
    evaluation, training = found[:NUM_WINDOWS], found[NUM_WINDOWS:-NUM_WINDOWS]
    assert evaluation == found[-NUM_WINDOWS:] == expected_totals(0)
    assert training == (expected_totals(0) * 4)[:21]


def test_an_evaluation_in_between_leaves_it_alone(folder: Path):
    assert run(folder, "evaluated", **OPTIONS, eval_steps=4)
    assert run(folder, "plain", **OPTIONS)
    assert_same_weights(weights(folder, "evaluated"), weights(folder, "plain"))
    validation = results(folder, "plain")["validation"]["first"]["validation"]
    assert validation["numbers"]["count"] == NUM_ROWS * NUM_WINDOWS


def test_parts_carry_their_own(folder: Path, tmp_path: Path):
    log = tmp_path / "log"
    assert run(folder, "parts", **OPTIONS, log=log, dataloader_num_workers=2)
    first = carried(log)[: 2 * NUM_WINDOWS]
    assert first[::2] == expected_totals(0)
    assert first[1::2] == expected_totals(1)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_killed_run_goes_on_with_it(folder: Path, num_workers: int):
    options = {**OPTIONS, "dataloader_num_workers": num_workers}
    assert run(folder, f"whole-{num_workers}", **options)
    for step in (4, 10):
        run_and_kill(folder, step, output=f"killed-{num_workers}", **options)
    assert run(folder, f"killed-{num_workers}", **options)
    assert_same_weights(weights(folder, f"killed-{num_workers}"), weights(folder, f"whole-{num_workers}"))


def test_processes_carry_their_own(folder: Path):
    options = {**OPTIONS, "max_steps": 15}
    assert run_processes(folder, 2, output="two", **options) == [0, 0]
    assert run_processes(folder, 2, 4, signal.SIGTERM, output="stopped", **options) == [143, 143]
    assert run_processes(folder, 2, output="stopped", **options) == [0, 0]
    assert_same_weights(weights(folder, "stopped"), weights(folder, "two"))


def test_unknown_families_are_refused():
    with pytest.raises(ValueError, match="--family must be one of albert, xlnet, elmo, sum, got 'gpt'"):
        objective_class("gpt")
