"""The model card of a folder, from what can be read in it: `README.md` for the folder or the Hub."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import transformers
from huggingface_hub import ModelCard, ModelCardData
from transformers import AutoConfig, AutoTokenizer

from .. import __version__
from ..files import atomic_file
from ..parameters import layer_runs, network_without_weights, parameters_by_part
from .family_card import family_card
from .run_results import TrainedBy, read_run, results_beside
from .usage import usage_of

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

StrPath = str | os.PathLike

CARD_FILE = "README.md"
_TEMPLATE = Path(__file__).with_name("model_card.md.j2")


def create_model_card(
    folder: StrPath,
    name: str | None = None,
    *,
    language: str | Sequence[str] | None = None,
    license: str | None = None,
    results: Sequence[StrPath] | None = None,
    source_facts: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> ModelCard:
    """Makes the card of a model of this package; nothing of it is guessed, and no path of a machine is in it.

    Args:
        folder: The model, its configuration and tokenizer.
        name: What its listing loads: a repository such as `"me/elmo"`, or a folder; by default the folder's name.
        language: Code of its language, or of several, such as `"en"`.
        license: The Hub's identifier of the license of its weights, such as `"apache-2.0"`.
        results: JSON files of the runs that trained it; by default `results.json` in the folder, or beside it where it
            is the `model/` of a run.
        source_facts: Of a model that was converted: what it was read from, each fact in words.
        notes: Markdown to add to what its users should know.

    Raises:
        ValueError: If the folder holds no model of this package, or results are damaged or of another architecture.
    """
    folder = Path(folder)
    config = _config(folder)
    name = name or folder.resolve().name
    family = family_card(config.model_type)
    tokenizer = _tokenizer(folder)
    network = network_without_weights(config)
    architecture = type(network).__name__
    usage = usage_of(config, architecture, name)
    files = results_beside(folder) if results is None else results
    runs = [_checked(read_run(file, family.pretraining_task), config, file) for file in files]
    parts = parameters_by_part(network)
    evaluations = [result for run in runs for result in run.results]
    data = ModelCardData(
        language=[language] if isinstance(language, str) else list(language or ()) or None,
        license=license,
        library_name="transformers",
        pipeline_tag=usage.pipeline_tag,
        tags=[family.tag],
        datasets=list(dict.fromkeys(name for run in runs for name in run.datasets)) or None,
        metrics=list(dict.fromkeys(result.metric_type for result in evaluations)) or None,
        eval_results=evaluations or None,
        model_name=name.rpartition("/")[2] if evaluations else None,
    )
    return ModelCard.from_template(
        data,
        template_str=_TEMPLATE.read_text(encoding="utf-8"),
        title=name,
        description=f"{family.title}: {family.description}. This card was written by hf-lineage {__version__} with "
        f"transformers {transformers.__version__}.",
        model_facts=_cells(_model_facts(config, architecture, tokenizer)),
        layer_runs=layer_runs(config),
        parts=list(parts.items()),
        total=sum(parts.values()),
        usage=usage.code,
        notes=[*_usage_notes(folder, tokenizer), *([family.remark] if family.remark else []), *notes],
        source_facts=_cells(source_facts or {}),
        runs=[
            {"facts": _cells(run.facts), "command": run.command, "results": run.results, "remarks": run.remarks}
            for run in runs
        ],
        license_text=_license_text(license, source_facts),
        citations="\n\n".join(family.citations(config)),
    )


def write_model_card(folder: StrPath, card: ModelCard, overwrite: bool = False) -> Path:
    """Writes a card to `README.md` in a folder, whole or not at all.

    Args:
        folder: The model's.
        card: From `create_model_card`.
        overwrite: Whether a card that is there may be replaced.

    Returns:
        The file.

    Raises:
        ValueError: If there is a card that may not be replaced.
    """
    path = Path(folder) / CARD_FILE
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists: give leave to replace it (--overwrite)")
    with atomic_file(path) as temporary:
        temporary.write_text(f"{str(card).rstrip()}\n", encoding="utf-8")
    return path


def _config(folder: Path) -> "PreTrainedConfig":
    if not (folder / "config.json").is_file():
        inner = " (a run keeps its model in model/)" if (folder / "model" / "config.json").is_file() else ""
        raise ValueError(f"no model in {folder}: there is no config.json{inner}")
    model_type = transformers.PreTrainedConfig.get_config_dict(folder)[0].get("model_type")
    family_card(model_type)  # refuses others before they are looked for
    return AutoConfig.from_pretrained(folder)


def _tokenizer(folder: Path) -> "PreTrainedTokenizerBase | None":
    if not any((folder / name).is_file() for name in ("tokenizer_config.json", "tokenizer.json")):
        return None
    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except ValueError as error:  # such as JSON's, which names no file
        raise ValueError(f"the tokenizer in {folder} cannot be read: {error}") from error


def _checked(run: TrainedBy, config: "PreTrainedConfig", file: StrPath) -> TrainedBy:
    if run.model_type != config.model_type:
        raise ValueError(
            f"{file} has the results of a model of the type {run.model_type!r}, not of this {config.model_type!r}"
        )
    return run


def _model_facts(
    config: "PreTrainedConfig", architecture: str, tokenizer: "PreTrainedTokenizerBase | None"
) -> dict[str, str]:
    facts = {"class": f"`{architecture}`", **family_card(config.model_type).facts(config, tokenizer)}
    if architecture.endswith(("ForSequenceClassification", "ForTokenClassification")):
        facts["labels"] = ", ".join(str(config.id2label[label]) for label in sorted(config.id2label))
    known = "none in the folder"
    if tokenizer is not None:
        known = f"`{type(tokenizer).__name__}`" + (f", {len(tokenizer):,} tokens" if _has_table(tokenizer) else "")
    return {**facts, "tokenizer": known, "dtype": str(config.dtype or "float32").removeprefix("torch.")}


def _has_table(tokenizer: "PreTrainedTokenizerBase") -> bool:
    """Whether tokens have rows in a table: characters of words have not."""
    return not hasattr(tokenizer, "max_characters_per_token")


def _usage_notes(folder: Path, tokenizer: "PreTrainedTokenizerBase | None") -> list[str]:
    notes = []
    if tokenizer is None:
        notes.append("The listing needs a tokenizer beside the model, where there is none yet.")
    if any(folder.glob("modeling_*.py")):
        notes.append(
            "The folder holds the code of the model, too: without the package, `trust_remote_code=True` loads it. "
            "Read it first, as it can do anything."
        )
    return notes


def _license_text(license: str | None, source_facts: Mapping[str, str] | None) -> str:
    code = "The code of hf-lineage is under Apache-2.0."
    if license is not None:
        return f"The weights: {license}. {code}"
    if source_facts:
        return f"The conversion knows nothing of a license of the weights; that of the source holds. {code}"
    return f"No license of the weights was named. {code}"


def _cells(facts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Facts as cells of a table: names of files may hold anything."""
    return [(_cell(fact), _cell(value)) for fact, value in facts.items()]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


__all__ = ["CARD_FILE", "create_model_card", "write_model_card"]
