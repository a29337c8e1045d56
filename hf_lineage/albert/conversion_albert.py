"""transformers' ALBERT and BERT, to and from this family: configurations and weights.

One model holds both: they are post-LN encoders that differ in what is shared, in the projection of the embeddings, in
the activation and in the names of their weights.
"""

import re
from typing import TYPE_CHECKING, Any

import transformers
from transformers import PreTrainedConfig

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from .configuration_albert import LineageAlbertConfig
    from .modeling_albert import LineageAlbertPreTrainedModel

# What the two configurations call the same
_COMMON_FIELDS = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act hidden_dropout_prob "
    "attention_probs_dropout_prob max_position_embeddings type_vocab_size initializer_range layer_norm_eps "
    "pad_token_id bos_token_id eos_token_id tie_word_embeddings"
).split()
_ALBERT_FIELDS = ["embedding_size", "num_hidden_groups", "inner_group_num", "classifier_dropout_prob"]
_HEADS = "ForPreTraining ForMaskedLM ForSequenceClassification ForTokenClassification ForQuestionAnswering".split()
_HEADS += ["ForMultipleChoice", "Model"]

# The modules of heads, ours and theirs
_HEAD_NAMES = {
    "albert": [
        ("predictions.layer_norm", "predictions.LayerNorm"),
        ("predictions.dense", "predictions.dense"),
        ("predictions.decoder", "predictions.decoder"),
        ("predictions", "predictions"),
        ("sentence_classifier", "sop_classifier.classifier"),
    ],
    "bert": [
        ("predictions.dense", "cls.predictions.transform.dense"),
        ("predictions.layer_norm", "cls.predictions.transform.LayerNorm"),
        ("predictions.decoder", "cls.predictions.decoder"),
        ("predictions", "cls.predictions"),
        ("sentence_classifier", "cls.seq_relationship"),
    ],
}
_ATTENTION = {"query": "query", "key": "key", "value": "value", "dense": "dense", "layer_norm": "LayerNorm"}
_BERT_ATTENTION = {
    **{name: f"self.{name}" for name in ("query", "key", "value")},
    "dense": "output.dense",
    "layer_norm": "output.LayerNorm",
}
_FFN = {"up_proj": "ffn", "down_proj": "ffn_output", "layer_norm": "full_layer_layer_norm"}
_BERT_FFN = {"up_proj": "intermediate.dense", "down_proj": "output.dense", "layer_norm": "output.LayerNorm"}


