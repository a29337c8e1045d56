"""ELMo against its published semantics, computed as its old homes did.

No class of transformers computes ELMo, so the baseline is written here: characters of every position through the
convolutions, and at each step of the LSTMs one product with its input and one with its state, one direction after the
other (the shape of AllenNLP's `elmo.py`, `elmo_lstm.py` and `lstm_cell_with_projection.py`). It has the weights of our
model and no dropout.
"""

import copy
import math
import random
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import torch

from benchmarks.speed.cases import Case, Workload, largest_difference, relative_difference
from hf_lineage import ElmoConfig, ElmoModel, ElmoTokenizer
from hf_lineage.elmo.lstm_elmo import ElmoLstmLayer
from hf_lineage.elmo.packing_elmo import pack

# Single-precision sums in another order
TOLERANCE = 1e-5
# Of the largest number; bfloat16 has 8 bits
HALF_PRECISION_TOLERANCE = 2e-2

Function = Callable[[torch.Tensor], torch.Tensor]
Difference = Callable[[torch.Tensor, torch.Tensor], float]


@dataclass(frozen=True)
class Sizes:
    """Sizes of model and batches; the defaults are the original model's, of 93.6 million parameters.

    Args:
        char_cnn_filters: Width and number of each kind of filter.
        lstm_hidden_size: Cells of an LSTM.
        hidden_size: Width of the output, both directions together.
        batch_size: Sentences.
        num_words: Words of each.
        num_batches: Batches, of different words.
        vocabulary: Distinct words that there are to draw from.
    """

    char_cnn_filters: tuple[tuple[int, int], ...] = (
        (1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024),
    )  # fmt: skip
    lstm_hidden_size: int = 4096
    hidden_size: int = 1024
    batch_size: int = 32
    num_words: int = 25
    num_batches: int = 2
    vocabulary: int = 50_000


def cases(sizes: Sizes = Sizes()) -> list[Case]:
    """Return the comparisons of the family.

    Args:
        sizes: Sizes of model and batches.
    """
    shape = f"{sizes.batch_size} sentences of {sizes.num_words} words"
    return [
        Case(
            name="embedding",
            description=f"all layers of {shape}, words as frequent as Zipf's law has them",
            baseline="characters of every position, two products at each step",
            candidate="ElmoModel",
            wanted=2.6,
            tolerance=TOLERANCE,
            build=partial(_embedding, sizes),
        ),
        Case(
            name="embedding-bf16",
            description=f"the same in bfloat16: all layers of {shape}",
            baseline="ElmoModel in float32",
            candidate="ElmoModel in bfloat16",
            wanted=None,
            tolerance=HALF_PRECISION_TOLERANCE,
            build=partial(_half_precision, sizes),
        ),
    ]


def _model(sizes: Sizes) -> ElmoModel:
    torch.manual_seed(0)
    config = ElmoConfig(
        char_cnn_filters=[list(filters) for filters in sizes.char_cnn_filters],
        lstm_hidden_size=sizes.lstm_hidden_size,
        hidden_size=sizes.hidden_size,
    )
    return ElmoModel(config).eval()


@torch.no_grad()
def _layers(model: ElmoModel, input_ids: torch.Tensor) -> torch.Tensor:
    return torch.stack(model(input_ids, output_hidden_states=True).hidden_states)


def _workload(sizes: Sizes, baseline: Function, candidate: Function, difference: Difference) -> Workload:
    tokenizer, texts = ElmoTokenizer(), _texts(sizes)
    return Workload(
        baseline,
        candidate,
        [tokenizer(batch, is_split_into_words=True, return_tensors="pt")["input_ids"] for batch in texts],
        lambda value: {"layers": difference(candidate(value), baseline(value))},
        {
            "words": sizes.batch_size * sizes.num_words,
            "distinct_words": sum(len({*chain(*batch)}) for batch in texts) / len(texts),
        },
    )


def _embedding(sizes: Sizes) -> Workload:
    model = _model(sizes)

    @torch.no_grad()
    def baseline(input_ids: torch.Tensor) -> torch.Tensor:
        character_ids = pack(input_ids, None, None, add_sentence_boundaries=True, separate=False).character_ids
        return naive_layers(model, character_ids)[:, :, 1:-1]

    return _workload(sizes, baseline, partial(_layers, model), largest_difference)


def _half_precision(sizes: Sizes) -> Workload:
    model = _model(sizes)
    half = copy.deepcopy(model).to(torch.bfloat16)

    def difference(actual: torch.Tensor, expected: torch.Tensor) -> float:
        return relative_difference({"layers": actual.float()}, {"layers": expected})

    return _workload(sizes, partial(_layers, model), partial(_layers, half), difference)


def _texts(sizes: Sizes) -> list[list[list[str]]]:
    """Batches of sentences whose words are as frequent as Zipf's law has them, frequent ones short."""
    generator = random.Random(0)
    words = [
        "".join(generator.choices(string.ascii_lowercase, k=round(generator.uniform(1, 2 + math.log2(rank)))))
        for rank in range(1, sizes.vocabulary + 1)
    ]
    weights = [1 / rank for rank in range(1, sizes.vocabulary + 1)]
    return [
        [generator.choices(words, weights, k=sizes.num_words) for _ in range(sizes.batch_size)]
        for _ in range(sizes.num_batches)
    ]


def naive_layers(model: ElmoModel, character_ids: torch.Tensor) -> torch.Tensor:
    """All layers of sequences of one length, computed plainly.

    Args:
        model: Where the weights are.
        character_ids: `(sequences, length, characters)` int64, sentence boundaries included.

    Returns:
        `(layers + 1, sequences, length, hidden_size)`.
    """
    vectors = model.character_encoder.encode(character_ids)
    ahead = _naive_stack(model.encoder.forward_layers, vectors, model.config)
    back = _naive_stack(model.encoder.backward_layers, vectors.flip(1), model.config)
    upper = [torch.cat([one, other.flip(1)], -1) for one, other in zip(ahead, back, strict=True)]
    return torch.stack([torch.cat([vectors, vectors], -1), *upper])


def _naive_stack(layers: Iterable[Any], inputs: torch.Tensor, config: ElmoConfig) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for number, layer in enumerate(layers):
        outputs = _naive_lstm(layer, inputs, config)
        inputs = outputs + inputs if number > 0 and config.use_skip_connections else outputs
        found.append(inputs)
    return found


def _naive_lstm(layer: ElmoLstmLayer, inputs: torch.Tensor, config: ElmoConfig) -> torch.Tensor:
    hidden = inputs.new_zeros(len(inputs), config.projection_size)
    cell = inputs.new_zeros(len(inputs), config.lstm_hidden_size)
    outputs = inputs.new_zeros(inputs.shape)
    for step in range(inputs.shape[1]):
        gates = layer.input_linear(inputs[:, step]) + layer.recurrent_linear(hidden)
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4, -1)
        cell = (
            torch.sigmoid(input_gate) * torch.tanh(candidate) + torch.sigmoid(forget_gate + config.forget_bias) * cell
        )
        cell = cell.clamp(-config.cell_clip, config.cell_clip)
        hidden = layer.projection(torch.sigmoid(output_gate) * torch.tanh(cell))
        hidden = hidden.clamp(-config.proj_clip, config.proj_clip)
        outputs[:, step] = hidden
    return outputs
