"""What of a model's folder is published, and with what code."""

import json
import os
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

import hf_lineage

from ..auto import FAMILIES, Family
from ..files import atomic_file
from ..parameters import network_without_weights
from .custom_code import code_names, code_texts, model_auto_map, tokenizer_auto_map

TOKENIZER_CONFIG_NAME = "tokenizer_config.json"

# Names of files and folders that are not the model's: hidden ones, the state of a training, and pickles, which nobody
# should have to load (training_args.bin can hold a token besides)
LEFT_OUT = (".*", "_*", "checkpoint-*", "runs", "*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle", "*.ckpt", "*.joblib")


def published_files(folder: str | os.PathLike, with_code: bool = False) -> dict[str, Path | bytes]:
    """What a repository of a model holds.

    Args:
        folder: The model's folder, as `save_pretrained` and `Trainer` write it. It is left as it is.
        with_code: Whether the family's files go with it, or else one line that imports this package.

    Returns:
        Path in the repository -> file, or what is made: the code, and the files of the configurations, which name it.

    Raises:
        ValueError: If the folder holds no complete model of a family of this package, or a tokenizer of another one.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"no folder {folder}")
    family, config = _checked_config(folder)
    _check_fit(folder, config, _shapes_of_weights(folder))
    files: dict[str, Path | bytes] = {
        name: folder / name for name in _files_under(folder) if not _is_left_out(name) and name not in code_names()
    }
    config.pop("custom_pipelines", None)  # code of another repository's making
    files[CONFIG_NAME] = _json({**config, "auto_map": model_auto_map(family, with_code)})
    if TOKENIZER_CONFIG_NAME in files:
        files[TOKENIZER_CONFIG_NAME] = _json(_published_tokenizer_config(folder, family, with_code))
    files.update({name: text.encode() for name, text in code_texts(family, with_code).items()})
    return dict(sorted(files.items()))


def left_out_files(folder: str | os.PathLike) -> list[str]:
    """The files of a folder that are not published, by the names in `LEFT_OUT`; of a folder, its name alone."""
    names = [name for name in _files_under(Path(folder)) if _is_left_out(name)]
    return sorted({_left_out_part(name) for name in names})


def write_code(folder: str | os.PathLike, with_code: bool = False) -> list[str]:
    """Makes a model's folder one that loads with `trust_remote_code=True` like a repository that `push_folder` fills.

    Args:
        folder: The model's folder; the files of its configurations are replaced, and the code is added.
        with_code: As in `published_files`.

    Returns:
        Names of the files that were written.

    Raises:
        ValueError: As in `published_files`.
    """
    made = {
        name: content for name, content in published_files(folder, with_code).items() if isinstance(content, bytes)
    }
    for name, content in made.items():
        with atomic_file(Path(folder, name)) as file:
            file.write_bytes(content)
    for name in code_names() - made.keys():
        Path(folder, name).unlink(missing_ok=True)
    return list(made)


def _checked_config(folder: Path) -> tuple[Family, dict[str, Any]]:
    """The family of a folder's model and its configuration as the file has it."""
    config = _read_json(folder, CONFIG_NAME)
    model_type = config.get("model_type")
    if model_type not in FAMILIES:
        raise ValueError(f"{folder} has a model of the type {model_type!r}, not one of {', '.join(sorted(FAMILIES))}")
    family = FAMILIES[model_type]
    getattr(hf_lineage, family.config[1]).from_dict(dict(config))  # says what is wrong with it
    return family, config


def _shapes_of_weights(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of a folder's weights; those that are absent or damaged are refused."""
    names = [SAFE_WEIGHTS_NAME]
    if not (folder / SAFE_WEIGHTS_NAME).is_file() and (folder / SAFE_WEIGHTS_INDEX_NAME).is_file():
        weight_map = _read_json(folder, SAFE_WEIGHTS_INDEX_NAME).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise ValueError(f"{folder / SAFE_WEIGHTS_INDEX_NAME} has no weight_map")
        names = sorted({str(name) for name in weight_map.values()})
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        if PurePosixPath(name).name != name or "\\" in name:
            raise ValueError(f"{folder / SAFE_WEIGHTS_INDEX_NAME} must name files of its folder, not {name!r}")
        if not (folder / name).is_file():
            raise ValueError(f"{folder} has no {name}: only complete models with safetensors are published")
        try:
            with safe_open(folder / name, framework="pt") as file:  # compares the sizes in the header with the file's
                shapes |= {tensor: tuple(file.get_slice(tensor).get_shape()) for tensor in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"{folder / name} is damaged or cut off: {error}") from error
    return shapes


def _check_fit(folder: Path, content: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuses weights that a model of the configuration cannot have, or that are only a part of its own."""
    names = content.get("architectures") or []
    if not names or names[0] not in hf_lineage.PUBLIC_NAMES or "quantization_config" in content:
        return  # what its weights are called is not known here
    family = FAMILIES[content["model_type"]]
    network = network_without_weights(getattr(hf_lineage, family.config[1]).from_dict(dict(content)))
    tied: dict[int, list[str]] = {}
    for name, parameter in network.named_parameters(remove_duplicate=False):
        tied.setdefault(id(parameter), []).append(name)
        if name in shapes and shapes[name] != tuple(parameter.shape):
            raise ValueError(
                f"{folder} has {name} of the shape {shapes[name]}, by its {CONFIG_NAME} it must be "
                f"{tuple(parameter.shape)}"
            )

    def part(name: str) -> str:
        return name.removeprefix(f"{network.base_model_prefix}.").partition(".")[0]

    # a part can be left out as a whole, as add_pooling_layer=False does
    present = {part(name) for name in shapes}
    is_foreign = not shapes.keys() & {name for same in tied.values() for name in same}
    absent = [same[0] for same in tied.values() if not shapes.keys() & set(same)]
    if missing := [name for name in absent if is_foreign or part(name) in present]:
        raise ValueError(f"{folder} lacks {len(missing)} of its weights, such as {missing[0]}")


def _published_tokenizer_config(folder: Path, family: Family, with_code: bool) -> dict[str, Any]:
    config = _read_json(folder, TOKENIZER_CONFIG_NAME)
    config.pop("auto_map", None)
    name = config.get("tokenizer_class")
    foreign = {other.tokenizer[1] for other in FAMILIES.values()} - {family.tokenizer[1]}
    if name in foreign:
        raise ValueError(f"{folder} has a {name} beside the model, which {family.tokenizer[1]} goes with")
    # any other is one of transformers' own, such as the WordPiece of a Chinese ALBERT
    return {**config, "auto_map": tokenizer_auto_map(family, with_code)} if name == family.tokenizer[1] else config


def _files_under(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]


def _is_left_out(name: str) -> bool:
    return any(fnmatch(part, pattern) for part in PurePosixPath(name).parts for pattern in LEFT_OUT)


def _left_out_part(name: str) -> str:
    """The outermost folder for which a file is left out, or the file."""
    path = PurePosixPath(name)
    outermost = [*reversed(path.parents), path][1:]
    return str(next(part for part in outermost if any(fnmatch(part.name, pattern) for pattern in LEFT_OUT)))


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"{folder} has no {name}: a folder that save_pretrained wrote is wanted") from error
    except ValueError as error:
        raise ValueError(f"{folder / name} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{folder / name} must hold an object, not {type(content).__name__}")
    return content


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


__all__ = ["LEFT_OUT", "left_out_files", "published_files", "write_code"]
