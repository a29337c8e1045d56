"""Figures of other people's papers on GLUE's development sets, to stand beside ours where the setting is the same."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.report.runs import Row


@dataclass(frozen=True)
class Published:
    """One system as published: single model, one task at a time, all of the training data, GLUE's development sets.

    Args:
        system: Name of the system.
        source: Where the figures stand.
        setting: How they came about.
        figures: Task -> its metrics x 100, in the order of `Task.metrics`; for MNLI matched and mismatched, or their
            mean. A task is left out where the source gives another number of metrics, has other data, or starts from
            a model that was fine-tuned on another task.
    """

    system: str
    source: str
    setting: str
    figures: Mapping[str, tuple[float, ...]]

    def score(self, task: str) -> float | None:
        """Return the mean of a task's metrics x 100, as our scores are counted, `None` without a figure."""
        return statistics.fmean(self.figures[task]) if task in self.figures else None


PUBLISHED = (
    Published(
        "BiLSTM on ELMo",
        "Wang et al. 2019, GLUE (arXiv:1804.07461), Table 6, single-task training, +ELMo",
        "frozen ELMo below a trained BiLSTM; best figures on the development sets. QNLI is left out: its data was "
        "replaced since",
        {
            "cola": (44.1,),
            "sst2": (91.5,),
            "mrpc": (70.8, 82.3),
            "qqp": (88.0, 84.3),
            "stsb": (70.3, 70.5),
            "mnli": (68.6,),
            "rte": (53.4,),
            "wnli": (56.3,),
        },
    ),
    Published(
        "BERT-base (cased)",
        "README of examples/pytorch/text-classification in huggingface/transformers",
        "run_glue.py, batches of 32, learning rate 2e-5, one seed, the last of 3 epochs (5 for MRPC and WNLI)",
        {
            "cola": (56.53,),
            "sst2": (92.32,),
            "mrpc": (84.07, 88.85),
            "stsb": (88.64, 88.48),
            "qqp": (90.71, 87.49),
            "mnli": (83.91, 84.10),
            "qnli": (90.66,),
            "rte": (65.70,),
            "wnli": (56.34,),
        },
    ),
    Published(
        "DistilBERT",
        "Sanh et al. 2019, DistilBERT (arXiv:1910.01108), Table 1",
        "medians of 5 seeds; only the tasks of one metric and one development set",
        {"cola": (51.3,), "sst2": (91.3,), "qnli": (89.2,), "rte": (59.9,), "wnli": (56.3,)},
    ),
    Published(
        "XLNet-Large",
        "Yang et al. 2019, XLNet (arXiv:1906.08237), Table 5",
        "only the tasks of one metric. RTE is left out: it may start from a model for MNLI",
        {"cola": (69.0,), "sst2": (97.0,), "mnli": (90.8, 90.8), "qnli": (94.9,)},
    ),
    Published(
        "ALBERT-xxlarge",
        "Lan et al. 2020, ALBERT (arXiv:1909.11942), README of google-research/albert, 1.5 million steps",
        "medians of 5 seeds; only the tasks of one metric. RTE is left out: it may start from a model for MNLI",
        {"cola": (71.4,), "sst2": (96.9,), "mnli": (90.8,), "qnli": (95.3,)},
    ),
)


def is_comparable(row: Row) -> bool:
    """Whether a row was trained on all of a GLUE task's data and evaluated on all of its development sets."""
    run = row.first
    is_whole = not (run.subsets or run.train_was_cut or run.missing_splits)
    return run.suite == "glue" and is_whole and run.train_examples > 0


def published_scores(row: Row) -> dict[int, float]:
    """Return the scores x 100 that a row can be compared with, by the place of their system in `PUBLISHED`, from 1."""
    if not is_comparable(row):
        return {}
    scores = {number: published.score(row.first.task) for number, published in enumerate(PUBLISHED, start=1)}
    return {number: score for number, score in scores.items() if score is not None}
