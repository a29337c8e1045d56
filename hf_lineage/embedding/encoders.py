"""Encoders of sentences: ELMo, and any other encoder that transformers knows."""

import hashlib
import inspect
import os
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from .. import ElmoEmbedder, ElmoModel, ElmoTokenizer
from .layers import check_layers, selected_layers
from .layouts import VectorShape
from .run import Encoder
from .subwords import Piece, SubwordReader, load_tokenizer

POOLINGS = ("mean", "first")
DTYPES = ("float32", "bfloat16", "float16")
_NO_LIMIT = 1 << 30
_UNUSED_WEIGHTS = ("pooler", "scalar_mixes")  # no layer depends on these


class ElmoEncoder:
    """Vectors of an ELMo model.

    Args:
        embedder: Computes them.
    """

    def __init__(self, embedder: ElmoEmbedder):
        self.embedder = embedder
        num_layers = embedder.num_layers if embedder.layers == "all" else None
        self.shape = VectorShape(num_layers, embedder.hidden_size)
        vocabulary = embedder.word_vectors.vocabulary
        self.settings: dict[str, Any] = {
            "layers": embedder.layers,
            "model": weights_digest(embedder.model),
            "vocabulary_cache": None if vocabulary is None else str(vocabulary.path),
        }

    def encode(self, batch: list[list[str]]) -> list[np.ndarray]:
        """Returns the float32 vectors of sentences, none of which is empty."""
        return self.embedder.encode(batch)


