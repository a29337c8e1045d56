"""ELMo weights in the original format, `options.json` and HDF5, to `ElmoModel` and back.

The format is bilm-tf's (`bilm/training.py`, `dump_weights`); AllenNLP and the NLPL repository publish in it too.
"""

import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import h5py
import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from ..archives import copy_unpacked
from ..files import atomic_file
from ..hdf5 import own_dataset
from .configuration_elmo import ElmoConfig
from .modeling_elmo import ElmoForPreTraining, ElmoModel

StrPath = str | os.PathLike
_KINDS: dict[type, str] = {dict: "an object", int: "an integer"}


@dataclass(frozen=True)
class Dataset:
    """How one HDF5 dataset corresponds to parameters of `ElmoModel`.

    Args:
        name: Path in the HDF5 file.
        shape: Shape there.
        parameters: Names of the parameters that it holds.
        read: Array -> one array a parameter.
        write: One array a parameter -> array.
    """

    name: str
    shape: tuple[int, ...]
    parameters: tuple[str, ...]
    read: Callable[[np.ndarray], tuple[np.ndarray, ...]]
    write: Callable[..., np.ndarray]


def convert_elmo_checkpoint(
    options_file: StrPath, weight_file: StrPath, *, with_softmax: bool = False, **config_overrides: Any
) -> ElmoModel | ElmoForPreTraining:
    """Reads a biLM in the original format.

    Args:
        options_file: The options (`.json`) of bilm-tf, AllenNLP or NLPL, with 261 or 262 characters.
        weight_file: The weights (`.hdf5`).
        with_softmax: Whether to read the softmax over words as well, which only files that `export_elmo_checkpoint`
            wrote can have: bilm-tf leaves it in its TensorFlow checkpoint.
        config_overrides: Fields of `ElmoConfig` that the options do not hold, such as `stateful=True`.

    Returns:
        `ElmoModel`, or with the softmax `ElmoForPreTraining`, in evaluation mode. The scalar mix, which the format
        does not hold, is at its start (uniform).

    Raises:
        ValueError: If a file is missing, unreadable or a pickle, an option is missing or contradicts another, or a
            dataset is missing, has the wrong shape or is none of this model's.
    """
    for path in (options_file, weight_file):
        check_readable(path)
    config = config_from_options(read_json(options_file), str(options_file), **config_overrides)
    if not with_softmax:
        return model_of_weights(config, read_weights(weight_file, config))
    if config.vocab_size is None:
        raise ValueError(f"{options_file} has no 'n_tokens_vocab', the number of words of the softmax")
    model = ElmoForPreTraining(config)
    model.lm_head.load_state_dict(read_weights(weight_file, config, list(_softmax_datasets(config))))
    _load(model.elmo, read_weights(weight_file, config))
    return model.eval()


def model_of_weights(config: ElmoConfig, weights: dict[str, torch.Tensor]) -> ElmoModel:
    """Makes a model, in evaluation mode, of all its weights but those of the scalar mix, which stays uniform."""
    model = ElmoModel(config)
    _load(model, weights)
    return model.eval()


def _load(model: ElmoModel, weights: dict[str, torch.Tensor]) -> None:
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or any(not name.startswith("scalar_mixes.") for name in missing):
        raise AssertionError(f"the weights do not fit the model: {missing}, {unexpected}")


