"""`hf-lineage convert`: checkpoints in the formats of the original implementations and of transformers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import checked_source, quiet_progress

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

app = typer.Typer(help="Convert checkpoints from and to other formats.", no_args_is_help=True)


@app.callback()
def _convert() -> None:
    pass


@app.command()
def elmo(
    output: Annotated[Path, typer.Option(help="Folder to write the model, its tokenizer and a model card to.")],
    source: Annotated[
        Path | None, typer.Argument(help="Folder or zip of bilm-tf, AllenNLP, NLPL or ELMoForManyLangs.")
    ] = None,
    options: Annotated[Path | None, typer.Option(help="options.json, instead of SOURCE.")] = None,
    weights: Annotated[Path | None, typer.Option(help="HDF5 file with the weights, instead of SOURCE.")] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Word vocabulary of the softmax or the token embeddings, plain or .gz.")
    ] = None,
    token_embeddings: Annotated[
        Path | None, typer.Option(help="HDF5 file with a vector of each word, to read in place of characters.")
    ] = None,
    softmax: Annotated[bool, typer.Option(help="Read the softmax too, where the HDF5 file has it.")] = False,
    language: Annotated[str | None, typer.Option(help="Language for the model card, such as 'en'.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the output folder if it exists.")] = False,
) -> None:
    """Convert an ELMo model; which of the known formats it has is found out."""
    from ..elmo.card_elmo import CARD
    from ..elmo.convert_elmo import convert_elmo_files, convert_elmo_source
    from ..files import atomic_folder
    from ..hub.model_card import create_model_card, write_model_card
    from ..parameters import parameters_by_part

    quiet_progress()
    if source is not None and options is None and weights is None:
        converted = convert_elmo_source(source, vocabulary, token_embeddings, softmax)
    elif source is None and options is not None and weights is not None:
        converted = convert_elmo_files(options, weights, vocabulary, token_embeddings, softmax)
    else:
        raise ValueError("give SOURCE alone, or both --options and --weights")
    with atomic_folder(output, overwrite) as folder:
        converted.model.save_pretrained(folder)
        converted.tokenizer.save_pretrained(folder)
        card = create_model_card(
            folder,
            output.resolve().name,
            language=language or converted.languages,
            source_facts=converted.facts(language),
            notes=["The mix of the layers is uniform: it is to be learned with a task."],
        )
        write_model_card(folder, card)
    typer.echo(f"{output}:")
    parts = parameters_by_part(converted.model)
    sizes = ", ".join(f"{part} {size:,}" for part, size in parts.items())
    found = converted.facts(language) | {"parameters": f"{sum(parts.values()):,} ({sizes})"}
    for fact, value in (found | CARD.facts(converted.model.config, converted.tokenizer)).items():
        typer.echo(f"  {fact}: {value}")


@app.command("elmo-export")
def elmo_export(
    model: Annotated[str, typer.Argument(help="Folder or Hub name of an ELMo model.")],
    options: Annotated[Path, typer.Option(help="Where to write options.json.")],
    weights: Annotated[Path, typer.Option(help="Where to write the HDF5 file.")],
    softmax: Annotated[bool, typer.Option(help="Add the softmax over words, of a model that was pretrained.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace files that exist.")] = False,
) -> None:
    """Write an ELMo model in the original format, for bilm-tf and AllenNLP."""
    from ..elmo.conversion_elmo import export_elmo_checkpoint
    from ..elmo.modeling_elmo import ElmoModel

    present = [str(file) for file in (options, weights) if file.exists()]
    if present and not overwrite:
        raise ValueError(f"{', '.join(present)} exists: choose another name, or overwrite it (--overwrite)")
    quiet_progress()
    model_type = _model_type(checked_source(model))
    if model_type != "elmo":
        raise ValueError(f"{model} is a model of the type {model_type!r}, not 'elmo'")
    # any class with a base model will do, but only the one that was saved has its own softmax and not a new one
    model_class = _saved_class(ElmoModel, model) if softmax else ElmoModel
    export_elmo_checkpoint(model_class.from_pretrained(model), options, weights, with_softmax=softmax)
    typer.echo(f"{options} and {weights} written")


@app.command()
def albert(
    source: Annotated[str, typer.Argument(help="Folder or Hub name of an ALBERT or BERT of transformers.")],
    output: Annotated[Path, typer.Option(help="Folder to write the model and its tokenizer to.")],
    overwrite: Annotated[bool, typer.Option(help="Replace the output folder if it exists.")] = False,
) -> None:
    """Convert an ALBERT or a BERT of transformers to an ALBERT-style model."""
    from ..albert.modeling_albert import LineageAlbertModel
    from ..albert.tokenization_albert import LineageAlbertTokenizer

    model_type = _checked_type(source, "albert", "bert")
    model = _saved_class(LineageAlbertModel, source).from_pretrained(source)
    tokenizer = _tokenizer(source, LineageAlbertTokenizer if model_type == "albert" else None)
    _save_with_tokenizer(model, tokenizer, output, overwrite, _source_facts(source, model_type))


@app.command("albert-export")
def albert_export(
    source: Annotated[str, typer.Argument(help="Folder or Hub name of an ALBERT-style model.")],
    output: Annotated[Path, typer.Option(help="Folder to write the model and its tokenizer to.")],
    model_type: Annotated[str | None, typer.Option(help="'albert' or 'bert'; by default what fits best.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the output folder if it exists.")] = False,
) -> None:
    """Convert an ALBERT-style model to an ALBERT or a BERT of transformers."""
    from ..albert.modeling_albert import LineageAlbertModel

    _checked_type(source, "lineage_albert")
    model = _saved_class(LineageAlbertModel, source).from_pretrained(source)
    _save_with_tokenizer(model.to_transformers(model_type), _exported_tokenizer(source), output, overwrite)


@app.command()
def xlnet(
    source: Annotated[str, typer.Argument(help="Folder or Hub name of an XLNet of transformers.")],
    output: Annotated[Path, typer.Option(help="Folder to write the model and its tokenizer to.")],
    overwrite: Annotated[bool, typer.Option(help="Replace the output folder if it exists.")] = False,
) -> None:
    """Convert an XLNet of transformers to an XLNet-style model."""
    from ..xlnet.modeling_xlnet import LineageXLNetModel
    from ..xlnet.tokenization_xlnet import LineageXLNetTokenizer

    _checked_type(source, "xlnet")
    model = _saved_class(LineageXLNetModel, source).from_pretrained(source)
    tokenizer = _tokenizer(source, LineageXLNetTokenizer)
    _save_with_tokenizer(model, tokenizer, output, overwrite, _source_facts(source, "xlnet"))


@app.command("xlnet-export")
def xlnet_export(
    source: Annotated[str, typer.Argument(help="Folder or Hub name of an XLNet-style model.")],
    output: Annotated[Path, typer.Option(help="Folder to write the model and its tokenizer to.")],
    overwrite: Annotated[bool, typer.Option(help="Replace the output folder if it exists.")] = False,
) -> None:
    """Convert an XLNet-style model to an XLNet of transformers."""
    from ..xlnet.modeling_xlnet import LineageXLNetModel

    _checked_type(source, "lineage_xlnet")
    model = _saved_class(LineageXLNetModel, source).from_pretrained(source)
    _save_with_tokenizer(model.to_transformers(), _exported_tokenizer(source), output, overwrite)


def _checked_type(source: str, *allowed: str) -> str:
    """The model type of a source.

    Raises:
        ValueError: If it is none of those allowed.
    """
    quiet_progress()
    model_type = _model_type(checked_source(source))
    if model_type not in allowed:
        raise ValueError(f"{source} is a model of the type {model_type!r}, not {' or '.join(map(repr, allowed))}")
    return model_type


def _saved_class(base: "type[PreTrainedModel]", source: str) -> "type[PreTrainedModel]":
    """The class that a source was saved from, or the family's base model."""
    import hf_lineage

    config = base.config_class.from_pretrained(source)
    (name,) = (config.architectures or [])[:1] or [base.__name__]
    saved = getattr(hf_lineage, name) if name in hf_lineage.__all__ else base
    return saved if isinstance(saved, type) and issubclass(saved, base.__bases__[0]) else base


