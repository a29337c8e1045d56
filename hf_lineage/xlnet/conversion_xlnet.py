"""transformers' XLNet, to and from this family: configurations and weights.

The weights are the same but for the projections of attention, which are linear layers here and three-dimensional
parameters there, and two names.
"""

import re
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import PreTrainedConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from .modeling_xlnet import LineageXLNetPreTrainedModel

# Ours -> theirs
_CLASSES = {
    "LineageXLNetModel": "XLNetModel",
    "LineageXLNetForPreTraining": "XLNetLMHeadModel",
    "LineageXLNetLMHeadModel": "XLNetLMHeadModel",
    "LineageXLNetForSequenceClassification": "XLNetForSequenceClassification",
    "LineageXLNetForTokenClassification": "XLNetForTokenClassification",
    "LineageXLNetForQuestionAnswering": "XLNetForQuestionAnswering",
    "LineageXLNetForQuestionAnsweringSimple": "XLNetForQuestionAnsweringSimple",
    "LineageXLNetForMultipleChoice": "XLNetForMultipleChoice",
}
_PROJECTION = re.compile(r"\.rel_attn\.([qkvor])$")
_OUR_PROJECTION = re.compile(r"\.rel_attn\.([qkvor])\.weight$")
_PEER_FIELDS = (
    "vocab_size d_model n_layer n_head d_inner ff_activation attn_type initializer_range layer_norm_eps dropout "
    "mem_len reuse_len use_mems_eval use_mems_train bi_data clamp_len same_length summary_type summary_use_proj "
    "summary_activation summary_last_dropout start_n_top end_n_top pad_token_id bos_token_id eos_token_id "
    "tie_word_embeddings"
).split()


def translated_config_dict(config_dict: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `LineageXLNetConfig` that compute what an XLNet of transformers does; others as they are."""
    if config_dict.get("model_type") != "xlnet":
        return config_dict
    peer = transformers.XLNetConfig.from_dict(config_dict)
    own = set(peer.to_dict()) - set(PreTrainedConfig().to_dict())
    kept = {name: value for name, value in config_dict.items() if name not in own and name != "model_type"}
    names = config_dict.get("architectures") or []
    theirs = {peer_class: ours for ours, peer_class in _CLASSES.items()}
    kept["architectures"] = [theirs[name] for name in names if name in theirs]
    fields = {name: getattr(peer, name) for name in _PEER_FIELDS}
    return {**kept, **fields, "model_type": "lineage_xlnet"}


def loaded_from_transformers(
    cls: "type[LineageXLNetPreTrainedModel]", source: Any, kwargs: dict[str, Any]
) -> "LineageXLNetPreTrainedModel | tuple[Any, dict] | None":
    """The model in a folder or repository of transformers' XLNet; `None` if it is not one.

    Args:
        cls: Class of the model.
        source: What `from_pretrained` was given.
        kwargs: Its keyword arguments, which transformers' own class is given.
    """
    if source is None:
        return None
    names = "cache_dir force_download local_files_only token revision subfolder".split()
    where = {name: kwargs[name] for name in names if name in kwargs}
    if PreTrainedConfig.get_config_dict(source, **where)[0].get("model_type") != "xlnet":
        return None
    config = kwargs.pop("config", None)
    own = {name: kwargs.pop(name) for name in list(kwargs) if name in cls.config_class.__annotations__}
    config = config or cls.config_class.from_pretrained(source, **where, **own)
    peer_class = getattr(transformers, _CLASSES[cls.__name__])
    peer_config = _peer_config(config)
    loaded = peer_class.from_pretrained(source, config=peer_config, **kwargs)
    peer, info = loaded if isinstance(loaded, tuple) else (loaded, None)
    model = cls(config).to(dtype=peer.dtype, device=peer.device)
    loaded_weights = {_our_name(name): _ours(name, value) for name, value in peer.state_dict().items()}
    model.load_state_dict({**_next_sentence_weights(model, True), **loaded_weights})
    model.eval()
    if info is None:
        return model
    return model, {**info, "missing_keys": {_our_name(name) for name in info["missing_keys"]}}


def to_transformers(model: "LineageXLNetPreTrainedModel") -> "PreTrainedModel":
    """`LineageXLNetPreTrainedModel.to_transformers`."""
    peer = getattr(transformers, _CLASSES[type(model).__name__])(_peer_config(model.config))
    heads = (model.config.n_head, model.config.d_model // model.config.n_head)
    weights = _next_sentence_weights(model, False)
    peer.load_state_dict({_peer_name(name): _peer(name, value, heads) for name, value in weights.items()})
    return peer.to(device=model.device, dtype=model.dtype).train(model.training)


def _peer_config(config: PreTrainedConfig) -> "transformers.XLNetConfig":
    common = PreTrainedConfig().to_dict()
    dropped = ("architectures", "model_type", "transformers_version", "dtype")
    fields = {name: value for name, value in config.to_dict().items() if name in common and name not in dropped}
    fields.update({name: getattr(config, name) for name in _PEER_FIELDS})
    fields["summary_activation"] = config.summary_activation or ""
    return transformers.XLNetConfig(**fields)


def _next_sentence_weights(model: "LineageXLNetPreTrainedModel", wanted: bool) -> dict[str, torch.Tensor]:
    """The weights of the head for the next sentence, which theirs does not have, or all others."""
    weights = model.state_dict()
    return {name: value for name, value in weights.items() if name.startswith("next_sentence.") == wanted}


def _our_name(name: str) -> str:
    if _PROJECTION.search(name):
        return f"{name}.weight"
    return name.replace("end_logits.LayerNorm.", "end_logits.layer_norm.")


def _peer_name(name: str) -> str:
    if _OUR_PROJECTION.search(name):
        return name.removesuffix(".weight")
    return name.replace("end_logits.layer_norm.", "end_logits.LayerNorm.")


def _ours(name: str, value: torch.Tensor) -> torch.Tensor:
    """Their `(d_model, heads, head size)` as the weight of a linear layer; only `o` leads back to `d_model`."""
    found = _PROJECTION.search(name)
    if not found:
        return value
    flat = value.flatten(1)
    return flat if found[1] == "o" else flat.T


def _peer(name: str, value: torch.Tensor, heads: tuple[int, int]) -> torch.Tensor:
    found = _OUR_PROJECTION.search(name)
    if not found:
        return value
    return (value if found[1] == "o" else value.T).unflatten(1, heads)


__all__ = ["loaded_from_transformers", "to_transformers", "translated_config_dict"]
