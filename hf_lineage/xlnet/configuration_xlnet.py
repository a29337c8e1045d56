"""Configuration of the XLNet-style family."""

import math
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from .loading_xlnet import check_fields, check_model_type


class LineageXLNetConfig(PreTrainedConfig):
    r"""Configuration of a permutation language model with two streams and memory.

    Yang et al. 2019, "XLNet: Generalized Autoregressive Pretraining for Language Understanding"
    (https://arxiv.org/abs/1906.08237). The defaults are XLNet base; fields that transformers' `XLNetConfig` has mean
    the same here.

    Args:
        vocab_size (`int`, defaults to 32000):
            Rows of the word table.
        d_model (`int`, defaults to 768):
            Width of the layers; `hidden_size` is the same.
        n_layer (`int`, defaults to 12):
            Layers; `num_hidden_layers` is the same.
        n_head (`int`, defaults to 12):
            Attention heads; must divide `d_model`. `num_attention_heads` is the same.
        d_inner (`int`, defaults to 3072):
            Width between the two linear layers of a feed-forward block; `intermediate_size` is the same.
        d_head (`int` or `None`, defaults to `None`):
            Width of a head, `d_model // n_head`.
        ff_activation (`str`, defaults to `"gelu"`):
            Activation, a name of `transformers.activations.ACT2FN`. `"gelu"` is the exact one, transformers' choice;
            the original used the tanh approximation, `"gelu_new"`.
        attn_type (`str`, defaults to `"bi"`):
            `"bi"`: a token sees what the masks allow, in both directions; `"uni"`: only what is before it.
        initializer_range (`float`, defaults to 0.02):
            Standard deviation of the normal distribution that weights are drawn from.
        layer_norm_eps (`float`, defaults to 1e-12):
            Epsilon of every LayerNorm.
        dropout (`float`, defaults to 0.1):
            Dropout of embeddings, positions, blocks and attention probabilities.
        mem_len (`int` or `None`, defaults to 512):
            Most tokens that the memory keeps; `None` or 0 keeps all.
        reuse_len (`int` or `None`, defaults to `None`):
            Tokens at the begin of a segment that enter the memory; `None` or 0 for all.
        use_mems_eval (`bool`, defaults to `False`), use_mems_train (`bool`, defaults to `False`):
            Whether the models return the memory in evaluation and in training where a call does not say it
            (`use_mems`). Models with a head for a task return it only where a call says so.
        bi_data (`bool`, defaults to `False`):
            Whether the second half of a batch is text from right to left, as in the original's pretraining; a call can
            say it row by row instead (`directions`).
        clamp_len (`int`, defaults to -1):
            Largest distance that positions tell apart; -1 or 0 for no bound.
        same_length (`bool`, defaults to `False`):
            With `attn_type="uni"`, whether each token sees equally many before it.
        summary_type (`str`, defaults to `"last"`):
            Which vector stands for the sequence: that of the `"last"` or the `"first"` real token, or the `"mean"` of
            all; padding does not count, on either side.
        summary_use_proj (`bool`, defaults to `True`):
            Whether a linear layer follows.
        summary_activation (`str` or `None`, defaults to `"tanh"`):
            Activation after it, `"tanh"` or `None`.
        summary_last_dropout (`float`, defaults to 0.1):
            Dropout after that.
        start_n_top (`int`, defaults to 5), end_n_top (`int`, defaults to 5):
            Beams of `LineageXLNetForQuestionAnswering`.
        pad_token_id (`int`, defaults to 5), bos_token_id (`int`, defaults to 1), eos_token_id (`int`, defaults to 2):
            As in the published vocabulary.
        next_sentence (`bool`, defaults to `False`):
            Whether `LineageXLNetForPreTraining` predicts if the second passage follows the first, too.
        tie_word_embeddings (`bool`, defaults to `True`):
            Whether the language model's last layer is the word table.

    Raises:
        ValueError: If a field is out of range or contradicts another one.
    """

    model_type = "lineage_xlnet"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["mems", "mems_mask", "prediction_loss", "next_sentence_loss"]
    attribute_map: ClassVar[dict[str, str]] = {
        "n_token": "vocab_size",
        "hidden_size": "d_model",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
        "intermediate_size": "d_inner",
    }

    vocab_size: int = 32000
    d_model: int = 768
    n_layer: int = 12
    n_head: int = 12
    d_inner: int = 3072
    d_head: int | None = None
    ff_activation: str = "gelu"
    attn_type: str = "bi"
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1
    mem_len: int | None = 512
    reuse_len: int | None = None
    use_mems_eval: bool = False
    use_mems_train: bool = False
    bi_data: bool = False
    clamp_len: int = -1
    same_length: bool = False
    summary_type: str = "last"
    summary_use_proj: bool = True
    summary_activation: str | None = "tanh"
    summary_last_dropout: float = 0.1
    start_n_top: int = 5
    end_n_top: int = 5
    pad_token_id: int | None = 5
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    next_sentence: bool = False
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs):
        check_fields(self, kwargs)
        super().__post_init__(**kwargs)
        self._check_numbers()
        self._check_choices()
        if self.d_model % self.n_head:
            raise ValueError(f"d_model={self.d_model} must be a multiple of n_head={self.n_head}")
        if self.d_model % 2:
            raise ValueError(f"d_model must be even (sines and cosines of positions), got {self.d_model}")
        if self.d_head not in (None, self.d_model // self.n_head):
            raise ValueError(
                f"d_head must be None or d_model // n_head = {self.d_model // self.n_head}, got {self.d_head!r}"
            )
        self.d_head = self.d_model // self.n_head

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path: Any, **kwargs) -> tuple[dict[str, Any], dict[str, Any]]:
        """As in `PreTrainedConfig`; that of an XLNet of transformers is translated, any other is refused."""
        from .conversion_xlnet import translated_config_dict

        config_dict, kwargs = super().get_config_dict(pretrained_model_name_or_path, **kwargs)
        config_dict = translated_config_dict(config_dict)
        check_model_type(config_dict, cls, pretrained_model_name_or_path)
        return config_dict, kwargs

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs) -> "LineageXLNetConfig":
        """As in `PreTrainedConfig`; fields that replace those of the dictionary are checked like them.

        What names code beside the file that was read is kept only by a class that is such code: transformers saves
        that code with it.
        """
        fields = {cls.attribute_map.get(name, name): name for name in kwargs}
        own = {field: kwargs.pop(name) for field, name in fields.items() if field in cls.__annotations__}
        if {"d_model", "n_head"} & set(own):
            own.setdefault("d_head", None)
        if cls._auto_class is None:
            config_dict = {name: value for name, value in config_dict.items() if name != "auto_map"}
        return super().from_dict({**config_dict, **own}, **kwargs)

    def _check_numbers(self) -> None:
        smallest = dict.fromkeys("vocab_size d_model n_layer n_head d_inner start_n_top end_n_top".split(), 1)
        smallest.update(mem_len=0, reuse_len=0, clamp_len=-1)
        for name, minimum in smallest.items():
            value = getattr(self, name)
            if value is None and name in ("mem_len", "reuse_len"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
                raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")
        for name in ("dropout", "summary_last_dropout"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value < 1:
                raise ValueError(f"{name} must be a number in [0, 1), got {value!r}")
        for name in ("initializer_range", "layer_norm_eps"):
            value = getattr(self, name)
            if not _is_number(value) or value <= 0:
                raise ValueError(f"{name} must be a number above 0, got {value!r}")

    def _check_choices(self) -> None:
        choices: dict[str, tuple[Any, ...]] = {
            "attn_type": ("bi", "uni"),
            "summary_type": ("last", "first", "mean"),
            "summary_activation": ("tanh", None),
        }
        switches = ("use_mems_eval", "use_mems_train", "bi_data", "same_length", "summary_use_proj", "next_sentence")
        choices.update(dict.fromkeys(switches, (True, False)))
        for name, allowed in choices.items():
            value = getattr(self, name)
            if not any(value == choice and type(value) is type(choice) for choice in allowed):
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


__all__ = ["LineageXLNetConfig"]
