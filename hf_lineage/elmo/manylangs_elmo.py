"""Models of ELMoForManyLangs (Che et al. 2018, https://aclanthology.org/K18-2005) to `ElmoModel`.

They differ from the original ELMo in their input: characters are Unicode characters of a dictionary instead of bytes,
and a word has a vector of its own beside what its characters make. The LSTMs are the same, their weights in torch's
order with the forget gate's bias included.

One oddity is in every published model: its code looks up `<eow>` for the begin of a word and `<bow>` for its end. So
the vectors of the two trade places here.
"""

import os
from collections.abc import Sequence
from typing import Any

import torch

from .character_codes_elmo import BEGIN_OF_SENTENCE, BEGIN_OF_WORD, END_OF_SENTENCE, END_OF_WORD, PADDING
from .configuration_elmo import ElmoConfig
from .conversion_elmo import checked_config, model_of_weights
from .modeling_elmo import ElmoModel
from .tokenization_elmo import ElmoTokenizer
from .word_input_elmo import arranged, lines_of, tokenizer_of_dictionaries

StrPath = str | os.PathLike
Weights = dict[str, torch.Tensor]

# The configuration of all published models, for folders that name one on their author's disk only
PUBLISHED_CONFIGURATION: dict[str, dict[str, Any]] = {
    "encoder": {"name": "elmo", "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096, "n_layers": 2},
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}


def convert_manylangs(
    configuration: dict,
    token_embedder_file: StrPath,
    encoder_file: StrPath,
    char_dictionary_file: StrPath | None,
    word_dictionary_file: StrPath | None,
    source: str = "the configuration",
    **config_overrides: Any,
) -> tuple[ElmoModel, ElmoTokenizer]:
    """Reads a model of ELMoForManyLangs.

    Args:
        configuration: The parsed file that `config_path` in `config.json` names.
        token_embedder_file: `token_embedder.pkl`.
        encoder_file: `encoder.pkl`.
        char_dictionary_file: `char.dic`; `None` for a model without characters.
        word_dictionary_file: `word.dic`; `None` for a model without words.
        source: What to call the configuration in an error.
        config_overrides: Further fields of `ElmoConfig`.

    Returns:
        The model, in evaluation mode, whose `last_hidden_state` is the mean of the layers (the original's
        `output_layer=-1`), and its tokenizer, which splits text at white space.

    Raises:
        ValueError: If a file is missing or damaged, or holds anything but tensors, or does not fit the configuration.
    """
    fields = _fields(configuration, source)
    embedder, encoder = _WeightFile(token_embedder_file), _WeightFile(encoder_file)
    weights: Weights = {}
    characters = {"<oov>": 1}  # a model of words alone cuts them by characters too
    words = None
    if width := fields["char_embedding_size"]:
        characters, weights["embedding.weight"] = _characters(char_dictionary_file, embedder, width)
        fields["char_vocab_size"] = len(weights["embedding.weight"])
    if width := fields["word_embedding_size"]:
        words, weights["word_embedding.weight"] = _words(word_dictionary_file, embedder, width)
        fields["word_vocab_size"] = len(weights["word_embedding.weight"])
    config = checked_config({**fields, **config_overrides}, source)
    if not (config.use_token_projection and config.use_lstm_projection):
        raise ValueError(
            f"{source}: a model whose token features ({config.token_feature_size}) or LSTM cells "
            f"({config.lstm_hidden_size}) are as wide as their projection ({config.projection_size}) is not supported"
        )
    weights.update(_token_weights(config, embedder))
    weights = {f"character_encoder.{name}": value for name, value in weights.items()}
    weights.update(_lstm_weights(config, encoder))
    embedder.check_all_taken()
    encoder.check_all_taken()
    model = model_of_weights(config, weights)
    tokenizer = tokenizer_of_dictionaries(
        config, characters, words, bos_token="<bos>", eos_token="<eos>", unk_token="<oov>"
    )
    return model, tokenizer


def read_state_dict(path: StrPath) -> Weights:
    """Reads weights that torch has pickled, without running anything that the pickle asks for.

    Raises:
        ValueError: If the file is damaged or holds anything but named tensors.
    """
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # what a damaged pickle makes torch's reader raise is any kind
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{path} is damaged or holds more than weights, which is not run: {reason[0]}") from error
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in weights.items()
    ):
        raise ValueError(f"{path} must hold named tensors, it holds a {type(weights).__name__}")
    return weights


