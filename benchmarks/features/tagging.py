"""A BiLSTM tagger over the scalar mix of a frozen biLM's layers, which are computed once."""

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tqdm import tqdm
from transformers import get_linear_schedule_with_warmup

from benchmarks.features.language_model import LayerCache
from benchmarks.features.tagging_data import SPLITS, TaggingData, TaggingTask, tagging_metrics
from hf_lineage import ElmoForTokenClassification
from hf_lineage.embedding.batching import batches_by_length

_EVALUATION_TOKENS = 4096
# Sentences among which those of similar length are looked for, in batches
_POOL_BATCHES = 16
_IGNORED = -100


@dataclass(frozen=True)
class HeadSettings:
    """How the head is made and trained.

    Args:
        epochs: Passes over the training sentences.
        batch_size: Sentences.
        learning_rate: Of AdamW without decay of weights, at the start; it falls to 0 linearly.
        lstm_size: Width of each direction of the BiLSTM.
        dropout: After the mix.
        classifier_dropout: Before the BiLSTM and before the classifier.
        max_grad_norm: Largest norm of the gradient.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    lstm_size: int
    dropout: float
    classifier_dropout: float
    max_grad_norm: float = 5.0

    @property
    def config_fields(self) -> dict[str, Any]:
        """The fields of `ElmoConfig` that say so."""
        return {
            "classifier_lstm_size": self.lstm_size,
            "dropout": self.dropout,
            "classifier_dropout": self.classifier_dropout,
        }


def tag_logits(tagger: ElmoForTokenClassification, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return what `tagger` returns for the sentences whose layers these are.

    Args:
        tagger: The model; of its biLM only the scalar mix is used.
        layers: `(sentences, words, layers, hidden_size)`.
        mask: `(sentences, words)` int64.

    Returns:
        `(sentences, words, num_labels)` logits.
    """
    mixed = tagger.elmo.dropout(tagger.elmo.scalar_mixes[0](layers.unbind(2)))
    no_words = mask[..., None]  # rows of input are read where there are static word vectors, of which there are none
    return tagger.classifier(tagger.dropout(tagger.features(mixed, no_words, mask)))


def train_tagger(
    tagger: ElmoForTokenClassification,
    caches: dict[str, LayerCache],
    task: TaggingTask,
    data: TaggingData,
    settings: HeadSettings,
    seed: int,
    description: str = "",
) -> list[dict[str, Any]]:
    """Train mix and head, and measure them on validation and test after each epoch.

    Args:
        tagger: The model, on its device, its biLM frozen.
        caches: The layers of each split.
        task: What is measured.
        data: The sentences and their tags.
        settings: How to train.
        seed: Order of the sentences and dropout.
        description: What a progress bar says; there is none without.

    Returns:
        A record for each epoch: `epoch`, `train_loss`, `validation`, `test`, `scalar_mix` and `seconds` of training.
    """
    torch.manual_seed(seed)
    rng = random.Random(seed)
    tags = [torch.tensor(sentence) for sentence in data.splits["train"].tags]
    steps = settings.epochs * -(-len(tags) // settings.batch_size)
    parameters = [parameter for parameter in tagger.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=0.0)
    schedule = get_linear_schedule_with_warmup(optimizer, 0, steps)
    records = []
    with tqdm(total=steps, desc=description, leave=False, disable=not description or None) as bar:
        for epoch in range(1, settings.epochs + 1):
            start = time.perf_counter()
            tagger.train()
            losses = []
            for numbers in shuffled_batches([len(sentence) for sentence in tags], settings.batch_size, rng):
                loss = _loss(tagger, caches["train"], tags, numbers)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                losses.append(loss.item())
                bar.update()
            seconds = time.perf_counter() - start
            measured = {
                split: tagging_metrics(task, data, split, predict(tagger, caches[split])) for split in SPLITS[1:]
            }
            (mix,) = tagger.scalar_mix_weights()
            loss_of_epoch = statistics.fmean(losses)
            records.append(
                {"epoch": epoch, "train_loss": loss_of_epoch, **measured, "scalar_mix": mix, "seconds": seconds}
            )
    return records


def _loss(
    tagger: ElmoForTokenClassification, cache: LayerCache, tags: Sequence[torch.Tensor], numbers: Sequence[int]
) -> torch.Tensor:
    layers, mask = cache.batch(numbers, tagger.device)
    labels = torch.nn.utils.rnn.pad_sequence(
        [tags[number] for number in numbers], batch_first=True, padding_value=_IGNORED
    ).to(tagger.device)
    logits = tag_logits(tagger, layers, mask)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=_IGNORED)


def shuffled_batches(lengths: Sequence[int], batch_size: int, rng: random.Random) -> Iterator[list[int]]:
    """Yield every place in `lengths` once, in batches in random order whose sentences are of similar length."""
    order = list(range(len(lengths)))
    rng.shuffle(order)
    pool_size = _POOL_BATCHES * batch_size
    batches = []
    for begin in range(0, len(order), pool_size):
        pool = sorted(order[begin : begin + pool_size], key=lambda place: lengths[place])
        batches += [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
    rng.shuffle(batches)
    yield from batches


@torch.no_grad()
def predict(tagger: ElmoForTokenClassification, cache: LayerCache) -> list[list[int]]:
    """Return the likeliest tag of each word of each sentence."""
    tagger.eval()
    lengths = cache.offsets.diff().tolist()
    predicted: list[list[int]] = [[] for _ in lengths]
    for numbers in batches_by_length(lengths, _EVALUATION_TOKENS):
        best = tag_logits(tagger, *cache.batch(numbers, tagger.device)).argmax(-1).cpu()
        for number, row in zip(numbers, best, strict=True):
            predicted[number] = row[: lengths[number]].tolist()
    return predicted


def best_epoch(task: TaggingTask, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the record that is best on validation, of equals the first."""
    return max(records, key=lambda record: record["validation"][task.metric])
