import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from hf_lineage import (
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenizer,
    convert_elmo_checkpoint,
)
from hf_lineage.elmo.static_vectors_elmo import load_with_static_vectors
from hf_lineage.elmo.task_features_elmo import ElmoTaskFeatures
from hf_lineage.static_vectors import StaticVectors, read_static_vectors

WORDS = ["the", "paris", "北京", *(f"w{number}" for number in range(300))]
SENTENCES = [["The", "Paris", "unheard", "北京"], ["w299"]]


@pytest.fixture
def vectors():
    values = np.random.default_rng(0).standard_normal((len(WORDS), 5)).astype(np.float32)
    return StaticVectors(WORDS, values, "GloVe text")


@pytest.fixture
def folder(tiny, tmp_path):
    ElmoModel(tiny()).save_pretrained(tmp_path / "elmo")
    ElmoTokenizer().save_pretrained(tmp_path / "elmo")
    return tmp_path / "elmo"


def encoded(tokenizer, **options):
    return tokenizer(SENTENCES, is_split_into_words=True, padding=True, return_tensors="pt", **options)


def test_static_vectors_stand_beside_elmos(folder, vectors, tmp_path):
    model, tokenizer = load_with_static_vectors(ElmoForTokenClassification, folder, vectors, num_labels=3)
    model.save_pretrained(tmp_path / "tagger")
    tokenizer.save_pretrained(tmp_path / "tagger")
    model = AutoModelForTokenClassification.from_pretrained(tmp_path / "tagger").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "tagger")
    inputs = encoded(tokenizer)
    given = []
    model.classifier.register_forward_hook(lambda module, arguments, result: given.append(arguments[0]))
    with torch.no_grad():
        model(**inputs)
        plain = ElmoModel.from_pretrained(folder).eval()(**encoded(ElmoTokenizer())).last_hidden_state
    (features,) = given
    torch.testing.assert_close(features[..., :16], plain, atol=1e-6, rtol=0)
    values = vectors.vectors
    # lower case, as the file has no other; what it does not have is zero, and so is padding
    expected = [[values[0], values[1], np.zeros(5), values[2]], [values[-1], *np.zeros((3, 5))]]
    assert np.array_equal(features[..., 16:].numpy(), np.array(expected, dtype=np.float32))
    assert tokenizer.convert_ids_to_tokens(inputs.input_ids[0].tolist()) == SENTENCES[0]


def test_only_the_mix_and_the_head_learn(folder, vectors):
    model, tokenizer = load_with_static_vectors(
        ElmoForTokenClassification, folder, vectors, num_labels=2, classifier_lstm_size=7
    )
    model.freeze_language_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert model.scalar_mix_weights() == [{"weights": pytest.approx([1 / 3] * 3), "gamma": 1.0}]
    optimizer = torch.optim.Adam([value for value in model.parameters() if value.requires_grad], lr=0.1)
    labels = torch.tensor([[0, 1, 0, 1], [1, -100, -100, -100]])
    inputs = encoded(tokenizer)
    losses = []
    for _ in range(15):
        loss = model(**inputs, labels=labels).loss
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 4
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert {name.split(".")[0] for name in changed} == {"elmo", "features", "classifier"}
    assert all(name.startswith("elmo.scalar_mixes.") for name in changed if name.startswith("elmo"))
    assert "features.static_embedding" not in changed
    (mix,) = model.scalar_mix_weights()
    assert sum(mix["weights"]) == pytest.approx(1)
    assert mix["weights"] != pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_lstm_reads_each_row_to_its_own_end(side, tiny):
    config = tiny(classifier_lstm_size=6)
    features = ElmoTaskFeatures(config).eval()
    rows = [torch.randn(length, 16) for length in (3, 5, 1)]
    padded, mask = torch.randn(3, 6, 16), torch.zeros(3, 6, dtype=torch.long)
    for number, row in enumerate(rows):
        place = slice(6 - len(row), 6) if side == "left" else slice(0, len(row))
        padded[number, place], mask[number, place] = row, 1
    ids = torch.ones(3, 6, 50, dtype=torch.long)
    with torch.no_grad():
        found = features(padded, ids, mask)
        for number, row in enumerate(rows):
            expected, _ = features.lstm(row[None])
            torch.testing.assert_close(found[number][mask[number].bool()], expected[0], atol=1e-6, rtol=0)
    assert not found[mask == 0].any()


@pytest.mark.parametrize("pairs", ["joint", "separate"])
def test_sentences_are_classified(pairs, folder, vectors):
    model, tokenizer = load_with_static_vectors(
        ElmoForSequenceClassification, folder, vectors, num_labels=3, classifier_lstm_size=4, pair_encoding=pairs
    )
    single = encoded(tokenizer)
    inputs = tokenizer(SENTENCES, SENTENCES[::-1], is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.no_grad():
        assert model(**single).logits.shape == model(**inputs).logits.shape == (2, 3)


def test_a_fresh_lstm_is_initialized(folder, vectors):
    model, _ = load_with_static_vectors(ElmoForTokenClassification, folder, vectors, classifier_lstm_size=7)
    for name, parameter in model.features.lstm.named_parameters():
        assert torch.isfinite(parameter).all()
        assert bool(parameter.any()) == name.startswith("weight")
    assert not model.features.static_embedding.requires_grad


def test_what_does_not_go_together_is_refused(folder, vectors, tmp_path):
    with pytest.raises(ValueError, match="classifier_pooling='last'"):
        load_with_static_vectors(ElmoForSequenceClassification, folder, vectors, classifier_pooling="last")
    model, tokenizer = load_with_static_vectors(ElmoForTokenClassification, folder, vectors)
    tokenizer.save_pretrained(tmp_path / "again")
    model.save_pretrained(tmp_path / "again")
    with pytest.raises(ValueError, match="reads words already"):
        load_with_static_vectors(ElmoForTokenClassification, tmp_path / "again", vectors)


def test_real_glove_vectors_beside_a_real_elmo(shared, tmp_path):
    source = shared / "fixtures/elmo/allennlp"
    convert_elmo_checkpoint(source / "options.json", source / "lm_weights.hdf5").save_pretrained(tmp_path / "elmo")
    ElmoTokenizer().save_pretrained(tmp_path / "elmo")
    vectors = read_static_vectors(shared / "fixtures/vectors/glove.6B.100d.sample.txt.gz")
    model, tokenizer = load_with_static_vectors(ElmoForTokenClassification, tmp_path / "elmo", vectors, num_labels=2)
    assert model.classifier.in_features == 32 + 100
    assert model(**encoded(tokenizer)).logits.shape == (2, 4, 2)
