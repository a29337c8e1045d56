from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

import hf_lineage
from hf_lineage import LineageAlbertConfig, LineageAlbertPreTrainedModel, LineageAlbertTokenizer

TINY = {
    "vocab_size": 60,
    "embedding_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "classifier_dropout_prob": 0.0,
}


@pytest.fixture(scope="session")
def tiny() -> Callable[..., LineageAlbertConfig]:
    """Makes a tiny configuration without dropout."""

    def make(**fields) -> LineageAlbertConfig:
        return LineageAlbertConfig(**{**TINY, **fields})

    return make


@pytest.fixture(scope="session")
def peer_config() -> Callable[..., PreTrainedConfig]:
    """Makes a tiny configuration of transformers' ALBERT or BERT without dropout."""

    def make(model_type: str, **fields) -> PreTrainedConfig:
        if model_type == "albert":
            return transformers.AlbertConfig(**{**TINY, **fields})
        unknown = ("embedding_size", "classifier_dropout_prob")
        known = {name: value for name, value in TINY.items() if name not in unknown}
        no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        return transformers.BertConfig(**{**known, **no_dropout, **fields})

    return make


@pytest.fixture(scope="session")
def randomize() -> Callable[[PreTrainedModel], PreTrainedModel]:
    """Draws every weight anew, so that biases and LayerNorms count too."""

    def draw(model: PreTrainedModel, sigma: float = 0.3) -> PreTrainedModel:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0, sigma)
        return model.eval()

    return draw


@pytest.fixture
def load_peer(tmp_path: Path) -> Callable[..., LineageAlbertPreTrainedModel]:
    """Saves a model of transformers and loads the folder as our class with the same head."""

    def load(peer: PreTrainedModel, **kwargs) -> LineageAlbertPreTrainedModel:
        folder = tmp_path / "peer"
        peer.save_pretrained(folder)
        head = type(peer).__name__.removeprefix("Albert").removeprefix("Bert")
        model = getattr(hf_lineage, f"LineageAlbert{head}").from_pretrained(folder, **kwargs)
        return model.eval()

    return load


@pytest.fixture(scope="session")
def batch() -> dict[str, torch.Tensor]:
    """Three rows of two segments each, padded on the right."""
    lengths = torch.tensor([9, 5, 2])
    places = torch.arange(9)
    generator = torch.Generator().manual_seed(0)
    mask = (places < lengths[:, None]).long()
    return {
        "input_ids": torch.randint(5, TINY["vocab_size"], (3, 9), generator=generator) * mask,
        "attention_mask": mask,
        "token_type_ids": (places >= lengths[:, None] // 2).long() * mask,
    }


@pytest.fixture(scope="session")
def inputs_of(batch) -> Callable[[str], dict[str, torch.Tensor]]:
    """That batch in the form that a head takes: for multiple choice, the rows are choices of one example."""

    def make(head: str) -> dict[str, torch.Tensor]:
        return {name: value[None] for name, value in batch.items()} if head == "ForMultipleChoice" else dict(batch)

    return make


@pytest.fixture(scope="session")
def labels_of(batch) -> Callable[..., dict[str, torch.Tensor]]:
    """Labels of that batch for a head, under the names that our class, or transformers', has for them."""

    def make(head: str, sentence_label: str = "sentence_order_label") -> dict[str, torch.Tensor]:
        ids, mask = batch["input_ids"], batch["attention_mask"].bool()
        predicted = mask & (torch.arange(ids.shape[1]) % 3 == 1)
        masked = torch.where(predicted, ids, -100)
        rows = torch.tensor([1, 0, 1])
        return {
            "Model": {},
            "ForPreTraining": {"labels": masked, sentence_label: rows},
            "ForMaskedLM": {"labels": masked},
            "ForSequenceClassification": {"labels": rows},
            "ForTokenClassification": {"labels": torch.where(mask, ids % 2, -100)},
            # the last row's answer was cut off
            "ForQuestionAnswering": {
                "start_positions": torch.tensor([1, 2, 30]),
                "end_positions": torch.tensor([4, 2, 30]),
            },
            "ForMultipleChoice": {"labels": torch.tensor([2])},
        }[head]

    return make


@pytest.fixture(scope="session")
def tokenizer() -> LineageAlbertTokenizer:
    """A tokenizer of a few whole words."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    words = "good bad very film was it the one two three".split()
    pieces = [(piece, 0.0) for piece in special] + [(f"▁{word}", -1.0) for word in words] + [(".", -2.0), ("▁", -3.0)]
    return LineageAlbertTokenizer(vocab=pieces)