def export_elmo_checkpoint(
    model: PreTrainedModel, options_file: StrPath, weight_file: StrPath, *, with_softmax: bool = False
) -> None:
    """Writes a biLM in the original format, so that bilm-tf and AllenNLP can read it.

    The scalar mix and the heads, which the format does not hold, are left out.

    Args:
        model: `ElmoModel` or a model with a head.
        options_file: Where to write the options.
        weight_file: Where to write the weights.
        with_softmax: Whether to add the softmax over words of `ElmoForPreTraining`, as `softmax/W` and `softmax/b`,
            bilm-tf's names for it. Readers that take datasets by name, as bilm-tf and AllenNLP do, pass over it.

    Raises:
        ValueError: If the model cannot be described in the format, or a file cannot be written where it should be.
    """
    config = model.config
    if config.char_vocabulary != "bytes" or config.word_embedding_size:
        raise ValueError(
            "the original format has models that read bytes, the model has a dictionary of characters or words"
        )
    if config.char_vocab_size != 262:
        raise ValueError(f"the original format has 262 characters, the model has {config.char_vocab_size}")
    if config.lstm_hidden_size < config.projection_size:
        raise ValueError(
            f"the original format projects down or not at all, the model from lstm_hidden_size="
            f"{config.lstm_hidden_size} up to hidden_size / 2 = {config.projection_size}"
        )
    if Path(options_file).resolve() == Path(weight_file).resolve():
        raise ValueError(f"options and weights must be two files, got {options_file} for both")
    written = [(dataset, model.base_model.state_dict()) for dataset in datasets(config)]
    if with_softmax:
        softmax = getattr(model, "lm_head", None)
        if not isinstance(softmax, nn.Linear):
            raise ValueError(
                f"only the linear softmax of ElmoForPreTraining can be written, {type(model).__name__} has "
                f"{'none' if softmax is None else type(softmax).__name__}"
            )
        written += [(dataset, softmax.state_dict()) for dataset in _softmax_datasets(config)]
    options = json.dumps(options_from_config(config), indent=2) + "\n"
    # Both get their final names only when both are complete.
    with atomic_file(options_file) as options_path, atomic_file(weight_file) as weight_path:
        options_path.write_text(options, encoding="utf-8")
        with h5py.File(weight_path, "w") as file:
            for dataset, state in written:
                arrays = [state[name].detach().float().cpu().numpy() for name in dataset.parameters]
                file.create_dataset(dataset.name, data=dataset.write(*arrays))


def config_from_options(options: dict, source: str = "the options", **overrides: Any) -> ElmoConfig:
    """Makes the configuration that bilm-tf's options describe.

    Args:
        options: The parsed `options.json`.
        source: What to call it in an error.
        overrides: Further fields of `ElmoConfig`.

    Raises:
        ValueError: If an option is missing or contradicts another.
    """
    if options.get("char_cnn") is None:
        raise ValueError(f"{source} has no 'char_cnn': the model reads words, so give its vocabulary")
    fields = lstm_fields_from_options(options, source)
    characters = _get(options, source, "char_cnn", dict)
    number = characters.get("n_characters", 262)
    if number not in (261, 262):
        raise ValueError(f"{source} has 'char_cnn.n_characters': {number!r}; it must be 261 (training) or 262")
    fields.update(
        char_embedding_size=_get(options, source, "char_cnn.embedding.dim"),
        max_characters_per_token=_get(options, source, "char_cnn.max_characters_per_token"),
        char_cnn_filters=_get(options, source, "char_cnn.filters"),
        char_cnn_activation=_get(options, source, "char_cnn.activation"),
        num_highway_layers=characters.get("n_highway") or 0,
    )
    return checked_config({**fields, **overrides}, source)


def checked_config(fields: dict[str, Any], source: str) -> ElmoConfig:
    """Makes a configuration; an error names the file that the fields come from."""
    try:
        return ElmoConfig(**fields)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def lstm_fields_from_options(options: dict, source: str) -> dict[str, Any]:
    """The fields of `ElmoConfig` that do not depend on what the input is; arguments as in `config_from_options`."""
    lstm = _get(options, source, "lstm", dict)
    if options.get("bidirectional", True) is not True:
        raise ValueError(f"{source} has 'bidirectional': {options['bidirectional']!r}; only true is supported")
    cell_size, projection_size = (_get(options, source, f"lstm.{name}", int) for name in ("dim", "projection_dim"))
    if projection_size > cell_size:
        raise ValueError(
            f"{source} has 'lstm.projection_dim': {projection_size} above 'lstm.dim': {cell_size}; bilm-tf projects "
            "down or not at all"
        )
    return {
        "hidden_size": 2 * projection_size,
        "lstm_hidden_size": cell_size,
        "num_hidden_layers": _get(options, source, "lstm.n_layers"),
        "use_skip_connections": bool(lstm.get("use_skip_connections", False)),
        "cell_clip": lstm.get("cell_clip"),
        "proj_clip": lstm.get("proj_clip"),
        "vocab_size": options.get("n_tokens_vocab"),
    }


def options_from_config(config: ElmoConfig) -> dict:
    """Describes a configuration in bilm-tf's options."""
    options = {
        "bidirectional": True,
        "lstm": {
            "cell_clip": config.cell_clip,
            "dim": config.lstm_hidden_size,
            "n_layers": config.num_hidden_layers,
            "proj_clip": config.proj_clip,
            "projection_dim": config.projection_size,
            "use_skip_connections": config.use_skip_connections,
        },
        "char_cnn": {
            "activation": config.char_cnn_activation,
            "embedding": {"dim": config.char_embedding_size},
            "filters": config.char_cnn_filters,
            "max_characters_per_token": config.max_characters_per_token,
            "n_characters": 262,
            "n_highway": config.num_highway_layers,
        },
    }
    if config.vocab_size is not None:
        options["n_tokens_vocab"] = config.vocab_size
    if config.num_negative_samples:
        options["n_negative_samples_batch"] = config.num_negative_samples
    if config.lstm_dropout:
        options["dropout"] = config.lstm_dropout
    return options


