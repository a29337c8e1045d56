"""The runs of a command, a seed each; those that are finished are not repeated."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from benchmarks.features import tagging, wic
from benchmarks.features.language_model import LayerCache, load_model
from benchmarks.features.runs import WEIGHTS, RunFolder
from benchmarks.features.tagging_data import TaggingTask, baselines, load_tagging_data
from hf_lineage import ElmoForTokenClassification, ElmoModel
from hf_lineage.embedding.encoders import weights_digest


@dataclass(frozen=True)
class Job:
    """What to measure.

    Args:
        model: Folder or Hub name of an ELMo model.
        random_weights: Whether its biLM has random weights, of each seed's, instead of its own.
        seeds: The seeds.
        data_dir: Where the data is.
        output_dir: Where the results go.
    """

    model: str
    random_weights: bool
    seeds: tuple[int, ...]
    data_dir: Path
    output_dir: Path

    def folder(self, task: str, language_model: ElmoModel, **settings: Any) -> RunFolder:
        """Return the place of the results, with what they depend on: a trained model may change under its name."""
        weights = {"weights": WEIGHTS[not self.random_weights]}
        if not self.random_weights:
            weights["weights_digest"] = weights_digest(language_model)
        data = {"data_dir": str(self.data_dir)}
        return RunFolder(self.output_dir, {"task": task, "model": self.model, **weights, **data, **settings})


def run_tagging(job: Job, task: TaggingTask, head: tagging.HeadSettings) -> None:
    """Train and measure a tagger with each seed.

    Raises:
        ValueError: If the model or the data is not as described, or the folder has runs of other settings.
    """
    data = load_tagging_data(task, job.data_dir)
    references = baselines(task, data)
    names = dict(enumerate(data.tag_names))
    fields = {"id2label": names, "label2id": {name: number for number, name in names.items()}, **head.config_fields}
    accelerator = Accelerator()
    caches: dict[str, LayerCache] = {}
    for seed in job.seeds:
        tagger, tokenizer = load_model(ElmoForTokenClassification, job.model, job.random_weights, seed, **fields)
        folder = job.folder(task.name, tagger.elmo, **asdict(head))
        if folder.is_finished(seed):
            continue
        tagger.to(accelerator.device)
        start = time.perf_counter()
        if job.random_weights or not caches:
            caches = {
                split: LayerCache.of(tagger.elmo, tokenizer, sentences.words, f"{task.name} {split}")
                for split, sentences in data.splits.items()
            }
            # so that a biLM is not judged by the size of its numbers, which random weights make small
            statistics = caches["train"].statistics()
            for cache in caches.values():
                cache.standardize(*statistics)
        embedded = time.perf_counter()
        records = tagging.train_tagger(tagger, caches, task, data, head, seed, f"{task.name} seed {seed}")
        measured = {
            "best": tagging.best_epoch(task, records),
            "epochs": records,
            "baselines": references,
            "examples": {split: len(sentences.words) for split, sentences in data.splits.items()},
            "feature_seconds": embedded - start,  # 0 where an earlier seed had the same vectors
            "head_seconds": time.perf_counter() - embedded,
        }
        folder.write(seed, accelerator, tagger.config, measured)


def run_wic(job: Job) -> None:
    """Fit and measure the classifiers of word pairs with each seed.

    Raises:
        ValueError: As in `run_tagging`.
    """
    train, validation = wic.load_word_pairs(job.data_dir)
    accelerator = Accelerator()
    vectors: list[wic.Vectors] = []
    for seed in job.seeds:
        language_model, tokenizer = load_model(ElmoModel, job.model, job.random_weights, seed)
        folder = job.folder("wic", language_model)
        if folder.is_finished(seed):
            continue
        language_model.to(accelerator.device)
        start = time.perf_counter()
        if job.random_weights or not vectors:
            vectors = [
                wic.word_vectors(LayerCache.of(language_model, tokenizer, pairs.sentences, "wic"), pairs)
                for pairs in (train, validation)
            ]
        embedded = time.perf_counter()
        measured = {
            "accuracy": wic.measure(train, vectors[0], validation, vectors[1], seed),
            "examples": {"train": len(train.labels), "validation": len(validation.labels)},
            "dropped": {"train": train.dropped, "validation": validation.dropped},
            "feature_seconds": embedded - start,
            "classifier_seconds": time.perf_counter() - embedded,
        }
        folder.write(seed, accelerator, language_model.config, measured)