def _model_type(source: str) -> str | None:
    from transformers import PreTrainedConfig

    return PreTrainedConfig.get_config_dict(source)[0].get("model_type")


def _source_facts(source: str, model_type: str) -> dict[str, str]:
    from ..commands import without_folders

    return {"format": f"transformers, of the type {model_type}", "read from": without_folders(source)}


def _save_with_tokenizer(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase | None",
    output: Path,
    overwrite: bool,
    source_facts: dict[str, str] | None = None,
) -> None:
    """Saves a converted model; one of this package, whose source facts are told, with a model card."""
    from ..files import atomic_folder
    from ..hub.model_card import create_model_card, write_model_card

    with atomic_folder(output, overwrite) as folder:
        model.save_pretrained(folder)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
        if source_facts:
            card = create_model_card(folder, output.resolve().name, source_facts=source_facts)
            write_model_card(folder, card)
    size = sum(parameter.numel() for parameter in model.parameters())
    tokens = "no tokenizer" if tokenizer is None else f"{type(tokenizer).__name__} of {len(tokenizer):,} tokens"
    typer.echo(f"{output}: {type(model).__name__}, {size:,} parameters, {tokens}")


def _tokenizer(
    source: str, tokenizer_class: "type[PreTrainedTokenizerBase] | None" = None
) -> "PreTrainedTokenizerBase | None":
    """The tokenizer beside a model, if there is one.

    Args:
        source: Where it is.
        tokenizer_class: Reads it, if it can: ours has the published ids where that of transformers has not.
    """
    from transformers import AutoTokenizer

    tokenizer: PreTrainedTokenizerBase | None = None
    for each in (AutoTokenizer,) if tokenizer_class is None else (tokenizer_class, AutoTokenizer):
        try:
            tokenizer = each.from_pretrained(source)
            break
        except (OSError, ValueError):
            continue  # not the kind that this class reads, such as the WordPiece of a Chinese ALBERT
    # for a folder without a vocabulary transformers makes up a tokenizer of the special tokens alone
    if tokenizer is None or len(tokenizer) <= len(tokenizer.all_special_ids):
        return None
    return tokenizer


def _exported_tokenizer(source: str) -> "PreTrainedTokenizerBase | None":
    """The tokenizer beside a model of ours, as one of transformers."""
    tokenizer = _tokenizer(source)
    if tokenizer is None or not hasattr(tokenizer, "to_transformers"):
        return tokenizer
    return tokenizer.to_transformers()


__all__ = ["app"]