def datasets(config: ElmoConfig) -> Iterator[Dataset]:
    """Every dataset of a model's HDF5 file."""
    if config.char_embedding_size:
        yield from _character_datasets(config)
    for direction, stack in enumerate(("forward_layers", "backward_layers")):
        for number in range(config.num_hidden_layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            yield from _lstm_datasets(config, cell, f"encoder.{stack}.{number}")


def _character_datasets(config: ElmoConfig) -> Iterator[Dataset]:
    width, size = config.char_embedding_size, config.num_char_filters
    yield Dataset(
        "char_embed",
        (config.char_vocab_size - 1, width),
        ("character_encoder.embedding.weight",),
        lambda array: (np.concatenate([np.zeros_like(array[:1]), array]),),  # row 0, padding, is not in the file
        lambda table: table[1:],
    )
    for number, (window, filters) in enumerate(config.char_cnn_filters):
        name = f"character_encoder.convolutions.{number}"
        yield Dataset(
            f"CNN/W_cnn_{number}",
            (1, window, width, filters),
            (f"{name}.weight",),
            lambda array: (array[0].transpose(2, 1, 0),),
            lambda weight: weight.transpose(2, 1, 0)[None],
        )
        yield _plain(f"CNN/b_cnn_{number}", (filters,), f"{name}.bias")
    for number in range(config.num_highway_layers):
        for part, original in (("gate", "carry"), ("transform", "transform")):
            name = f"character_encoder.highways.{number}.{part}"
            yield _transposed(f"CNN_high_{number}/W_{original}", (size, size), f"{name}.weight")
            yield _plain(f"CNN_high_{number}/b_{original}", (size,), f"{name}.bias")
    if size != config.projection_size:
        name = "character_encoder.projection"
        yield _transposed("CNN_proj/W_proj", (size, config.projection_size), f"{name}.weight")
        yield _plain("CNN_proj/b_proj", (config.projection_size,), f"{name}.bias")


def _lstm_datasets(config: ElmoConfig, cell: str, layer: str) -> Iterator[Dataset]:
    inputs, size = config.projection_size, config.lstm_hidden_size
    yield Dataset(
        f"{cell}/W_0",
        (2 * inputs, 4 * size),
        (f"{layer}.input_linear.weight", f"{layer}.recurrent_linear.weight"),
        lambda array: (_swap_gates(array[:inputs].T), _swap_gates(array[inputs:].T)),
        lambda of_input, recurrent: np.concatenate([_swap_gates(of_input).T, _swap_gates(recurrent).T]),
    )
    shift = config.forget_bias - 1.0  # the originals add 1 to what the file holds

    def write_bias(bias: np.ndarray) -> np.ndarray:
        bias = bias.copy()
        if shift:
            bias[size : 2 * size] += shift
        return _swap_gates(bias)

    yield Dataset(
        f"{cell}/B", (4 * size,), (f"{layer}.input_linear.bias",), lambda array: (_swap_gates(array),), write_bias
    )
    if config.use_lstm_projection:
        yield _transposed(f"{cell}/W_P_0", (size, inputs), f"{layer}.projection.weight")


def _softmax_datasets(config: ElmoConfig) -> Iterator[Dataset]:
    size = cast(int, config.vocab_size)
    yield _plain("softmax/W", (size, config.projection_size), "weight")
    yield _plain("softmax/b", (size,), "bias")


def _all(config: ElmoConfig) -> Iterator[Dataset]:
    yield from datasets(config)
    if config.vocab_size is not None:
        yield from _softmax_datasets(config)


def _plain(name: str, shape: tuple[int, ...], parameter: str) -> Dataset:
    return Dataset(name, shape, (parameter,), lambda array: (array,), lambda array: array)


def _transposed(name: str, shape: tuple[int, ...], parameter: str) -> Dataset:
    return Dataset(name, shape, (parameter,), lambda array: (array.T,), lambda array: array.T)


def _swap_gates(rows: np.ndarray) -> np.ndarray:
    """TensorFlow's order input, candidate, forget, output to input, forget, candidate, output; its own inverse."""
    return rows.reshape(4, -1, *rows.shape[1:])[[0, 2, 1, 3]].reshape(rows.shape)


def read_weights(path: StrPath, config: ElmoConfig, expected: list[Dataset] | None = None) -> dict[str, torch.Tensor]:
    """Reads what an HDF5 file holds of a model's parameters; the table of its input words is elsewhere.

    Args:
        path: The file.
        config: The model's configuration.
        expected: The datasets to read; `None` for those of `ElmoModel`.

    Raises:
        ValueError: If a dataset is missing, has the wrong shape or is none of this model's.
    """
    expected = list(datasets(config)) if expected is None else expected
    weights: dict[str, torch.Tensor] = {}
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path} is not a complete HDF5 file: {error}") from error
    with file:
        _check_names(file, {dataset.name for dataset in expected}, config, path)
        for dataset in expected:
            for name, array in zip(dataset.parameters, dataset.read(_read_array(file, dataset, path)), strict=True):
                weights[name] = torch.from_numpy(np.ascontiguousarray(array))
    return weights