def translated_config_dict(config_dict: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `LineageAlbertConfig` that compute what a configuration of ALBERT or BERT does.

    Any other dictionary is returned as it is.

    Raises:
        ValueError: If it is a BERT that this family cannot be (a decoder, relative positions).
    """
    model_type = config_dict.get("model_type")
    if model_type not in ("albert", "bert"):
        return config_dict
    peer = transformers.CONFIG_MAPPING[model_type].from_dict(config_dict)
    # A saved configuration leaves defaults out, so that the fields are taken from the object
    own = set(peer.to_dict()) - set(PreTrainedConfig().to_dict())
    kept = {name: value for name, value in config_dict.items() if name not in own and name != "model_type"}
    fields = {name: getattr(peer, name) for name in _COMMON_FIELDS}
    fields.update(_albert_fields(peer) if model_type == "albert" else _bert_fields(peer, config_dict))
    names = config_dict.get("architectures") or []
    kept["architectures"] = [f"LineageAlbert{head}" for name in names for head in _HEADS if name.endswith(head)]
    return {**kept, **fields, "model_type": "lineage_albert"}


def _albert_fields(peer: PreTrainedConfig) -> dict[str, Any]:
    fields = {name: getattr(peer, name) for name in _ALBERT_FIELDS}
    fields.update(share_parameters="all", project_embeddings=True, sentence_objective="sop")
    number, layers = peer.num_hidden_groups, peer.num_hidden_layers
    groups = _albert_groups(peer)
    if len(set(groups)) < number or groups != [layer * number // layers for layer in range(layers)]:
        blocks = _albert_blocks(peer)
        # transformers' rule can leave groups unused, and differs from ours at a few sizes
        fields.update(num_hidden_groups=1, attention_layer_blocks=blocks, ffn_layer_blocks=blocks)
    return fields


def _albert_groups(peer: PreTrainedConfig) -> list[int]:
    """The group of each layer, as transformers' ALBERT computes it."""
    layers_a_group = peer.num_hidden_layers / peer.num_hidden_groups
    return [int(layer / layers_a_group) for layer in range(peer.num_hidden_layers)]


def _albert_blocks(peer: PreTrainedConfig) -> list[int]:
    """The block of each layer of the network; groups are numbered anew, without those that no layer uses."""
    groups = _albert_groups(peer)
    number = {group: index for index, group in enumerate(sorted(set(groups)))}
    inner = peer.inner_group_num
    return [number[group] * inner + index for group in groups for index in range(inner)]


def _bert_fields(peer: PreTrainedConfig, config_dict: dict[str, Any]) -> dict[str, Any]:
    positions = config_dict.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise ValueError(f"only BERTs with position_embedding_type='absolute' can be read, got {positions!r}")
    if getattr(peer, "is_decoder", False) or getattr(peer, "add_cross_attention", False):
        raise ValueError("a BERT that is a decoder (is_decoder, add_cross_attention) cannot be read")
    return {
        "embedding_size": peer.hidden_size,
        "classifier_dropout_prob": peer.classifier_dropout,
        "share_parameters": "none",
        "project_embeddings": False,
        "sentence_objective": "nsp",
    }


def foreign_key_mapping(source: Any, kwargs: dict[str, Any]) -> dict[str, str]:
    """Patterns that turn the names of weights in a checkpoint of ALBERT or BERT into ours; none for our own.

    Args:
        source: What `from_pretrained` was given.
        kwargs: Its keyword arguments, of which those that say where on the Hub to look are used.
    """
    if source is None:
        return {}
    names = "cache_dir force_download local_files_only token revision subfolder".split()
    where = {name: kwargs[name] for name in names if name in kwargs}
    config_dict, _ = PreTrainedConfig.get_config_dict(source, **where)
    model_type = config_dict.get("model_type")
    if model_type not in ("albert", "bert"):
        return {}
    peer = transformers.CONFIG_MAPPING[model_type].from_dict(config_dict)
    if model_type == "albert":
        layers = dict(zip(_albert_layers(peer), ((block, block) for block in _albert_blocks(peer)), strict=True))
    else:
        layers = {f"encoder.layer.{layer}": (layer, layer) for layer in range(peer.num_hidden_layers)}
    patterns = {}
    for ours, theirs in _base_names(model_type, layers):
        # the base model alone has no prefix; transformers adds or takes away ours
        for prefix, our_prefix in ((f"{model_type}.", "albert."), ("", "")):
            patterns[f"^{re.escape(prefix + theirs)}\\."] = f"{our_prefix}{ours}."
    for ours, theirs in _HEAD_NAMES[model_type]:
        patterns[f"^{re.escape(theirs)}\\."] = f"{ours}."
    # BERT's published files still have TensorFlow's names
    patterns.update({r"\.gamma$": ".weight", r"\.beta$": ".bias"})
    return patterns


def to_transformers(model: "LineageAlbertPreTrainedModel", model_type: str | None = None) -> "PreTrainedModel":
    """`LineageAlbertPreTrainedModel.to_transformers`."""
    config = model.config
    is_bert = config.share_parameters == "none" and not config.has_projection
    model_type = model_type or ("bert" if is_bert and not _explicit_blocks(config) else "albert")
    if model_type not in ("albert", "bert"):
        raise ValueError(f"model_type must be 'albert', 'bert' or None, got {model_type!r}")
    if config.layer_norm_position != "post":
        raise ValueError("transformers' ALBERT and BERT are post-LN, this model has layer_norm_position='pre'")
    if model_type == "bert" and config.has_projection:
        raise ValueError("BERT has no projection of the embeddings, this model has one; model_type='albert' has")
    peer_config = _peer_config(config, model_type)
    peer_class = _peer_class(model, model_type)
    if peer_class.__name__.endswith("ForPreTraining"):
        peer_config.num_labels = 2  # transformers' ALBERT sizes the sentence head by it
    without_pooler = model.base_model is model and model.pooler is None
    peer = peer_class(peer_config, add_pooling_layer=False) if without_pooler else peer_class(peer_config)
    peer.load_state_dict(_peer_weights(model, peer_config, model_type))
    peer.to(device=model.device, dtype=model.dtype)
    return peer.train(model.training)


def _explicit_blocks(config: "LineageAlbertConfig") -> bool:
    return config.num_attention_blocks < config.depth or config.num_ffn_blocks < config.depth


def _peer_class(model: "LineageAlbertPreTrainedModel", model_type: str) -> "type[PreTrainedModel]":
    name = next(head for head in _HEADS if type(model).__name__.endswith(head))
    if name == "ForPreTraining" and model.config.sentence_objective == "none":
        name = "ForMaskedLM"
    return getattr(transformers, {"albert": "Albert", "bert": "Bert"}[model_type] + name)


def _peer_config(config: "LineageAlbertConfig", model_type: str) -> PreTrainedConfig:
    fields = {name: value for name, value in config.to_dict().items() if name in PreTrainedConfig().to_dict()}
    for name in ("architectures", "model_type", "transformers_version", "dtype"):
        fields.pop(name, None)
    fields.update({name: getattr(config, name) for name in _COMMON_FIELDS})
    if model_type == "bert":
        fields["num_hidden_layers"] = config.depth
        return transformers.BertConfig(**fields, classifier_dropout=config.classifier_dropout_prob)
    dropout = config.classifier_dropout_prob
    fields["classifier_dropout_prob"] = config.hidden_dropout_prob if dropout is None else dropout
    fields["embedding_size"] = config.embedding_size
    inner = config.inner_group_num
    for groups in (config.num_hidden_groups, max(1, config.num_attention_blocks // inner)):
        shared = transformers.AlbertConfig(**fields, num_hidden_groups=groups, inner_group_num=inner)
        if [(block, block) for block in _albert_blocks(shared)] == list(config.layer_blocks):
            return shared
    fields["num_hidden_layers"] = config.depth
    return transformers.AlbertConfig(**fields, num_hidden_groups=config.depth, inner_group_num=1)


def _peer_weights(
    model: "LineageAlbertPreTrainedModel", peer_config: PreTrainedConfig, model_type: str
) -> dict[str, "Tensor"]:
    config = model.config
    if model_type == "albert":
        names = _albert_layers(peer_config)
    else:
        names = [f"encoder.layer.{layer}" for layer in range(config.depth)]
    base = _base_names(model_type, dict(zip(names, config.layer_blocks, strict=True)))
    base_prefix = "" if model.base_model is model else "albert."
    peer_prefix = "" if model.base_model is model else f"{model_type}."
    pairs = [(base_prefix + ours, peer_prefix + theirs) for ours, theirs in base]
    pairs += _HEAD_NAMES[model_type]
    pairs += [(name, name) for name in ("classifier", "qa_outputs")]
    weights = model.state_dict()
    found = {
        f"{theirs}.{kind}": weights[f"{ours}.{kind}"]
        for ours, theirs in pairs
        for kind in ("weight", "bias")
        if f"{ours}.{kind}" in weights
    }
    if model_type == "albert" and not config.has_projection:
        # transformers' ALBERT always has one
        import torch

        mapping = f"{peer_prefix}encoder.embedding_hidden_mapping_in"
        found[f"{mapping}.weight"] = torch.eye(config.hidden_size, dtype=model.dtype, device=model.device)
        found[f"{mapping}.bias"] = torch.zeros(config.hidden_size, dtype=model.dtype, device=model.device)
    return found


def _albert_layers(peer: PreTrainedConfig) -> list[str]:
    """The name of the block that each layer of the network uses in transformers' ALBERT."""
    return [
        f"encoder.albert_layer_groups.{group}.albert_layers.{inner}"
        for group in _albert_groups(peer)
        for inner in range(peer.inner_group_num)
    ]


def _base_names(model_type: str, layers: dict[str, tuple[int, int]]) -> list[tuple[str, str]]:
    """Our and their name of each module of the base model that has weights.

    Args:
        model_type: `"albert"` or `"bert"`.
        layers: Their name of a layer -> our attention and feed-forward block.
    """
    tables = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    pairs = [(f"embeddings.{table}", f"embeddings.{table}") for table in tables]
    pairs.append(("embeddings.layer_norm", "embeddings.LayerNorm"))
    if model_type == "albert":
        pairs += [("embedding_projection", "encoder.embedding_hidden_mapping_in"), ("pooler", "pooler")]
        in_attention = {ours: f"attention.{theirs}" for ours, theirs in _ATTENTION.items()}
        in_ffn = _FFN
    else:
        pairs.append(("pooler", "pooler.dense"))
        in_attention = {ours: f"attention.{theirs}" for ours, theirs in _BERT_ATTENTION.items()}
        in_ffn = _BERT_FFN
    for layer, (attention, ffn) in layers.items():
        pairs += [
            (f"attention_blocks.{attention}.{ours}", f"{layer}.{theirs}") for ours, theirs in in_attention.items()
        ]
        pairs += [(f"ffn_blocks.{ffn}.{ours}", f"{layer}.{theirs}") for ours, theirs in in_ffn.items()]
    return pairs


__all__ = ["foreign_key_mapping", "to_transformers", "translated_config_dict"]
