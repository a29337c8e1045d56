"""What a folder, a zip or a file holds of an ELMo model, by what is in the files and not by their names.

Folders and zips of the NLPL repository, of bilm-tf and of AllenNLP hold options (JSON) and weights (HDF5); those of
ELMoForManyLangs two files that torch has pickled, dictionaries and two JSON files.
"""

import gzip
import json
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import IO, Any

import h5py

from ..archives import checked_members, copy_unpacked
from .conversion_elmo import dataset_names
from .manylangs_elmo import PUBLISHED_CONFIGURATION, read_dictionary, read_state_dict
from .word_input_elmo import EMBEDDING

StrPath = str | os.PathLike
HEAD_BYTES = 4096
MOST_FILES = 200

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
GZIP_MAGIC = b"\x1f\x8b"
TORCH_MAGICS = (
    b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",  # a pickled number, in all files before torch 1.6
    b"PK\x03\x04",
)

OPTIONS = "options of a biLM"
WEIGHTS = "weights of a biLM"
TOKEN_EMBEDDINGS = "token embeddings"
VOCABULARY = "a vocabulary"
ARGUMENTS = "arguments of ELMoForManyLangs"
CONFIGURATION = "a configuration of ELMoForManyLangs"
TOKEN_EMBEDDER = "a token embedder of ELMoForManyLangs"
ENCODER = "an encoder of ELMoForManyLangs"
CHAR_DICTIONARY = "a dictionary of characters"
WORD_DICTIONARY = "a dictionary of words"
DESCRIPTION = "a description"
TEXT = "text"
TRANSFORMERS = "the configuration of a model of transformers"

KNOWN = (
    "known are options (JSON) with weights (HDF5), as of bilm-tf, AllenNLP and the NLPL repository, and the "
    "token_embedder.pkl and encoder.pkl of ELMoForManyLangs with their dictionaries; as a folder or a zip"
)


