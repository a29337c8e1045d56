"""sentence-transformers over the encoders: its vectors are the mean of ours, and it trains them."""

import numpy as np
import pytest
import torch
from datasets import Dataset
from neighbour_inputs import build_model
from tiny_families import FAMILIES, tokenizer_of

pytest.importorskip("sentence_transformers", reason="needs the extra neighbours")

from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

TEXTS = ["the cat sat on the mat", "a film", "", "good , not bad"]


@pytest.fixture
def folder_of(tmp_path):
    def save(family: str, padding_side: str = "right"):
        model = build_model(family)
        model.save_pretrained(tmp_path / "model")
        tokenizer_of(family, padding_side).save_pretrained(tmp_path / "model")
        return str(tmp_path / "model"), model

    return save


@pytest.mark.parametrize("padding_side", ["right", "left"])
@pytest.mark.parametrize("family", FAMILIES)
def test_sentences_are_means_of_their_tokens(family, padding_side, folder_of, tmp_path):
    folder, model = folder_of(family, padding_side)
    embedder = SentenceTransformer(folder, device="cpu")
    expected = []
    for text in TEXTS:
        inputs = tokenizer_of(family)(text, padding=True, return_tensors="pt")
        with torch.no_grad():
            vectors = model(**inputs).last_hidden_state[0][inputs["attention_mask"][0].bool()]
        expected.append(vectors.sum(0) / max(len(vectors), 1))
    for batch_size in (1, len(TEXTS)):
        found = embedder.encode(TEXTS, batch_size=batch_size)
        assert np.abs(found - torch.stack(expected).numpy()).max() < 1e-5
    embedder.save_pretrained(str(tmp_path / "saved"))
    assert np.array_equal(
        SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(TEXTS), embedder.encode(TEXTS)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_it_trains_the_encoder(family, folder_of, tmp_path):
    folder, model = folder_of(family)
    embedder = SentenceTransformer(folder, device="cpu")
    pairs = Dataset.from_dict(
        {"anchor": ["a cat", "a film", "the mat", "bad"], "positive": ["the cat", "film", "a mat", "not good"]}
    )
    settings = SentenceTransformerTrainingArguments(
        str(tmp_path / "run"), max_steps=2, per_device_train_batch_size=4, learning_rate=1e-2, use_cpu=True,
        save_strategy="no", report_to="none", disable_tqdm=True,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(embedder, settings, pairs, loss=MultipleNegativesRankingLoss(embedder))
    assert trainer.train().training_loss > 0
    trained = embedder[0].auto_model.get_input_embeddings().weight
    assert not torch.equal(trained, model.get_input_embeddings().weight)
