"""Configuration of ELMo."""

import math
from dataclasses import field
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from .loading_elmo import check_fields, check_model_type


class ElmoConfig(PreTrainedConfig):
    r"""Configuration of an ELMo model: a character CNN, a two-direction LSTM language model and a scalar mix.

    The defaults are the "original" model of Peters et al. 2018, "Deep contextualized word representations"
    (https://arxiv.org/abs/1802.05365): 93.6 million parameters.

    Args:
        char_vocab_size (`int`, defaults to 262):
            Rows of the character table: 256 bytes, 5 special characters and row 0, which marks padding; with a
            dictionary, as many as its numbers need, but no fewer.
        char_vocabulary (`str`, defaults to `"bytes"`):
            What a character is: `"bytes"` of the UTF-8 form, as in bilm-tf and AllenNLP, or entries of a
            `"dictionary"` of Unicode characters, as in ELMoForManyLangs (which the tokenizer has).
        char_embedding_size (`int`, defaults to 16):
            Width of a character vector. 0 is for a model that reads words only.
        word_vocab_size (`int`, defaults to 0):
            Rows of the table of input words, 0 for none. Rows 0, 257, 258 and 261 are padding, begin and end of
            sentence and the words behind a sentence's end, numbered as the special characters are.
        word_embedding_size (`int`, defaults to 0):
            Width of the vector of an input word, which stands before what is made of its characters; 0 for none. The
            word's number is then the last of its row of `input_ids`, behind its characters.
        static_embedding_size (`int`, defaults to 0):
            Width of a frozen vector of the word (word2vec, GloVe) that the heads of sequence and token classification
            read beside ELMo's; 0 for none. The number of the word is as above.
        classifier_lstm_size (`int`, defaults to 0):
            Width of each direction of a BiLSTM over what these heads read, 0 for none.
        max_characters_per_token (`int`, defaults to 50):
            Characters a token is padded or cut to, the begin and end of word characters included.
        char_cnn_filters (`list[list[int]]`):
            One `[width, number of filters]` pair for each convolution over the characters.
        char_cnn_activation (`str`, defaults to `"relu"`):
            Activation after the maximum over positions, `"relu"` or `"tanh"`.
        num_highway_layers (`int`, defaults to 2):
            Highway layers after the convolutions, 0 for none.
        hidden_size (`int`, defaults to 1024):
            Width of an output vector: forward and backward direction concatenated, so each direction has half of it.
        lstm_hidden_size (`int`, defaults to 4096):
            Width of the LSTM's cell in each direction. If it equals `hidden_size // 2`, the LSTM has no projection.
        num_hidden_layers (`int`, defaults to 2):
            LSTM layers in each direction.
        use_skip_connections (`bool`, defaults to `True`):
            Whether the input of each LSTM layer but the first is added to its output.
        cell_clip (`float` or `None`, defaults to 3.0):
            Bound on the absolute value of the cell; `None` or 0 for no bound.
        proj_clip (`float` or `None`, defaults to 3.0):
            Bound on the absolute value of the projected output; `None` or 0 for no bound. Ignored without projection,
            as in TensorFlow's LSTM cell.
        forget_bias (`float`, defaults to 1.0):
            Number added to the forget gate's pre-activation. The original weight files do not hold it.
        add_sentence_boundaries (`bool`, defaults to `True`):
            Whether the model puts begin and end of sentence tokens around each sentence. If `False`, the ids must hold
            them already (`ElmoTokenizer(add_sentence_boundaries=True)`).
        keep_sentence_boundaries (`bool`, defaults to `False`):
            Whether the outputs keep the vectors of the boundaries that the model has put around a sentence. They are
            then two tokens longer than the input and padded on the right; `attention_mask` in the output tells where.
        pair_encoding (`str`, defaults to `"joint"`):
            How the two sentences of a pair, told apart by `token_type_ids`, are encoded: `"joint"` reads them as one
            stream with an end and a begin of sentence between them, as the language model read its training text;
            `"separate"` reads each by itself, and the classification heads combine the two vectors as
            `[u; v; |u - v|; u * v]`.
        num_scalar_mixes (`int`, defaults to 1):
            Number of independent scalar mixes over the layers. The heads use the first.
        scalar_mix_parameters (`list[float]` or `None`, defaults to `None`):
            Fixed weights of the mix before the softmax, one a layer (`num_hidden_layers + 1`). `None` learns them.
        scalar_mix_layer_norm (`str` or `None`, defaults to `None`):
            Normalization of each layer before the mix, by the mean and variance over all real tokens of the batch:
            `"allennlp"` counts the sentence boundaries in, `"bilm"` (bilm-tf) does not, `None` is off.
        stateful (`bool`, defaults to `False`):
            Whether the LSTM states at the end of a batch start the next batch, as in both original implementations.
            The vectors of a sentence then depend on what was read before it.
        dropout (`float`, defaults to 0.5):
            Dropout after the scalar mix.
        lstm_dropout (`float`, defaults to 0.0):
            Dropout on the input of every LSTM layer and before the language model's softmax; bilm-tf trained with 0.1.
        classifier_pooling (`str`, defaults to `"max"`):
            How the classification heads make one vector of a sentence: `"max"` or `"mean"` over its tokens, or
            `"last"`, the last forward and the first backward vector.
        classifier_hidden_size (`int`, defaults to 512):
            Width of the hidden layer of the classification heads, 0 for a linear classifier.
        classifier_dropout (`float`, defaults to 0.2):
            Dropout before each linear layer of a head.
        vocab_size (`int` or `None`, defaults to `None`):
            Words of the pretraining softmax. Only `ElmoForPreTraining` needs it.
        num_negative_samples (`int`, defaults to 0):
            Words that the softmax is estimated from in training, below `vocab_size`; 0 for all. Evaluation takes all.
        adaptive_softmax_cutoffs (`list[int]` or `None`, defaults to `None`):
            For an adaptive softmax the ids at which its clusters begin, ascending, between 0 and `vocab_size`; the
            words before the first cost most. `None` for a linear layer, the only one that the original format knows.
        adaptive_softmax_div_value (`float`, defaults to 4.0):
            How many times narrower each cluster of an adaptive softmax is than the one before.
        bos_token_id (`int`, 0), eos_token_id (`int`, 1), unk_token_id (`int`, 2):
            Ids of the begin of sentence, the end of sentence and the unknown word **in the word vocabulary** of the
            pretraining softmax: bilm-tf's vocabulary files begin with these three, and so must every other.
        pad_token_id (`int`, 0):
            The number that a padding token's row consists of.
        tie_word_embeddings (`bool`, defaults to `False`):
            Whether the pretraining softmax has the weights of the input's table of words, as bilm-tf's
            `share_embedding_softmax`. Only for models that read words and no characters, with `word_embedding_size =
            hidden_size / 2`, and whose input has the numbers of `input_numbers` (`softmax_elmo.py`), which
            `python -m tokenizer_training elmo --word_input` gives.

    Raises:
        ValueError: If a field is out of range or contradicts another one.

    Example:

    ```python
    >>> from hf_lineage import ElmoConfig, ElmoModel

    >>> config = ElmoConfig(hidden_size=256, lstm_hidden_size=512, char_cnn_filters=[[1, 32], [2, 32], [3, 64]])
    >>> model = ElmoModel(config)
    ```
    """

    model_type = "elmo"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["final_states", "scalar_mixes", "attention_mask"]

    char_vocab_size: int = 262
    char_vocabulary: str = "bytes"
    char_embedding_size: int = 16
    word_vocab_size: int = 0
    word_embedding_size: int = 0
    static_embedding_size: int = 0
    classifier_lstm_size: int = 0
    max_characters_per_token: int = 50
    char_cnn_filters: list[list[int]] = field(
        default_factory=lambda: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
    )
    char_cnn_activation: str = "relu"
    num_highway_layers: int = 2
    hidden_size: int = 1024
    lstm_hidden_size: int = 4096
    num_hidden_layers: int = 2
    use_skip_connections: bool = True
    cell_clip: float | None = 3.0
    proj_clip: float | None = 3.0
    forget_bias: float = 1.0
    add_sentence_boundaries: bool = True
    keep_sentence_boundaries: bool = False
    pair_encoding: str = "joint"
    num_scalar_mixes: int = 1
    scalar_mix_parameters: list[float] | None = None
    scalar_mix_layer_norm: str | None = None
    stateful: bool = False
    dropout: float = 0.5
    lstm_dropout: float = 0.0
    classifier_pooling: str = "max"
    classifier_hidden_size: int = 512
    classifier_dropout: float = 0.2
    vocab_size: int | None = None
    num_negative_samples: int = 0
    adaptive_softmax_cutoffs: list[int] | None = None
    adaptive_softmax_div_value: float = 4.0
    bos_token_id: int = 0
    eos_token_id: int = 1
    unk_token_id: int = 2
    pad_token_id: int = 0
    tie_word_embeddings: bool = False

    def __post_init__(self, **kwargs):
        self.char_cnn_filters = _checked_filters(self.char_cnn_filters)
        check_fields(self, kwargs)
        super().__post_init__(**kwargs)
        self._check_numbers()
        self._check_choices()
        self._check_agreement()
        self._check_softmax()

    @property
    def projection_size(self) -> int:
        """Width of one direction's vectors."""
        return self.hidden_size // 2

    @property
    def use_lstm_projection(self) -> bool:
        """Whether the LSTM's output is projected (bilm-tf projects only if the sizes differ)."""
        return self.lstm_hidden_size != self.projection_size

    @property
    def num_char_filters(self) -> int:
        """Width of a token's vector after the convolutions."""
        return sum(number for _, number in self.char_cnn_filters)

    @property
    def token_feature_size(self) -> int:
        """Width of what a token's projection reads: its word vector and what the convolutions make."""
        return self.word_embedding_size + (self.num_char_filters if self.char_embedding_size else 0)

    @property
    def use_token_projection(self) -> bool:
        """Whether a token's features are projected (bilm-tf projects only if the sizes differ)."""
        return self.token_feature_size != self.projection_size

    @property
    def token_row_size(self) -> int:
        """Numbers in a token's row of `input_ids`: its characters and, if there are word vectors, its word."""
        return self.max_characters_per_token + int(self.word_vocab_size > 0)

    @property
    def task_feature_size(self) -> int:
        """Width of a token's vector as the heads of sequence and token classification read it."""
        return 2 * self.classifier_lstm_size or self.hidden_size + self.static_embedding_size

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path: Any, **kwargs) -> tuple[dict[str, Any], dict[str, Any]]:
        """As in `PreTrainedConfig`; the configuration of another architecture is refused."""
        config_dict, kwargs = super().get_config_dict(pretrained_model_name_or_path, **kwargs)
        check_model_type(config_dict, cls, pretrained_model_name_or_path)
        return config_dict, kwargs

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs) -> "ElmoConfig":
        """As in `PreTrainedConfig`; fields that replace those of the dictionary are checked like them.

        What names code beside the file that was read is kept only by a class that is such code: transformers saves
        that code with it.
        """
        own = {name: kwargs.pop(name) for name in list(kwargs) if name in cls.__annotations__}
        if cls._auto_class is None:
            config_dict = {name: value for name, value in config_dict.items() if name != "auto_map"}
        return super().from_dict({**config_dict, **own}, **kwargs)

    def _check_numbers(self) -> None:
        smallest = {
            "char_vocab_size": 262,
            "char_embedding_size": 0,
            "word_vocab_size": 0,
            "word_embedding_size": 0,
            "static_embedding_size": 0,
            "classifier_lstm_size": 0,
            "max_characters_per_token": 3,
            "num_highway_layers": 0,
            "hidden_size": 2,
            "lstm_hidden_size": 1,
            "num_hidden_layers": 1,
            "num_scalar_mixes": 1,
            "classifier_hidden_size": 0,
            "num_negative_samples": 0,
        }
        for name, minimum in smallest.items():
            value = getattr(self, name)
            if not _is_integer(value) or value < minimum:
                raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")
        for name in ("dropout", "lstm_dropout", "classifier_dropout"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value < 1:
                raise ValueError(f"{name} must be a number in [0, 1), got {value!r}")
        for name in ("cell_clip", "proj_clip"):
            value = getattr(self, name)
            if value is not None and (not _is_number(value) or value < 0):
                raise ValueError(f"{name} must be None or a number of at least 0, got {value!r}")
        if not _is_number(self.forget_bias):
            raise ValueError(f"forget_bias must be a finite number, got {self.forget_bias!r}")
        if self.vocab_size is not None and (not _is_integer(self.vocab_size) or self.vocab_size < 3):
            raise ValueError(
                "vocab_size must be None or an integer of at least 3 (begin, end of sentence and the unknown word), "
                f"got {self.vocab_size!r}"
            )

    def _check_choices(self) -> None:
        choices = {
            "char_vocabulary": ("bytes", "dictionary"),
            "char_cnn_activation": ("relu", "tanh"),
            "pair_encoding": ("joint", "separate"),
            "scalar_mix_layer_norm": (None, "allennlp", "bilm"),
            "classifier_pooling": ("max", "mean", "last"),
            "bos_token_id": (0,),
            "eos_token_id": (1,),
            "unk_token_id": (2,),
            "pad_token_id": (0,),
        }
        switches = (
            "use_skip_connections",
            "add_sentence_boundaries",
            "keep_sentence_boundaries",
            "stateful",
            "tie_word_embeddings",
        )
        choices.update(dict.fromkeys(switches, (True, False)))
        for name, allowed in choices.items():
            value = getattr(self, name)
            if not any(value == choice and type(value) is type(choice) for choice in allowed):
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")

    def _check_agreement(self) -> None:
        if not self.char_embedding_size and not self.word_embedding_size:
            raise ValueError("char_embedding_size and word_embedding_size are both 0: a token would have no vector")
        reads_words = bool(self.word_embedding_size or self.static_embedding_size)
        fewest = 262 if reads_words else 0  # the special rows
        if self.word_vocab_size < fewest or (self.word_vocab_size and not reads_words):
            raise ValueError(
                f"word_vocab_size must be 0 without word vectors and at least 262 with them, got "
                f"{self.word_vocab_size} with word_embedding_size={self.word_embedding_size} and "
                f"static_embedding_size={self.static_embedding_size}"
            )
        if self.static_embedding_size and not self.classifier_lstm_size and self.classifier_pooling == "last":
            raise ValueError(
                "classifier_pooling='last' takes the last forward and the first backward vector, which static vectors "
                "do not have: use 'max' or 'mean', or a BiLSTM (classifier_lstm_size)"
            )
        if self.hidden_size % 2:
            raise ValueError(f"hidden_size must be even (two directions of equal width), got {self.hidden_size}")
        widest = max(width for width, _ in self.char_cnn_filters)
        if widest > self.max_characters_per_token:
            raise ValueError(
                f"char_cnn_filters has a width of {widest}, but a token has only max_characters_per_token="
                f"{self.max_characters_per_token} characters"
            )
        fixed = self.scalar_mix_parameters
        if fixed is not None and (
            not isinstance(fixed, (list, tuple))
            or len(fixed) != self.num_hidden_layers + 1
            or not all(map(_is_number, fixed))
        ):
            raise ValueError(
                f"scalar_mix_parameters must be None or hold num_hidden_layers + 1 = {self.num_hidden_layers + 1} "
                f"finite numbers, got {fixed!r}"
            )
        if self.keep_sentence_boundaries and not self.add_sentence_boundaries:
            raise ValueError(
                "keep_sentence_boundaries=True keeps the boundaries that the model adds, so it needs "
                "add_sentence_boundaries=True"
            )

    def _check_softmax(self) -> None:
        cutoffs, size = self.adaptive_softmax_cutoffs, self.vocab_size
        if size is not None and self.num_negative_samples >= size:
            raise ValueError(
                f"num_negative_samples must be below vocab_size={size}, got {self.num_negative_samples}; 0 takes all"
            )
        if self.tie_word_embeddings:
            self._check_tied()
        value = self.adaptive_softmax_div_value
        if not _is_number(value) or value < 1:
            raise ValueError(f"adaptive_softmax_div_value must be a number of at least 1, got {value!r}")
        if cutoffs is None:
            return
        if self.num_negative_samples:
            raise ValueError(
                f"an adaptive softmax is not sampled: got adaptive_softmax_cutoffs={cutoffs!r} and "
                f"num_negative_samples={self.num_negative_samples}"
            )
        if (
            not isinstance(cutoffs, (list, tuple))
            or not cutoffs
            or not all(map(_is_integer, cutoffs))
            or any(low >= high for low, high in zip([0, *cutoffs], [*cutoffs, size or math.inf], strict=True))
        ):
            raise ValueError(
                f"adaptive_softmax_cutoffs must be None or ascending integers between 0 and vocab_size={size}, got "
                f"{cutoffs!r}"
            )
        narrowest = self.projection_size // value ** len(cutoffs)
        if narrowest < 1:
            raise ValueError(
                f"the last of {len(cutoffs)} clusters of the softmax would have no width: hidden_size / 2 = "
                f"{self.projection_size} is divided by adaptive_softmax_div_value={value} for each"
            )

    def _check_tied(self) -> None:
        if self.char_embedding_size or self.word_embedding_size != self.projection_size:
            raise ValueError(
                "tie_word_embeddings needs a model that reads words and no characters, with word_embedding_size = "
                f"hidden_size / 2 = {self.projection_size}, got True with char_embedding_size="
                f"{self.char_embedding_size} and word_embedding_size={self.word_embedding_size}"
            )
        if self.adaptive_softmax_cutoffs is not None:
            raise ValueError("an adaptive softmax has no weights to share: tie_word_embeddings must be False")
        if self.vocab_size is not None and self.word_vocab_size != max(262, self.vocab_size + 6):
            raise ValueError(
                f"tie_word_embeddings=True needs word_vocab_size = vocab_size + 6, at least 262, got word_vocab_size="
                f"{self.word_vocab_size} and vocab_size={self.vocab_size}"
            )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _checked_filters(filters: Any) -> list[list[int]]:
    well_formed = (
        isinstance(filters, (list, tuple))
        and len(filters) > 0
        and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in filters)
        and all(_is_integer(number) and number >= 1 for pair in filters for number in pair)
    )
    if not well_formed:
        raise ValueError(
            "char_cnn_filters must be a non-empty list of [width, number of filters] pairs of positive integers, "
            f"got {filters!r}"
        )
    return [list(pair) for pair in filters]


__all__ = ["ElmoConfig"]