@dataclass
class ElmoSource:
    """The files of one model.

    Attributes:
        format: `"bilm"` or `"manylangs"`.
        found: Kind of a file -> the file. The names may be temporary.
        names: Kind of a file -> its name in the source.
        configuration: Of ELMoForManyLangs, the parsed configuration.
        languages: Languages that a description names, such as `"eng"`.
        notes: What a user should know about how the source was read.
    """

    format: str
    found: dict[str, Path]
    names: dict[str, str]
    configuration: dict[str, Any] = field(default_factory=dict)
    languages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def opened_source(path: StrPath) -> Iterator[ElmoSource]:
    """Finds a model's files in a folder, a zip or a single file; those of a zip exist as long as the block.

    Raises:
        ValueError: If the source is damaged, holds no model that is known, or several.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"no file or folder {path} (looked in {path.resolve().parent})")
    with tempfile.TemporaryDirectory() as folder:
        if path.is_dir():
            files = _files_of(path)
        elif zipfile.is_zipfile(path) and not _is_torch_zip(path):
            files = _unpacked(path, Path(folder))
        elif path.suffix == ".zip":
            raise ValueError(f"{path} is not a complete zip file")
        else:
            files = {path.name: path}
        files = {name: _without_gzip(file, Path(folder), f"{path}: {name}") for name, file in files.items()}
        kinds: dict[str, list[str]] = {}
        for name, file in files.items():
            kinds.setdefault(kind_of(file, f"{path}: {name}"), []).append(name)
        yield _source(path, files, kinds)


def kind_of(path: Path, name: str = "") -> str:
    """What a file holds: one of this module's constants, or other words for what is none of them.

    Raises:
        ValueError: If it begins as one of the kinds but is damaged.
    """
    name = name or str(path)
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(HDF5_MAGIC):
        return _kind_of_hdf5(path, name)
    if head.startswith(TORCH_MAGICS):
        return _kind_of_pickle(path, name)
    if head.lstrip()[:1] == b"{":
        return _kind_of_json(path)
    return _kind_of_text(path) if _is_text(head) else "a binary file of an unknown kind"


def _kind_of_hdf5(path: Path, name: str) -> str:
    try:
        with h5py.File(path, "r") as file:
            names = dataset_names(file)
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{name} is not a complete HDF5 file: {error}") from error
    if any(dataset.startswith("RNN_0/") for dataset in names):
        return WEIGHTS
    return TOKEN_EMBEDDINGS if names == {EMBEDDING} else "HDF5 of something else"


def _kind_of_pickle(path: Path, name: str) -> str:
    if zipfile.is_zipfile(path) and not _is_torch_zip(path):
        return "a zip"
    try:
        weights = read_state_dict(path)
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), name)) from error
    if "forward_layer_0.input_linearity.weight" in weights:
        return ENCODER
    return TOKEN_EMBEDDER if "projection.weight" in weights else "weights of torch of something else"


def _kind_of_json(path: Path) -> str:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        return "damaged JSON"
    keys: tuple[tuple[str, tuple[str, ...]], ...] = (
        (CONFIGURATION, ("encoder", "token_embedder")),
        (OPTIONS, ("lstm",)),
        (ARGUMENTS, ("config_path",)),
        (TRANSFORMERS, ("model_type",)),
        (DESCRIPTION, ("handle",)),
        (DESCRIPTION, ("corpus",)),
        (DESCRIPTION, ("language",)),
    )
    if not isinstance(content, dict):
        return "other JSON"
    return next((kind for kind, needed in keys if all(key in content for key in needed)), "other JSON")


def _kind_of_text(path: Path) -> str:
    """Tells a vocabulary, by its first lines, from a dictionary, by its numbers."""
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        first = [file.readline(1000).rstrip("\r\n") for _ in range(3)]
    if first == ["<S>", "</S>", "<UNK>"]:
        return VOCABULARY
    if not re.fullmatch(r".*\t?\d+", first[0]):
        return TEXT
    try:
        dictionary = read_dictionary(path)
    except ValueError:
        return TEXT
    ordinary = [entry for entry in dictionary if not re.fullmatch(r"<\w+>", entry)]
    is_of_characters = {"<bow>", "<eow>"} <= dictionary.keys() and all(len(entry) == 1 for entry in ordinary)
    return CHAR_DICTIONARY if is_of_characters else WORD_DICTIONARY


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4 and len(head) == HEAD_BYTES  # a character cut by the head's end
    return True


def _is_torch_zip(path: Path) -> bool:
    with zipfile.ZipFile(path) as file:
        return any(re.fullmatch(r"[^/]+/data\.pkl", name) for name in file.namelist())


def _files_of(folder: Path) -> dict[str, Path]:
    files = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            files[file.relative_to(folder).as_posix()] = file
        if len(files) > MOST_FILES:
            raise ValueError(f"{folder} holds more than {MOST_FILES} files: give the folder of one model")
    return files


def _unpacked(archive: Path, folder: Path) -> dict[str, Path]:
    """Unpacks what may belong to a model, under names that have nothing of those in the archive."""
    files: dict[str, Path] = {}
    try:
        with zipfile.ZipFile(archive) as file:
            members = checked_members(file, str(archive))
            if len(members) > MOST_FILES:
                raise ValueError(f"{archive} holds more than {MOST_FILES} files: it is no model of a known kind")
            for number, member in enumerate(members):
                # a name in the archive could lead out of the folder
                files[member.filename] = folder / f"{number}{Path(member.filename).suffix[:8]}"
                with file.open(member) as packed, open(files[member.filename], "wb") as plain:
                    _copy_if_known(packed, plain, member, folder)
    except (OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{archive} is damaged or cannot be unpacked: {error}") from error
    return files


def _copy_if_known(packed: IO[bytes], plain: IO[bytes], member: zipfile.ZipInfo, folder: Path) -> None:
    """Copies a file, or its head alone where that shows nothing known: TensorFlow's checkpoints are large."""
    head = packed.read(HEAD_BYTES)
    plain.write(head)
    if head.startswith((HDF5_MAGIC, GZIP_MAGIC, *TORCH_MAGICS)) or _is_text(head):
        copy_unpacked(packed, plain, member.compress_size, member.filename, folder)


def _without_gzip(path: Path, folder: Path, name: str) -> Path:
    with open(path, "rb") as file:
        if file.read(2) != GZIP_MAGIC:
            return path
    plain = Path(tempfile.mkdtemp(dir=folder)) / path.stem
    try:
        with gzip.open(path) as packed, open(plain, "wb") as target:
            copy_unpacked(packed, target, path.stat().st_size, name, folder)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{name} is damaged: {error}") from error
    return plain


