"""The model card of a converted ELMo: facts of the conversion, as a README for a folder or the Hub."""

import json
from pathlib import Path

import torch
import transformers
from huggingface_hub import ModelCardData

from .. import __version__
from ..parameters import parameters_by_part
from .convert_elmo import MANYLANGS, ConvertedElmo

_ELMO = """@inproceedings{peters-etal-2018-deep,
    title = "Deep Contextualized Word Representations",
    author = "Peters, Matthew E. and Neumann, Mark and Iyyer, Mohit and Gardner, Matt and Clark, Christopher and
              Lee, Kenton and Zettlemoyer, Luke",
    booktitle = "Proceedings of NAACL-HLT 2018",
    year = "2018",
    url = "https://aclanthology.org/N18-1202",
}"""
_MANYLANGS = """@inproceedings{che-etal-2018-towards,
    title = "Towards Better {UD} Parsing: Deep Contextualized Word Embeddings, Ensemble, and Treebank Concatenation",
    author = "Che, Wanxiang and Liu, Yijia and Wang, Yuxuan and Zheng, Bo and Liu, Ting",
    booktitle = "Proceedings of the CoNLL 2018 Shared Task",
    year = "2018",
    url = "https://aclanthology.org/K18-2005",
}"""


def facts(converted: ConvertedElmo, language: str | None = None) -> dict[str, str]:
    """What a model was read from and what it consists of, each fact in words.

    Args:
        converted: The model.
        language: Its language, if the user names one; otherwise those that the source names.
    """
    config, tokenizer = converted.model.config, converted.tokenizer
    parts = parameters_by_part(converted.model)
    found = {
        "format": converted.format,
        "files": ", ".join(converted.files),
        "language": language or ", ".join(converted.languages) or "not named",
        "parameters": f"{sum(parts.values()):,} ({', '.join(f'{part} {n:,}' for part, n in parts.items())})",
        "LSTMs": f"{config.num_hidden_layers} LSTM layers of 2 x {config.lstm_hidden_size}",
        "output": f"vectors of {config.hidden_size}, {config.num_hidden_layers + 1} layers and their mix",
        "characters": _characters(converted),
        "words of the input": f"{len(tokenizer.input_words):,} in the dictionary" if tokenizer.input_words else "none",
        "words of the softmax": f"{config.vocab_size or 0:,} by the configuration, "
        f"{len(tokenizer.word_vocabulary) or 'no'} words in the vocabulary",
    }
    return found | ({"notes": "; ".join(converted.notes)} if converted.notes else {})


def _characters(converted: ConvertedElmo) -> str:
    config = converted.model.config
    if not config.char_embedding_size:
        return "not read"
    known = len(converted.tokenizer.input_characters) - 1  # one of them stands for all others
    kind = "UTF-8 bytes" if config.char_vocabulary == "bytes" else f"{known:,} Unicode characters of a dictionary"
    return (
        f"{kind}, {config.max_characters_per_token - 2} of a word at most; vectors of {config.char_embedding_size}, "
        f"{config.num_char_filters} filters, {config.num_highway_layers} highway layers"
    )


def write_model_card(folder: Path, converted: ConvertedElmo, name: str, language: str | None = None) -> None:
    """Writes README.md.

    It names no license: none is known of weights that a user brings.

    Args:
        folder: Where to write it.
        converted: The model.
        name: What the model's folder will be called.
        language: As in `facts`.
    """
    config = converted.model.config
    languages = [language] if language else converted.languages
    data = ModelCardData(
        language=languages or None, library_name="transformers", pipeline_tag="feature-extraction", tags=["elmo"]
    )
    rows = "\n".join(f"| {fact} | {_cell(value)} |" for fact, value in facts(converted, language).items())
    citations = "\n\n".join([_ELMO, *([_MANYLANGS] if converted.format == MANYLANGS else [])])
    text = f"""---
{data.to_yaml()}
---

# {name}

An ELMo (bidirectional LSTM language model), converted by hf-lineage {__version__} with transformers
{transformers.__version__} and torch {torch.__version__}.

| | |
| --- | --- |
{rows}

The weights are those of the source, nothing was trained. The mix of the layers is uniform: it is to be learned with a
task. The conversion knows nothing of a license; that of the source holds.

## Use

```python
import hf_lineage  # makes the model type known to transformers' Auto classes
import torch
from transformers import AutoModel, AutoTokenizer

path = {json.dumps(name, ensure_ascii=False)}
tokenizer = AutoTokenizer.from_pretrained(path)
model = AutoModel.from_pretrained(path)
sentences = [["A", "sentence", "."], ["Another", "one"]]
inputs = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs, output_hidden_states=True)
outputs.last_hidden_state  # (2, 3, {config.hidden_size}): the mix of the layers
outputs.hidden_states  # {config.num_hidden_layers + 1} layers of that shape, the context-free one first
```

A sentence has the same vectors in every batch. The original programs carry the LSTMs' states from one batch to the
next; `AutoModel.from_pretrained(path, stateful=True)` does so too.

## Citation

```bibtex
{citations}
```
"""
    (folder / "README.md").write_text(text, encoding="utf-8")


def _cell(value: str) -> str:
    """A text as a cell of a table: names of files may hold anything."""
    return " ".join(value.split()).replace("|", "\\|")


__all__ = ["facts", "write_model_card"]
