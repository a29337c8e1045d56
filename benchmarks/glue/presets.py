"""Models that are built from scratch: each family in a small size and a tiny one, and two peers of transformers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

VocabularyKind = Literal["albert", "xlnet", "bert", "gpt2"]


@dataclass(frozen=True)
class Preset:
    """A model that is built from scratch.

    Args:
        config: Name of a configuration class of `hf_lineage`, or of transformers if it has none of that name.
        config_kwargs: What the configuration sets.
        pair_config_kwargs: What it sets besides for tasks of sentence pairs.
        vocabulary: How the tokenizer of the task's training text is trained; `None` for a model that reads characters.
        vocab_size: Entries of that tokenizer, special ones included, where the text is enough for so many.
    """

    config: str
    config_kwargs: Mapping[str, Any] = field(default_factory=dict)
    pair_config_kwargs: Mapping[str, Any] = field(default_factory=dict)
    vocabulary: VocabularyKind | None = None
    vocab_size: int = 0


# Published models draw weights with a deviation of 0.02, for widths of 768 and more; with narrow layers, little of the
# input would come through.
_TINY_RANGE = 0.1


def _elmo(filters: list[list[int]], hidden_size: int, lstm_hidden_size: int, dropout: float, head: int) -> Preset:
    return Preset(
        config="ElmoConfig",
        config_kwargs={
            "char_cnn_filters": filters,
            "num_highway_layers": 1,
            "hidden_size": hidden_size,
            "lstm_hidden_size": lstm_hidden_size,
            # The default is meant for pretrained layers, whose vectors it is to keep from overfitting.
            "dropout": dropout,
            "classifier_hidden_size": head,
        },
        pair_config_kwargs={"pair_encoding": "separate"},
    )


def _albert(
    vocab_size: int,
    embedding_size: int,
    hidden_size: int,
    layers: int,
    heads: int,
    positions: int,
    classifier_dropout: float = 0.1,
    initializer_range: float = 0.02,
) -> Preset:
    return Preset(
        config="LineageAlbertConfig",
        config_kwargs={
            "embedding_size": embedding_size,
            "hidden_size": hidden_size,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": 4 * hidden_size,
            "max_position_embeddings": positions,
            "classifier_dropout_prob": classifier_dropout,
            "initializer_range": initializer_range,
        },
        vocabulary="albert",
        vocab_size=vocab_size,
    )


def _xlnet(
    vocab_size: int, hidden_size: int, layers: int, heads: int, dropout: float, initializer_range: float = 0.02
) -> Preset:
    return Preset(
        config="LineageXLNetConfig",
        config_kwargs={
            "d_model": hidden_size,
            "n_layer": layers,
            "n_head": heads,
            "d_inner": 4 * hidden_size,
            "dropout": dropout,
            "summary_last_dropout": dropout,
            "initializer_range": initializer_range,
        },
        vocabulary="xlnet",
        vocab_size=vocab_size,
    )


PRESETS: dict[str, Preset] = {
    # For the embedded tasks: 0.1 to 0.3 million parameters
    "elmo-tiny": _elmo([[1, 16], [2, 16], [3, 32], [4, 64]], 128, 64, dropout=0.1, head=64),
    "albert-tiny": _albert(
        600,
        64,
        hidden_size=96,
        layers=2,
        heads=4,
        positions=64,
        classifier_dropout=0.0,
        initializer_range=_TINY_RANGE,
    ),
    "xlnet-tiny": _xlnet(600, hidden_size=96, layers=2, heads=4, dropout=0.0, initializer_range=_TINY_RANGE / 2),
    "bert-tiny": Preset(
        config="BertConfig",
        config_kwargs={
            "hidden_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 384,
            "max_position_embeddings": 64,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "initializer_range": _TINY_RANGE,
        },
        vocabulary="bert",
        vocab_size=600,
    ),
    "gpt2-tiny": Preset(
        config="GPT2Config",
        config_kwargs={
            "n_embd": 96,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
            "resid_pdrop": 0.0,
            "initializer_range": _TINY_RANGE,
        },
        vocabulary="gpt2",
        vocab_size=800,
    ),
    # For GLUE on two CPU cores: 1.5, 1.9 and 3.5 million parameters
    "elmo-small": _elmo([[1, 32], [2, 32], [3, 64], [4, 128]], 256, 256, dropout=0.2, head=512),
    "albert-small": _albert(8000, embedding_size=128, hidden_size=256, layers=4, heads=4, positions=256),
    "xlnet-small": _xlnet(8000, hidden_size=192, layers=4, heads=4, dropout=0.1),
}