def _source(path: Path, files: dict[str, Path], kinds: dict[str, list[str]]) -> ElmoSource:
    bilm, manylangs = WEIGHTS in kinds, bool({TOKEN_EMBEDDER, ENCODER} & kinds.keys())
    if bilm and manylangs:
        raise ValueError(f"{path} holds two models ({_listed(kinds)}): give one of them")
    if bilm:
        source = _with_one_of_each(path, files, kinds, "bilm", [OPTIONS, WEIGHTS], [VOCABULARY])
    elif manylangs:
        _settle_dictionaries(kinds)
        optional = [CHAR_DICTIONARY, WORD_DICTIONARY]
        source = _with_one_of_each(path, files, kinds, "manylangs", [TOKEN_EMBEDDER, ENCODER], optional)
        _find_configuration(source, path, files, kinds)
    elif TRANSFORMERS in kinds:
        raise ValueError(f"{path} holds {TRANSFORMERS} ({', '.join(kinds[TRANSFORMERS])}): nothing to convert")
    else:
        raise ValueError(f"{path} holds no ELMo model that is known; found: {_listed(kinds)}; {KNOWN}")
    for name in kinds.get(DESCRIPTION, []):
        source.languages += _languages(json.loads(files[name].read_text(encoding="utf-8")))
    source.languages = sorted(set(source.languages))
    for name in kinds.get(TEXT, []):
        if bilm and name.rsplit("/", 1)[-1].startswith("vocab"):
            source.notes.append(f"{name} was not used: no vocabulary, as it does not begin with <S>, </S>, <UNK>")
    if TOKEN_EMBEDDINGS in kinds:
        source.notes.append(f"{kinds[TOKEN_EMBEDDINGS][0]} holds token embeddings, which were not used")
    return source


def _with_one_of_each(
    path: Path,
    files: dict[str, Path],
    kinds: dict[str, list[str]],
    format: str,
    needed: list[str],
    optional: list[str],
) -> ElmoSource:
    found: dict[str, Path] = {}
    names: dict[str, str] = {}
    for kind in [*needed, *optional]:
        given = kinds.get(kind, [])
        if len(given) > 1:
            raise ValueError(f"{path} has {kind} several times ({', '.join(given)}): leave one of them")
        if not given and kind in needed:
            raise ValueError(f"{path} has no file with {kind}; found: {_listed(kinds)}; {KNOWN}")
        for name in given:
            found[kind], names[kind] = files[name], name
    return ElmoSource(format, found, names)


def _settle_dictionaries(kinds: dict[str, list[str]]) -> None:
    """Where all words have one character, only the names that the format prescribes tell the two apart."""
    for kind, other, name in (
        (CHAR_DICTIONARY, WORD_DICTIONARY, "word.dic"),
        (WORD_DICTIONARY, CHAR_DICTIONARY, "char.dic"),
    ):
        named = [file for file in kinds.get(kind, []) if file.rsplit("/", 1)[-1] == name]
        if len(kinds.get(kind, [])) == 2 and len(named) == 1:
            kinds[kind].remove(named[0])
            kinds.setdefault(other, []).append(named[0])


def _find_configuration(source: ElmoSource, path: Path, files: dict[str, Path], kinds: dict[str, list[str]]) -> None:
    """Reads the file that `config_path` names, which mostly is a path on the disk of the model's author."""

    def content(name: str) -> dict:
        return json.loads(files[name].read_text(encoding="utf-8"))

    named = [str(content(name)["config_path"]) for name in kinds.get(ARGUMENTS, [])]
    wanted = {PureWindowsPath(name).name for name in named}  # which takes both kinds of slash
    candidates = kinds.get(CONFIGURATION, [])
    matching = [name for name in candidates if name.rsplit("/", 1)[-1] in wanted] or candidates
    if len(matching) > 1:
        raise ValueError(f"{path} has {CONFIGURATION} several times ({', '.join(matching)}): leave one of them")
    if matching:
        source.configuration, source.names[CONFIGURATION] = content(matching[0]), matching[0]
        return
    source.configuration = PUBLISHED_CONFIGURATION
    missing = f"{', '.join(sorted(wanted))} is not there" if wanted else "no configuration is there"
    source.notes.append(f"{missing}: that of the published models is taken, whose shapes the weights have")


def _languages(content: Any) -> list[str]:
    """Every string under a key `language`, at any depth."""
    if isinstance(content, list):
        return [language for item in content for language in _languages(item)]
    if not isinstance(content, dict):
        return []
    own = content.get("language")
    nested = [language for item in content.values() for language in _languages(item)]
    return [*([own] if isinstance(own, str) and own else []), *nested]


def _listed(kinds: dict[str, list[str]]) -> str:
    parts = [f"{name} ({kind})" for kind, names in kinds.items() for name in names]
    more = f" and {len(parts) - 10} more" if len(parts) > 10 else ""
    return ", ".join(parts[:10]) + more if parts else "nothing"


__all__ = ["ElmoSource", "kind_of", "opened_source"]
