"""The biLM whose vectors are used, as it was trained or with random weights, and its vectors of a corpus."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from tqdm import tqdm
from transformers import PreTrainedConfig, set_seed

from hf_lineage import ElmoConfig, ElmoEmbedder, ElmoModel, ElmoTokenizer
from hf_lineage.elmo.modeling_elmo import ElmoPreTrainedModel

# What every model here reads sentences with, whatever else its configuration says: each by itself, the layers as they
# are, mixed by weights that are learned.
_READING = {
    "stateful": False,
    "keep_sentence_boundaries": False,
    "num_scalar_mixes": 1,
    "scalar_mix_parameters": None,
    "scalar_mix_layer_norm": None,
    "static_embedding_size": 0,
}
_BATCH_TOKENS = 4096

Model = TypeVar("Model", bound=ElmoPreTrainedModel)


def load_model(
    model_class: type[Model], name_or_path: str, random_weights: bool, seed: int, **fields: Any
) -> tuple[Model, ElmoTokenizer]:
    """Load a model whose biLM is frozen, and its tokenizer.

    Args:
        model_class: What to load; what it has beside the biLM has random weights.
        name_or_path: Folder or Hub name of an ELMo model.
        random_weights: Whether the biLM has random weights too, of the same architecture.
        seed: Start of all random weights.
        fields: Fields of the configuration.

    Raises:
        ValueError: If it is no ELMo model, or has static word vectors or not all of its weights.
    """
    config_dict, _ = PreTrainedConfig.get_config_dict(name_or_path)
    if config_dict.get("model_type") != ElmoConfig.model_type:
        raise ValueError(f"{name_or_path} must be an ELMo model, its model_type is {config_dict.get('model_type')!r}")
    if config_dict.get("static_embedding_size"):
        raise ValueError(f"{name_or_path} has static word vectors beside ELMo's: give the language model alone")
    config = ElmoConfig.from_dict({**config_dict, **_READING}, **fields)
    tokenizer = ElmoTokenizer.from_pretrained(name_or_path)
    set_seed(seed)
    if random_weights:
        model = model_class(config)
    else:
        model, loading = model_class.from_pretrained(
            name_or_path, config=config, dtype=torch.float32, output_loading_info=True
        )
        # of the character encoder and of the LSTMs
        missing = sorted(name for name in loading["missing_keys"] if "encoder." in name)
        if missing:
            raise ValueError(f"{name_or_path} lacks weights of its language model: {', '.join(missing[:3])} ...")
    model.freeze_language_model()
    return model, tokenizer


@dataclass(frozen=True)
class LayerCache:
    """Vectors of the words of a corpus, computed once.

    Args:
        vectors: `(words, layers, hidden_size)` float32: all words in a row, on the CPU.
        offsets: `(sentences + 1,)` int64: where each sentence begins, and the number of words.
    """

    vectors: torch.Tensor
    offsets: torch.Tensor

    @classmethod
    def of(
        cls, model: ElmoModel, tokenizer: ElmoTokenizer, sentences: Sequence[Sequence[str]], description: str = ""
    ) -> "LayerCache":
        """Compute all layers of every word, context-free vectors first, each sentence by itself.

        Args:
            model: The biLM, on its device.
            tokenizer: Its tokenizer.
            sentences: The words of each.
            description: What a progress bar calls them; there is none without.
        """
        embedder = ElmoEmbedder(model, tokenizer, layers="all", max_batch_tokens=_BATCH_TOKENS)
        lengths = torch.tensor([len(sentence) for sentence in sentences], dtype=torch.long)
        offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
        vectors = torch.empty(int(offsets[-1]), embedder.num_layers, embedder.hidden_size)
        arrays: Iterable = embedder.embed_sentences(sentences)
        bar = tqdm(arrays, description, len(sentences), unit="sentence", leave=False, disable=not description or None)
        for begin, array in zip(offsets.tolist(), bar, strict=False):
            vectors[begin : begin + array.shape[1]] = torch.from_numpy(array).transpose(0, 1)
        return cls(vectors, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sentence(self, number: int) -> torch.Tensor:
        """Return the `(words, layers, hidden_size)` float32 vectors of a sentence, a view."""
        return self.vectors[self.offsets[number] : self.offsets[number + 1]]

    def statistics(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and standard deviation over all words, `(layers, hidden_size)` each."""
        variance, mean = torch.var_mean(self.vectors, 0, correction=0)
        return mean, variance.sqrt()

    def standardize(self, mean: torch.Tensor, deviation: torch.Tensor) -> None:
        """Subtract and divide by numbers from `statistics`, in place; what does not vary becomes 0."""
        self.vectors.sub_(mean).div_(torch.where(deviation > 0, deviation, torch.inf))

    def batch(self, numbers: Sequence[int], device: torch.device | str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        """Return the vectors of some sentences, `(sentences, words, layers, hidden_size)` float32, and their mask.

        Args:
            numbers: Which sentences, none of which is empty.
            device: Where to put them.

        Returns:
            The vectors, zero at padding, and the `(sentences, words)` int64 mask.
        """
        rows = [self.sentence(number) for number in numbers]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
        lengths = torch.tensor([len(row) for row in rows], device=device)
        mask = (torch.arange(padded.shape[1], device=device) < lengths[:, None]).long()
        return padded, mask
