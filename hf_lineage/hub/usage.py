"""Python that uses a model, for its card: one listing for each kind of head."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..auto import FAMILIES
from .family_card import family_card

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


@dataclass(frozen=True)
class Usage:
    """How a model is used.

    Args:
        pipeline_tag: The Hub's name for its task, `None` if it has none.
        code: Python that runs where the model is in the folder, or the repository, of its name.
    """

    pipeline_tag: str | None
    code: str


_PIPELINE = """
import hf_lineage  # makes the model type known to transformers
from transformers import pipeline

{variable} = pipeline("{task}", model={{path}})
{call}
"""
_MODEL = """
import hf_lineage  # makes the model type known to transformers
import torch
from {module} import {model_class}{and_tokenizer}

path = {{path}}
tokenizer = AutoTokenizer.from_pretrained(path)
model = {model_class}.from_pretrained(path)
{body}
"""
_VECTORS = """inputs = tokenizer(["It was the film.", "One"], padding=True, return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs)
outputs.last_hidden_state  # (2, tokens, {hidden_size}), at padding without a meaning"""
_MASKED_PAIR = """inputs = tokenizer("It was the film.", f"One {tokenizer.mask_token} two.", return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs)
masked = inputs["input_ids"] == tokenizer.mask_token_id
tokenizer.decode(outputs.prediction_logits[masked].argmax(-1))  # the token that fits best
outputs.sentence_logits  # of the sentence objective, None without one"""
_ANSWER = """inputs = tokenizer("What was sweet?", "It was the jam.", return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs)
start, end = int(outputs.start_logits.argmax()), int(outputs.end_logits.argmax())
answer = tokenizer.decode(inputs["input_ids"][0, start : end + 1])"""
_BEAMS = """inputs = tokenizer("What was sweet?", "It was the jam.", return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs)
start, end = int(outputs.start_top_index[0, 0]), int(outputs.end_top_index[0, 0])
answer = tokenizer.decode(inputs["input_ids"][0, start : end + 1])"""
_CHOICE = """choices = ["It was one.", "It was two."]
inputs = tokenizer(["The film"] * 2, choices, padding=True, return_tensors="pt")
with torch.no_grad():
    outputs = model(**{name: value.unsqueeze(0) for name, value in inputs.items()})
choices[int(outputs.logits.argmax())]"""


def _of_pipeline(task: str, variable: str, call: str) -> Usage:
    return Usage(task, _PIPELINE.format(task=task, variable=variable, call=call))


def _of_model(pipeline_tag: str | None, body: str, model_class: str, module: str = "transformers") -> Usage:
    names = ", AutoTokenizer" if module == "transformers" else "\nfrom transformers import AutoTokenizer"
    kept = body.replace("{", "{{").replace("}", "}}").replace("{{hidden_size}}", "{hidden_size}")
    code = _MODEL.format(module=module, model_class=model_class, and_tokenizer=names, body=kept)
    return Usage(pipeline_tag, code)


_USAGE = {
    "AutoModel": _of_model("feature-extraction", _VECTORS, "AutoModel"),
    "AutoModelForPreTraining": _of_model("fill-mask", _MASKED_PAIR, "AutoModelForPreTraining"),
    "AutoModelForMaskedLM": _of_pipeline("fill-mask", "fill", 'fill(f"It was the {{fill.tokenizer.mask_token}}.")'),
    "AutoModelForCausalLM": _of_pipeline(
        "text-generation", "generate", 'generate("It was the", max_new_tokens=5, do_sample=False)'
    ),
    "AutoModelForSequenceClassification": _of_pipeline(
        "text-classification", "classify", 'classify(["It was the film.", "One"])'
    ),
    "AutoModelForTokenClassification": _of_pipeline("token-classification", "tag", 'tag("It was the film.")'),
    "AutoModelForQuestionAnswering": _of_model("question-answering", _ANSWER, "AutoModelForQuestionAnswering"),
    "AutoModelForMultipleChoice": _of_model("multiple-choice", _CHOICE, "AutoModelForMultipleChoice"),
}
# Classes that no Auto class knows
_OWN_USAGE = {
    "LineageXLNetForQuestionAnswering": _of_model(
        "question-answering", _BEAMS, "LineageXLNetForQuestionAnswering", "hf_lineage"
    )
}
_OWN_PIPELINE_TAGS = {("elmo", "AutoModelForPreTraining"): "feature-extraction"}
_OWN_PIPELINE_TAGS["lineage_xlnet", "AutoModelForPreTraining"] = "text-generation"


def usage_of(config: "PreTrainedConfig", architecture: str, name: str) -> Usage:
    """Returns how to use a model.

    Args:
        config: Its configuration.
        architecture: Its class.
        name: Its folder or repository.

    Raises:
        ValueError: If its family has no such class.
    """
    model_type = config.model_type
    auto_class = auto_class_of(model_type, architecture)
    usage = _OWN_USAGE[architecture] if auto_class is None else _USAGE[auto_class]
    code = family_card(model_type).usage.get(auto_class or "", usage.code)
    tag = _OWN_PIPELINE_TAGS.get((model_type, auto_class or ""), usage.pipeline_tag)
    sizes = {"hidden_size": config.hidden_size, "num_layers": config.num_hidden_layers + 1}
    return Usage(tag, code.format(path=json.dumps(name, ensure_ascii=False), **sizes).strip())


def auto_class_of(model_type: str, architecture: str) -> str | None:
    """Returns the Auto class of a model class, `None` for one that has none.

    Raises:
        ValueError: If the family has no such class.
    """
    models = FAMILIES[model_type].models
    found = next((auto_class for auto_class, name in models.items() if name == architecture), None)
    if found is None and architecture not in _OWN_USAGE:
        allowed = ", ".join([*models.values(), *_OWN_USAGE])
        raise ValueError(f"no class {architecture!r} of the model type {model_type!r} is known; known are {allowed}")
    return found


__all__ = ["Usage", "auto_class_of", "usage_of"]