def read_dictionary(path: StrPath) -> dict[str, int]:
    """Reads `char.dic` or `word.dic`: an entry, a tab and its number a line.

    A line of white space and a number stands for U+3000, as in the original.

    Raises:
        ValueError: If a line is of another form.
    """
    dictionary: dict[str, int] = {}
    for number, line in enumerate(lines_of(path), 1):
        parts = line.strip().split("\t")
        entry, value = parts if len(parts) == 2 else ("\u3000", parts[0] if len(parts) == 1 else "")
        if not (value.isascii() and value.isdigit()):
            raise ValueError(f"{path}, line {number}: must be an entry, a tab and its number, got {line[:80]!r}")
        dictionary[entry] = int(value)
    return dictionary


def _fields(configuration: dict, source: str) -> dict[str, Any]:
    """Fields of `ElmoConfig`, without the sizes of the dictionaries."""
    parts: dict[str, dict] = {}
    for part, known in (("encoder", "elmo"), ("token_embedder", "cnn")):
        if not isinstance(configuration.get(part), dict):
            raise ValueError(f"{source} has no {part!r}")
        parts[part] = configuration[part]
        name = parts[part].get("name")
        if str(name).lower() != known:
            raise ValueError(f"{source} has '{part}.name': {name!r}; only {known!r} is supported")

    def get(part: str, name: str) -> Any:
        if name not in parts[part]:
            raise ValueError(f"{source} has no '{part}.{name}'")
        return parts[part][name]

    projection_size = get("encoder", "projection_dim")
    if not isinstance(projection_size, int):
        raise ValueError(f"{source} has 'encoder.projection_dim': {projection_size!r}, which must be an integer")
    fields = {
        "hidden_size": 2 * projection_size,
        "lstm_hidden_size": get("encoder", "dim"),
        "num_hidden_layers": get("encoder", "n_layers"),
        "cell_clip": get("encoder", "cell_clip"),
        "proj_clip": get("encoder", "proj_clip"),
        "char_vocabulary": "dictionary",
        "forget_bias": 0.0,  # the weights have it
        "word_embedding_size": get("token_embedder", "word_dim"),
        "char_embedding_size": get("token_embedder", "char_dim"),
        "max_characters_per_token": get("token_embedder", "max_characters_per_token"),
    }
    if fields["char_embedding_size"]:
        fields["char_cnn_filters"] = get("token_embedder", "filters")
        fields["char_cnn_activation"] = get("token_embedder", "activation")
        fields["num_highway_layers"] = get("token_embedder", "n_highway")
    return fields


class _WeightFile:
    """A file of weights, and which of them were taken."""

    def __init__(self, path: StrPath):
        self.path = path
        self.weights = read_state_dict(path)
        self.taken: set[str] = set()

    def take(self, name: str, shape: tuple[int | None, ...]) -> torch.Tensor:
        """Takes the weights of a name as float32; a size that is `None` may be any.

        Raises:
            ValueError: If there are none of that name and shape.
        """
        if name not in self.weights:
            found = ", ".join(sorted(self.weights)[:5]) or "none"
            raise ValueError(f"{self.path} has no weights {name}, it has {found}")
        self.taken.add(name)
        weights = self.weights[name]
        if len(shape) != weights.dim() or any(
            size not in (None, n) for size, n in zip(shape, weights.shape, strict=True)
        ):
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(
                f"{self.path}: {name} has shape {tuple(weights.shape)}, by the configuration it must be ({wanted})"
            )
        return weights.float()

    def check_all_taken(self) -> None:
        """Raises a `ValueError` if there are weights that the configuration knows nothing of."""
        if left := sorted(set(self.weights) - self.taken):
            raise ValueError(
                f"{self.path} has weights that a model of this configuration does not have: {', '.join(left[:5])}"
            )


