"""What a bidirectional language model makes of sentences: their log-probabilities, and the words that it expects."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from .softmax_elmo import word_logits, word_losses


@dataclass
class ElmoScores:
    """Log-probabilities of sentences, in nats.

    A word that is not in the vocabulary is scored as the unknown word, whose probability is that of all such words
    together.

    Args:
        words: Of each sentence its words.
        is_known: Of each sentence `(words,)` bool, `False` for a word that is not in the vocabulary.
        forward: Of each sentence `(words + 1,)` float32: each word given those before it, then the sentence's end.
        backward: Of each sentence `(words + 1,)` float32: the sentence's begin given all words, then each word given
            those behind it.
    """

    words: list[list[str]]
    is_known: list[torch.Tensor]
    forward: list[torch.Tensor]
    backward: list[torch.Tensor]

    @property
    def forward_sums(self) -> torch.Tensor:
        """`(sentences,)`, the log-probability of each sentence by the forward direction."""
        return torch.stack([row.sum() for row in self.forward])

    @property
    def backward_sums(self) -> torch.Tensor:
        """`(sentences,)`, the log-probability of each sentence by the backward direction."""
        return torch.stack([row.sum() for row in self.backward])

    @property
    def perplexities(self) -> torch.Tensor:
        """`(sentences,)`, of both directions together: the exponential of the mean over their predictions."""
        return torch.stack([(-torch.cat(rows).mean()).exp() for rows in zip(self.forward, self.backward, strict=True)])


@torch.no_grad()
def score_sentences(
    model: Any, texts: str | Sequence[str] | Sequence[Sequence[str]], tokenizer: Any, batch_size: int = 32
) -> ElmoScores:
    """Scores sentences; see `ElmoForPreTraining.score`."""
    _check_vocabulary(model, tokenizer)
    given = [texts] if isinstance(texts, str) else list(texts)
    if not given:
        raise ValueError("texts must hold at least one sentence, got none")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    words = [tokenizer.tokenize(text) if isinstance(text, str) else list(text) for text in given]
    labels = [torch.tensor(tokenizer.convert_tokens_to_word_ids(row), dtype=torch.long) for row in words]
    forward: dict[int, torch.Tensor] = {}
    backward: dict[int, torch.Tensor] = {}
    order = sorted(range(len(words)), key=lambda number: len(words[number]))  # sentences of one length together
    with _undisturbed(model):
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            found = _score_batch(
                model, [words[number] for number in batch], [labels[number] for number in batch], tokenizer
            )
            for number, (ahead, back) in zip(batch, found, strict=True):
                forward[number], backward[number] = ahead, back
    numbers = range(len(words))
    known = [torch.tensor([word in tokenizer.word_vocabulary for word in row], dtype=torch.bool) for row in words]
    return ElmoScores(words, known, [forward[number] for number in numbers], [backward[number] for number in numbers])


@torch.no_grad()
def top_words(
    model: Any, text: str | Sequence[str], position: int, k: int, tokenizer: Any, direction: str
) -> list[tuple[str, float]]:
    """Expects words; see `ElmoForPreTraining.top_words`."""
    _check_vocabulary(model, tokenizer)
    words = tokenizer.tokenize(text) if isinstance(text, str) else list(text)
    if not words:
        raise ValueError("the text must have a word, got none")
    if not 0 <= position < len(words):
        raise ValueError(f"position must be from 0 to {len(words) - 1}, the number of a word, got {position}")
    if direction not in ("forward", "backward", "both"):
        raise ValueError(f"direction must be 'forward', 'backward' or 'both', got {direction!r}")
    special = {tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token}
    if not 1 <= k <= len(tokenizer.word_vocabulary) - len(special):
        raise ValueError(f"k must be from 1 to {len(tokenizer.word_vocabulary) - len(special)}, got {k}")
    with _undisturbed(model):
        ahead, back = _directions(model, [words], tokenizer)
        context = torch.stack([ahead[0, position], back[0, position + 1]])
        found = word_logits(model.lm_head, context).float().log_softmax(-1)
    scores = {"forward": found[0], "backward": found[1], "both": (found[0] + found[1]).log_softmax(-1)}[direction]
    scores = scores.index_fill(0, torch.tensor([0, 1, 2], device=scores.device), float("-inf"))
    best = scores.topk(k)
    names = list(tokenizer.word_vocabulary)
    return [(names[word], value) for word, value in zip(best.indices.tolist(), best.values.tolist(), strict=True)]


def _score_batch(
    model: Any, words: list[list[str]], labels: list[torch.Tensor], tokenizer: Any
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    ahead, back = _directions(model, words, tokenizer)
    begin, end = torch.tensor([model.config.bos_token_id]), torch.tensor([model.config.eos_token_id])
    lengths = [len(row) + 1 for row in labels]
    results = []
    for vectors, targets in (
        (ahead, [torch.cat([row, end]) for row in labels]),
        (back, [torch.cat([begin, row]) for row in labels]),
    ):
        flat = torch.cat([row[:length] for row, length in zip(vectors, lengths, strict=True)])
        results.append(-word_losses(model.lm_head, flat, torch.cat(targets).to(model.device)).cpu())
    yield from zip(*(result.split(lengths) for result in results), strict=True)


def _directions(model: Any, words: list[list[str]], tokenizer: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors `(sentences, words + 1, size)` of which number `i` predicts symbol `i + 1` or, backwards, symbol `i`."""
    inputs = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    config = model.config
    size = config.projection_size + config.lstm_hidden_size
    states = torch.zeros(len(words), config.num_hidden_layers, 2, size, dtype=model.dtype)
    _, layers, _ = model.elmo.run_language_model(
        *(values.to(model.device) for values in (inputs["input_ids"], inputs["attention_mask"])),
        initial_states=states.to(model.device),
    )
    ahead, back = layers[-1].chunk(2, -1)
    return ahead[:, :-1], back[:, 1:]


@contextmanager
def _undisturbed(model: Any) -> Iterator[None]:
    """Evaluation mode for a while; what a stateful model carries from batch to batch stays as it was."""
    was_training, carried = model.training, model.elmo._carried_states
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
        model.elmo._carried_states = carried


def _check_vocabulary(model: Any, tokenizer: Any) -> None:
    size = len(getattr(tokenizer, "word_vocabulary", {}))
    if size != model.config.vocab_size:
        raise ValueError(
            f"the tokenizer must have the word vocabulary of the model, {model.config.vocab_size} words; "
            f"{type(tokenizer).__name__} has {size}"
        )
    if model.config.add_sentence_boundaries == tokenizer.add_sentence_boundaries:
        raise ValueError(
            "either the model or the tokenizer must add sentence boundaries, got add_sentence_boundaries="
            f"{tokenizer.add_sentence_boundaries} for both"
        )


__all__ = ["ElmoScores", "score_sentences", "top_words"]
