"""Configuration of the ALBERT-style family."""

import math
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from .loading_albert import check_fields, check_model_type


class LineageAlbertConfig(PreTrainedConfig):
    r"""Configuration of an encoder anywhere between BERT and ALBERT.

    A model has attention blocks and feed-forward blocks, each with its own LayerNorm, and every layer says which of
    them it uses. With all layers on one block of each kind it is ALBERT (Lan et al. 2020,
    https://arxiv.org/abs/1909.11942), with a block for each layer it is BERT (Devlin et al. 2019,
    https://arxiv.org/abs/1810.04805), and sharing only one kind gives the rows between in ALBERT's Table 4.

    The defaults are ALBERT base: 11.7 million parameters. Fields that transformers' `AlbertConfig` has mean the same
    here.

    Args:
        vocab_size (`int`, defaults to 30000):
            Rows of the word table.
        embedding_size (`int`, defaults to 128):
            Width E of the word, position and segment tables.
        hidden_size (`int`, defaults to 768):
            Width H of the layers.
        num_hidden_layers (`int`, defaults to 12):
            Number of layers, each of which is `inner_group_num` layers deep.
        num_hidden_groups (`int`, defaults to 1):
            Groups of consecutive layers; what `share_parameters` shares is shared within a group. Layer `i` of `L` is
            in group `i * num_hidden_groups // L`. At most `num_hidden_layers`.
        inner_group_num (`int`, defaults to 1):
            Blocks of each kind in a group, run one after the other each time a layer runs. The depth of the network
            is `num_hidden_layers * inner_group_num`.
        num_attention_heads (`int`, defaults to 12):
            Attention heads; must divide `hidden_size`.
        intermediate_size (`int`, defaults to 3072):
            Width between the two linear layers of a feed-forward block.
        hidden_act (`str`, defaults to `"gelu_new"`):
            Activation there and in the masked-LM head, a name of `transformers.activations.ACT2FN`. `"gelu_new"` is
            the tanh approximation, which ALBERT's published models use; `"gelu"` is the exact one, BERT's in
            transformers. Both run as one fused kernel.
        hidden_dropout_prob (`float`, defaults to 0.0):
            Dropout after the embeddings, after attention **and after the feed-forward block** (which transformers'
            ALBERT leaves out).
        attention_probs_dropout_prob (`float`, defaults to 0.0):
            Dropout of attention probabilities.
        classifier_dropout_prob (`float` or `None`, defaults to 0.1):
            Dropout before the classifier of a sequence, a token or a choice; `None` takes `hidden_dropout_prob`.
        max_position_embeddings (`int`, defaults to 512):
            Rows of the position table, so the longest sequence.
        type_vocab_size (`int`, defaults to 2):
            Rows of the segment table.
        initializer_range (`float`, defaults to 0.02):
            Standard deviation of the normal distribution, cut at two of them, that weights are drawn from.
        layer_norm_eps (`float`, defaults to 1e-12):
            Epsilon of every LayerNorm.
        share_parameters (`str`, defaults to `"all"`):
            What the layers of a group share: `"all"`, `"attention"` blocks only, `"ffn"` blocks only, or `"none"`.
        attention_layer_blocks (`list[int]` or `None`, defaults to `None`):
            The attention block of each of the network's layers, in place of what `share_parameters` and
            `num_hidden_groups` say: `[0, 0, 1, 1]` is four layers on two blocks. Blocks are numbered from 0 and each
            must be used.
        ffn_layer_blocks (`list[int]` or `None`, defaults to `None`):
            The same for feed-forward blocks.
        project_embeddings (`bool` or `None`, defaults to `None`):
            Whether a linear layer maps the embeddings from E to H. `None`: only where the sizes differ, as in the
            original; transformers' ALBERT always has one.
        layer_norm_position (`str`, defaults to `"post"`):
            `"post"` normalizes the sum of a block's input and output, as both originals do; `"pre"` normalizes a
            block's input and, once, the output of the last layer.
        sentence_objective (`str`, defaults to `"sop"`):
            What `LineageAlbertForPreTraining` predicts of a pair: whether its sentences are swapped (`"sop"`, ALBERT),
            whether the second follows the first in a document (`"nsp"`, BERT), or nothing (`"none"`).
        sparse_prediction (`bool`, defaults to `True`):
            Whether, in training, the masked-LM head runs on the labelled positions only, as the originals do; the
            logits are then `(labelled positions, vocab_size)`. In evaluation all positions have logits.
        padding_free (`bool`, defaults to `False`):
            Whether batches with a two-dimensional `attention_mask` are computed without their padding. Outputs of
            real tokens do not change; those of padding are zero.
        pad_token_id (`int`, defaults to 0), bos_token_id (`int`, defaults to 2), eos_token_id (`int`, defaults to 3):
            As in the published vocabulary, where 2 is `[CLS]` and 3 is `[SEP]`.
        tie_word_embeddings (`bool`, defaults to `True`):
            Whether the masked-LM head's last layer is the word table.

    Raises:
        ValueError: If a field is out of range or contradicts another one.

    Example:

    ```python
    >>> from hf_lineage import LineageAlbertConfig, LineageAlbertModel

    >>> config = LineageAlbertConfig(share_parameters="attention", num_hidden_layers=4)
    >>> config.layer_blocks
    ((0, 0), (0, 1), (0, 2), (0, 3))
    >>> model = LineageAlbertModel(config)
    ```
    """

    model_type = "lineage_albert"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["prediction_loss", "sentence_loss"]

    vocab_size: int = 30000
    embedding_size: int = 128
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float | None = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    share_parameters: str = "all"
    attention_layer_blocks: list[int] | None = None
    ffn_layer_blocks: list[int] | None = None
    project_embeddings: bool | None = None
    layer_norm_position: str = "post"
    sentence_objective: str = "sop"
    sparse_prediction: bool = True
    padding_free: bool = False
    pad_token_id: int | None = 0
    bos_token_id: int | None = 2
    eos_token_id: int | None = 3
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs):
        check_fields(self, kwargs)
        super().__post_init__(**kwargs)
        self._check_numbers()
        self._check_choices()
        self._check_agreement()

    @property
    def depth(self) -> int:
        """Number of times that an attention and a feed-forward block run."""
        return self.num_hidden_layers * self.inner_group_num

    @property
    def layer_blocks(self) -> tuple[tuple[int, int], ...]:
        """For each of the `depth` layers, its attention block and its feed-forward block."""
        attention = self.attention_layer_blocks or self._blocks_of("attention")
        ffn = self.ffn_layer_blocks or self._blocks_of("ffn")
        return tuple(zip(attention, ffn, strict=True))

    @property
    def num_attention_blocks(self) -> int:
        """Number of distinct attention blocks."""
        return 1 + max(attention for attention, _ in self.layer_blocks)

    @property
    def num_ffn_blocks(self) -> int:
        """Number of distinct feed-forward blocks."""
        return 1 + max(ffn for _, ffn in self.layer_blocks)

    @property
    def has_projection(self) -> bool:
        """Whether a linear layer maps the embeddings to the width of the layers."""
        if self.project_embeddings is None:
            return self.embedding_size != self.hidden_size
        return self.project_embeddings

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path: Any, **kwargs) -> tuple[dict[str, Any], dict[str, Any]]:
        """As in `PreTrainedConfig`; that of transformers' BERT or ALBERT is translated, any other is refused."""
        from .conversion_albert import translated_config_dict

        config_dict, kwargs = super().get_config_dict(pretrained_model_name_or_path, **kwargs)
        config_dict = translated_config_dict(config_dict)
        check_model_type(config_dict, cls, pretrained_model_name_or_path)
        return config_dict, kwargs

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs) -> "LineageAlbertConfig":
        """As in `PreTrainedConfig`; fields that replace those of the dictionary are checked like them.

        What names code beside the file that was read is kept only by a class that is such code: transformers saves
        that code with it.
        """
        own = {name: kwargs.pop(name) for name in list(kwargs) if name in cls.__annotations__}
        if cls._auto_class is None:
            config_dict = {name: value for name, value in config_dict.items() if name != "auto_map"}
        return super().from_dict({**config_dict, **own}, **kwargs)

    def _blocks_of(self, kind: str) -> list[int]:
        if self.share_parameters not in ("all", kind):
            return list(range(self.depth))
        groups = [layer * self.num_hidden_groups // self.num_hidden_layers for layer in range(self.num_hidden_layers)]
        return [group * self.inner_group_num + inner for group in groups for inner in range(self.inner_group_num)]

    def _check_numbers(self) -> None:
        positive = (
            "vocab_size embedding_size hidden_size num_hidden_layers num_hidden_groups inner_group_num "
            "num_attention_heads intermediate_size max_position_embeddings type_vocab_size"
        )
        for name in positive.split():
            value = getattr(self, name)
            if not _is_integer(value) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"):
            value = getattr(self, name)
            if value is None and name == "classifier_dropout_prob":
                continue
            if not _is_number(value) or not 0 <= value < 1:
                raise ValueError(f"{name} must be a number in [0, 1), got {value!r}")
        for name in ("initializer_range", "layer_norm_eps"):
            value = getattr(self, name)
            if not _is_number(value) or value <= 0:
                raise ValueError(f"{name} must be a number above 0, got {value!r}")

    def _check_choices(self) -> None:
        choices = {
            "share_parameters": ("all", "attention", "ffn", "none"),
            "layer_norm_position": ("post", "pre"),
            "sentence_objective": ("sop", "nsp", "none"),
            "project_embeddings": (None, True, False),
            "sparse_prediction": (True, False),
            "padding_free": (True, False),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if not any(value == choice and type(value) is type(choice) for choice in allowed):
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")

    def _check_agreement(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size={self.hidden_size} must be a multiple of num_attention_heads={self.num_attention_heads}"
            )
        if self.project_embeddings is False and self.embedding_size != self.hidden_size:
            raise ValueError(
                f"project_embeddings=False needs embedding_size={self.embedding_size} and "
                f"hidden_size={self.hidden_size} to be equal"
            )
        if self.num_hidden_groups > self.num_hidden_layers:
            raise ValueError(
                f"num_hidden_groups={self.num_hidden_groups} is more than num_hidden_layers={self.num_hidden_layers}: "
                "some groups would never be used"
            )
        if self.share_parameters == "none" and self.num_hidden_groups not in (1, self.num_hidden_layers):
            raise ValueError(
                f"num_hidden_groups={self.num_hidden_groups} has no meaning with share_parameters='none'; leave it 1"
            )
        pad = self.pad_token_id
        if pad is not None and not (_is_integer(pad) and 0 <= pad < self.vocab_size):
            raise ValueError(f"pad_token_id must be None or in [0, vocab_size={self.vocab_size}), got {pad!r}")
        for name in ("attention_layer_blocks", "ffn_layer_blocks"):
            self._check_blocks(name, getattr(self, name))

    def _check_blocks(self, name: str, blocks: Any) -> None:
        if blocks is None:
            return
        if not isinstance(blocks, (list, tuple)) or not all(_is_integer(block) and block >= 0 for block in blocks):
            raise ValueError(f"{name} must be None or a list of integers of at least 0, got {blocks!r}")
        if len(blocks) != self.depth:
            raise ValueError(
                f"{name} must name a block for each of the num_hidden_layers * inner_group_num = {self.depth} layers, "
                f"got {len(blocks)}: {blocks!r}"
            )
        unused = sorted(set(range(max(blocks))) - set(blocks))
        if unused:
            raise ValueError(f"{name} must use every block from 0 to {max(blocks)}, but not {unused}: {blocks!r}")
        setattr(self, name, list(blocks))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


__all__ = ["LineageAlbertConfig"]