def _read_array(file: h5py.File, dataset: Dataset, path: StrPath) -> np.ndarray:
    found = own_dataset(file, dataset.name, path)
    if found.shape != dataset.shape:
        raise ValueError(
            f"{path}: dataset {dataset.name} has shape {found.shape}, by the options it must be {dataset.shape}"
        )
    try:
        return found[...].astype(np.float32, copy=False)
    except OSError as error:
        raise ValueError(f"{path}: dataset {dataset.name} cannot be read: {error}") from error


def dataset_names(file: h5py.File) -> set[str]:
    """Names of all datasets in a file, those in groups as paths."""
    found: set[str] = set()
    file.visititems(lambda name, item: found.add(name) if isinstance(item, h5py.Dataset) else None)
    return found


def _check_names(file: h5py.File, expected: set[str], config: ElmoConfig, path: StrPath) -> None:
    found = dataset_names(file)
    if not config.char_embedding_size:
        found = {name for name in found if name.startswith("RNN_")}  # others do not matter to a model of words
    allowed = {dataset.name for dataset in _all(config)}
    if missing := sorted(expected - found):
        raise ValueError(
            f"{path} has no dataset {missing[0]}" + (f" (nor {len(missing) - 1} others)" if missing[1:] else "")
        )
    if unexpected := sorted(found - allowed):
        raise ValueError(f"{path} has datasets that a model of these options does not have: {', '.join(unexpected)}")


def _get(options: dict, source: str, path: str, kind: type = object) -> Any:
    value: Any = options
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            raise ValueError(f"{source} has no {path!r}")
        value = value[key]
    if not isinstance(value, kind):
        raise ValueError(f"{source} has {path!r}: {value!r}, which must be {_KINDS[kind]}")
    return value


def read_json(path: StrPath) -> dict:
    """Reads a JSON object.

    Raises:
        ValueError: If the file holds something else.
    """
    try:
        options = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(options, dict):
        raise ValueError(f"{path} must hold a JSON object, it holds a {type(options).__name__}")
    return options


def check_readable(path: StrPath) -> None:
    """Raises a `ValueError` unless a file exists and has no name of a pickle."""
    if Path(path).suffix in (".pkl", ".pickle", ".pt", ".pth", ".bin"):
        raise ValueError(f"{path} is a pickle, which could run any code; give the HDF5 weights instead")
    if not Path(path).is_file():
        raise ValueError(f"no file {path} (looked in {Path(path).resolve().parent})")


@contextmanager
def opened_vocabulary(path: StrPath) -> Iterator[Path]:
    """Gives the path of a plain vocabulary file, unpacked for the time of the block if `path` ends in `.gz`.

    Raises:
        ValueError: If there is no such file or it is no complete gzip file.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no vocabulary file {path}")
    if path.suffix != ".gz":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        try:
            with gzip.open(path) as source, open(plain, "wb") as copy:
                copy_unpacked(source, copy, path.stat().st_size, str(path), Path(folder))
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a complete gzip file: {error}") from error
        yield plain


__all__ = [
    "check_readable",
    "checked_config",
    "config_from_options",
    "convert_elmo_checkpoint",
    "dataset_names",
    "export_elmo_checkpoint",
    "lstm_fields_from_options",
    "model_of_weights",
    "opened_vocabulary",
    "options_from_config",
    "read_json",
    "read_weights",
]