def _characters(path: StrPath | None, embedder: _WeightFile, width: int) -> tuple[dict[str, int], torch.Tensor]:
    dictionary, table = _dictionary_and_table(path, "char", embedder, width)
    special = {
        BEGIN_OF_SENTENCE: "<bos>",
        END_OF_SENTENCE: "<eos>",
        BEGIN_OF_WORD: "<eow>",  # these two trade places, as the module's text says
        END_OF_WORD: "<bow>",
        PADDING: "<pad>",
    }
    _check_entries(dictionary, ["<oov>", *special.values()], path)
    entries = ["<oov>", *(entry for entry in dictionary if len(entry) == 1)]
    return arranged(dictionary, table, entries, {here: dictionary[entry] for here, entry in special.items()})


def _words(path: StrPath | None, embedder: _WeightFile, width: int) -> tuple[dict[str, int], torch.Tensor]:
    dictionary, table = _dictionary_and_table(path, "word", embedder, width)
    special = {BEGIN_OF_SENTENCE: "<bos>", END_OF_SENTENCE: "<eos>", PADDING: "<pad>"}
    _check_entries(dictionary, ["<oov>", *special.values()], path)
    return arranged(dictionary, table, dictionary, {here: dictionary[entry] for here, entry in special.items()})


def _dictionary_and_table(
    path: StrPath | None, kind: str, embedder: _WeightFile, width: int
) -> tuple[dict[str, int], torch.Tensor]:
    if path is None:
        raise ValueError(f"the configuration says '{kind}_dim': {width}, but there is no dictionary ({kind}.dic)")
    dictionary = read_dictionary(path)
    table = embedder.take(f"{kind}_emb_layer.embedding.weight", (None, width))
    last = max(dictionary.values(), default=-1)
    if last >= len(table):
        raise ValueError(f"{path} has numbers up to {last}, but {embedder.path} has {len(table)} vectors")
    return dictionary, table


def _check_entries(dictionary: dict[str, int], needed: list[str], path: StrPath | None) -> None:
    if missing := [entry for entry in needed if entry not in dictionary]:
        raise ValueError(f"{path} has no entry {missing[0]}")


def _token_weights(config: ElmoConfig, embedder: _WeightFile) -> Weights:
    weights: Weights = {}
    if config.char_embedding_size:
        size = config.num_char_filters
        for number, (width, filters) in enumerate(config.char_cnn_filters):
            name = f"convolutions.{number}"
            weights[f"{name}.weight"] = embedder.take(f"{name}.weight", (filters, config.char_embedding_size, width))
            weights[f"{name}.bias"] = embedder.take(f"{name}.bias", (filters,))
        for number in range(config.num_highway_layers):
            for part, shape in (("weight", (2 * size, size)), ("bias", (2 * size,))):
                both = embedder.take(f"highways._layers.{number}.{part}", shape)
                weights[f"highways.{number}.transform.{part}"] = both[:size]
                # there the gate opens for the input, here for what becomes of it
                weights[f"highways.{number}.gate.{part}"] = -both[size:]
    shape = (config.projection_size, config.token_feature_size)
    weights["projection.weight"] = embedder.take("projection.weight", shape)
    weights["projection.bias"] = embedder.take("projection.bias", shape[:1])
    return weights


def _lstm_weights(config: ElmoConfig, encoder: _WeightFile) -> Weights:
    size, projection_size = config.lstm_hidden_size, config.projection_size
    names: Sequence[tuple[str, str, tuple[int, ...]]] = (
        ("input_linear.weight", "input_linearity.weight", (4 * size, projection_size)),
        ("recurrent_linear.weight", "state_linearity.weight", (4 * size, projection_size)),
        ("input_linear.bias", "state_linearity.bias", (4 * size,)),
        ("projection.weight", "state_projection.weight", (projection_size, size)),
    )
    return {
        f"encoder.{direction}_layers.{number}.{ours}": encoder.take(f"{direction}_layer_{number}.{theirs}", shape)
        for direction in ("forward", "backward")
        for number in range(config.num_hidden_layers)
        for ours, theirs, shape in names
    }


__all__ = ["PUBLISHED_CONFIGURATION", "convert_manylangs", "read_dictionary", "read_state_dict"]