class TransformersEncoder:
    """Vectors of words from an encoder that reads sub-words.

    A sentence that is longer than the model can read is read in pieces. A word of which the tokenizer makes nothing is
    read as its unknown token, or has the vector zero if there is none.

    Args:
        model: The model; of an encoder and a decoder, the encoder is used. It is put into evaluation mode.
        tokenizer: Its tokenizer.
        layers: `"all"`, of which the embeddings are the first, `"top"` or `"average"`.
        pooling: The vector of a word is the `"mean"` of those of its sub-words, or the `"first"` one.

    Raises:
        ValueError: If an argument is none of these.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, layers: str = "all", pooling: str = "mean"
    ):
        check_layers(layers)
        if layers == "mix":
            raise ValueError(f"layers='mix' is ELMo's; this is a model of the type {model.config.model_type!r}")
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
        self.model = (model.get_encoder() if model.config.is_encoder_decoder else model).eval()
        self.subwords = SubwordReader(tokenizer, _longest_input(self.model, tokenizer))
        self.layers, self.pooling = layers, pooling
        self._inputs = inspect.signature(self.model.forward).parameters.keys()
        (probe,) = self.encode([["a"]])  # configurations name these numbers in many ways
        self.shape = VectorShape(probe.shape[0] if layers == "all" else None, probe.shape[-1])
        self.settings: dict[str, Any] = {"layers": layers, "pooling": pooling, "model": weights_digest(model)}

    @torch.no_grad()
    def encode(self, batch: list[list[str]]) -> list[np.ndarray]:
        """Returns the float32 vectors of sentences, none of which is empty."""
        sentences = self.subwords.read(batch)
        vectors = iter(self._word_vectors([piece for pieces in sentences for piece in pieces]))
        parts = [[next(vectors) for _ in pieces] for pieces in sentences]
        return [torch.cat(some, -2).float().cpu().numpy() for some in parts]

    def _word_vectors(self, pieces: list[Piece]) -> list[torch.Tensor]:
        """`(layers, words, hidden_size)` or `(words, hidden_size)` vectors of each piece."""
        inputs = self.subwords.tokenizer.pad([piece.inputs for piece in pieces], return_tensors="pt")
        inputs = {name: values.to(self.model.device) for name, values in inputs.items() if name in self._inputs}
        output = self.model(**inputs, output_hidden_states=self.layers != "top")
        layers = (output.last_hidden_state,) if self.layers == "top" else output.hidden_states
        hidden = selected_layers(layers, self.layers)
        pads_left = self.subwords.tokenizer.padding_side == "left"
        return [
            self._pooled(values[..., values.shape[-2] - len(piece.words) :, :] if pads_left else values, piece)
            for values, piece in zip(hidden, pieces, strict=True)
        ]

    def _pooled(self, hidden: torch.Tensor, piece: Piece) -> torch.Tensor:
        """Makes `(..., words, hidden_size)` of `(..., sub-words, hidden_size)`."""
        owners = [(place, word) for place, word in enumerate(piece.words) if word is not None]
        if self.pooling == "first":
            first = {word: place for place, word in reversed(owners)}
            owners = [(place, word) for word, place in first.items()]
        places, words = torch.tensor(owners, dtype=torch.long, device=hidden.device).reshape(-1, 2).unbind(1)
        sums = hidden.new_zeros(*hidden.shape[:-2], piece.num_words, hidden.shape[-1])
        sums.index_add_(-2, words, hidden[..., places, :])
        counts = torch.bincount(words, minlength=piece.num_words).clamp(min=1)
        return sums / counts[:, None].to(sums.dtype)


def load_encoder(
    name_or_path: str,
    layers: str = "all",
    pooling: str = "mean",
    device: str | torch.device = "cpu",
    max_batch_tokens: int = 2048,
    cache_size: int = 32768,
    vocabulary_cache: str | os.PathLike | None = None,
    vocab_file: str | os.PathLike | None = None,
    dtype: str | None = None,
) -> Encoder:
    """Loads a model of this package or of transformers.

    Args:
        name_or_path: Folder or Hub name.
        layers: See `ElmoEmbedder` and `TransformersEncoder`.
        pooling: See `TransformersEncoder`.
        device: Where to compute.
        max_batch_tokens: Words of a batch, padding included.
        cache_size: See `ElmoEmbedder`; other models have no use for it.
        vocabulary_cache: See `ElmoEmbedder`.
        vocab_file: See `ElmoEmbedder`.
        dtype: What to compute in, one of `DTYPES`; `None` for what the weights are saved in. Vectors are returned in
            float32 in any case.

    Raises:
        ValueError: If weights that the vectors depend on are not there, or an argument does not fit the model.
    """
    check_layers(layers)
    if dtype is not None and dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    config = AutoConfig.from_pretrained(name_or_path)
    is_elmo = config.model_type == "elmo"
    if not is_elmo and (vocabulary_cache is not None or vocab_file is not None):
        raise ValueError(f"only ELMo has a vocabulary cache; {name_or_path} is of the type {config.model_type!r}")
    model_class = ElmoModel if is_elmo else AutoModel
    model, loading = model_class.from_pretrained(name_or_path, dtype=dtype or "auto", output_loading_info=True)
    missing = [name for name in sorted(loading["missing_keys"]) if not name.startswith(_UNUSED_WEIGHTS)]
    if missing:
        raise ValueError(f"{name_or_path} lacks weights, so its vectors would be random: {', '.join(missing[:3])} ...")
    model.to(device)
    if not is_elmo:
        return TransformersEncoder(model, load_tokenizer(name_or_path), layers, pooling)
    tokenizer = ElmoTokenizer.from_pretrained(name_or_path)
    return ElmoEncoder(
        ElmoEmbedder(
            model,
            tokenizer,
            layers,
            max_batch_tokens=max_batch_tokens,
            cache_size=cache_size,
            vocabulary_cache=vocabulary_cache,
            vocab_file=vocab_file,
        )
    )


def weights_digest(model: PreTrainedModel) -> str:
    """Tells models apart by their weights: 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def _longest_input(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Sub-words that a model can read, special tokens included; `None` if there is no limit."""
    limits = [tokenizer.model_max_length]
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and positions > 0:
        # RoBERTa and its kin count positions from behind that of padding
        before_first = getattr(getattr(model, "embeddings", None), "padding_idx", None)
        limits.append(positions if before_first is None else positions - before_first - 1)
    limit = min(limits)
    return limit if limit < _NO_LIMIT else None


__all__ = ["DTYPES", "POOLINGS", "ElmoEncoder", "TransformersEncoder", "load_encoder", "weights_digest"]
