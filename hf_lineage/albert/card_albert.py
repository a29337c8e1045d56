"""What model cards say of the ALBERT-style family."""

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from ..hub.family_card import FamilyCard

_ALBERT = """@inproceedings{lan-etal-2020-albert,
    title = "{ALBERT}: A Lite {BERT} for Self-supervised Learning of Language Representations",
    author = "Lan, Zhenzhong and Chen, Mingda and Goodman, Sebastian and Gimpel, Kevin and Sharma, Piyush and
              Soricut, Radu",
    booktitle = "International Conference on Learning Representations",
    year = "2020",
    url = "https://arxiv.org/abs/1909.11942",
}"""
_BERT = """@inproceedings{devlin-etal-2019-bert,
    title = "{BERT}: Pre-training of Deep Bidirectional Transformers for Language Understanding",
    author = "Devlin, Jacob and Chang, Ming-Wei and Lee, Kenton and Toutanova, Kristina",
    booktitle = "Proceedings of NAACL-HLT 2019",
    year = "2019",
    url = "https://aclanthology.org/N19-1423",
}"""
_OBJECTIVES = {"sop": "sentence order (SOP)", "nsp": "next sentence (NSP)", "none": "none"}


def _facts(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase | None) -> dict[str, str]:
    attention, ffn = (len(set(blocks)) for blocks in zip(*config.layer_blocks, strict=True))
    return {
        "layers": f"{config.depth} of width {config.hidden_size}, {config.num_attention_heads} heads, "
        f"{config.intermediate_size} between the linear layers, {config.layer_norm_position}-LN",
        "shared": f"{config.depth} layers on {attention} attention and {ffn} feed-forward blocks",
        "embeddings": f"{config.vocab_size:,} x {config.embedding_size}, "
        + (f"projected to {config.hidden_size}" if config.has_projection else "not projected"),
        "longest input": f"{config.max_position_embeddings} tokens",
        "sentence objective": _OBJECTIVES[config.sentence_objective],
    }


def _citations(config: PreTrainedConfig) -> list[str]:
    return [_ALBERT, *([_BERT] if config.share_parameters == "none" else [])]


CARD = FamilyCard(
    title="ALBERT-style",
    description="an encoder whose layers may share their attention and feed-forward blocks",
    tag="albert",
    pretraining_task="fill-mask",
    facts=_facts,
    citations=_citations,
)

__all__ = ["CARD"]
