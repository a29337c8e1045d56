"""Evaluates random predictions for every task in however many processes it is started: `FILE` receives the metrics."""

import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.utils.data import DataLoader

from benchmarks.glue.arguments import FineTuningArguments
from benchmarks.glue.evaluation import evaluate_splits
from benchmarks.glue.tasks import GLUE_TASKS, ZH_TASKS
from benchmarks.glue.train import create_accelerator

BATCH_SIZE = 4


class Echo(torch.nn.Module):
    """Returns its input as logits."""

    def forward(self, logits: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=logits)


def main(file: str) -> None:
    warnings.simplefilter("ignore")
    accelerator = create_accelerator(FineTuningArguments(output_dir="unused"))
    found = {}
    for number, task in enumerate((*GLUE_TASKS.values(), *ZH_TASKS.values())):
        generator = torch.Generator().manual_seed(number)
        loaders = {}
        for position, split in enumerate(task.validation_splits):
            # From 1 row, fewer than there are processes, to 18: every remainder of 2 processes x 4 rows.
            size = 1 + number + position
            logits = torch.randn(size, max(1, len(task.labels)), generator=generator)
            labels = torch.rand(size, generator=generator) * max(1, len(task.labels))
            labels = labels if task.is_regression else labels.long()
            rows = [{"logits": one, "labels": label} for one, label in zip(logits, labels, strict=True)]
            loaders[split] = accelerator.prepare(DataLoader(rows, BATCH_SIZE))
        if loaders:
            evaluated = evaluate_splits(accelerator, Echo(), loaders, task)
            found[task.name] = {"num_processes": accelerator.num_processes, **evaluated["validation"]}
    if accelerator.is_main_process:
        Path(file).write_text(json.dumps(found))
    accelerator.end_training()


if __name__ == "__main__":
    main(sys.argv[1])
