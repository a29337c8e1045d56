import logging

import pytest
import torch
from datasets import Dataset
from transformers import BertConfig, BertForTokenClassification, BertTokenizer, TokenClassificationPipeline, pipeline
from transformers.pipelines.pt_utils import KeyDataset

from hf_lineage import (
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenClassificationPipeline,
    ElmoTokenizer,
)

TEXTS = ["John's house isn't far.", "x", "北京 is in the U.S., no?", "a b c d e f g h"]
LABELS = {"id2label": {0: "O", 1: "B-PER", 2: "I-PER"}}


@pytest.fixture
def saved(tiny, tmp_path):
    """Saves a model with its tokenizer, its outputs spread far enough apart to tell them from each other."""

    def save(model_class, fields=None, **tokenizer_fields):
        torch.manual_seed(0)
        model = model_class(tiny(**(fields or {}))).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "classifier" in name:
                    parameter.normal_() if parameter.dim() == 2 else parameter.zero_()
        model.save_pretrained(tmp_path)
        ElmoTokenizer(**tokenizer_fields).save_pretrained(tmp_path)
        return str(tmp_path), model

    return save


def token_pipeline(saved, fields=None, **tokenizer_fields):
    folder, model = saved(ElmoForTokenClassification, {**LABELS, **(fields or {})}, **tokenizer_fields)
    return pipeline("token-classification", model=folder, ignore_labels=[]), model


def same(found, expected):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(same(*each) for each in zip(found, expected, strict=True))
    assert found.keys() == expected.keys()
    plain = {name for name in expected if name != "score"}
    return {name: found[name] for name in plain} == {name: expected[name] for name in plain} and found[
        "score"
    ] == pytest.approx(expected["score"], abs=1e-5)


def test_feature_extraction(saved):
    folder, model = saved(ElmoModel)
    extract = pipeline("feature-extraction", model=folder)
    found = [torch.tensor(vectors)[0] for vectors in extract(TEXTS, batch_size=1)]
    tokenizer = ElmoTokenizer()
    for text, vectors in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            expected = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        assert len(expected) == len(tokenizer.tokenize(text))
        torch.testing.assert_close(vectors, expected, atol=1e-6, rtol=1e-5)
    tensor = extract(TEXTS[0], return_tensors=True)
    torch.testing.assert_close(tensor[0], found[0])


def test_text_classification_single_batched_and_streamed(saved):
    folder, model = saved(ElmoForSequenceClassification, {"num_labels": 3})
    classify = pipeline("text-classification", model=folder)
    tokenizer = ElmoTokenizer()
    single = [classify(text, top_k=None) for text in TEXTS]
    for text, scores in zip(TEXTS, single, strict=True):
        with torch.no_grad():
            expected = model(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0]
        for entry in scores:
            assert entry["score"] == pytest.approx(expected[int(entry["label"][-1])].item(), abs=1e-6)
    assert same(classify(TEXTS, top_k=None), single)
    assert same(classify(TEXTS, batch_size=3, top_k=None), single)
    assert same(list(classify((text for text in TEXTS), batch_size=2, top_k=None)), single)
    data = Dataset.from_dict({"text": TEXTS})
    assert same(list(classify(KeyDataset(data, "text"), batch_size=4, top_k=None)), single)
    classify.tokenizer.padding_side = "left"
    assert same(classify(TEXTS, batch_size=4, top_k=None), single)


@pytest.mark.parametrize("pair_encoding", ["joint", "separate"])
def test_text_classification_of_pairs(pair_encoding, saved):
    folder, model = saved(ElmoForSequenceClassification, {"num_labels": 2, "pair_encoding": pair_encoding})
    classify = pipeline("text-classification", model=folder)
    pairs = [{"text": text, "text_pair": other} for text, other in zip(TEXTS, reversed(TEXTS), strict=True)]
    single = [classify(pair) for pair in pairs]
    for pair, entry in zip(pairs, single, strict=True):
        with torch.no_grad():
            logits = model(**ElmoTokenizer()(pair["text"], pair["text_pair"], return_tensors="pt")).logits
        assert entry["score"] == pytest.approx(logits.softmax(-1).max().item(), abs=1e-6)
    assert same(classify(pairs, batch_size=3), single)
    alone = [classify(pair["text"]) for pair in pairs]
    assert not same(single, alone)


@pytest.mark.parametrize("task", ["text-classification", "token-classification", "feature-extraction"])
def test_an_empty_text_is_read_alone_as_it_is_in_a_batch(task, saved):
    classes = {
        "text-classification": ElmoForSequenceClassification,
        "token-classification": ElmoForTokenClassification,
        "feature-extraction": ElmoModel,
    }
    folder, _ = saved(classes[task])
    pipe = pipeline(task, model=folder)
    if task == "feature-extraction":
        # a batch has at least one token, which is padding here
        assert torch.tensor(pipe("")).abs().sum() == 0
    elif task == "token-classification":
        assert pipe("") == pipe(["", "a"], batch_size=2)[0] == []
    else:
        assert same(pipe(""), [pipe(["", "a"], batch_size=2)[0]])


@pytest.mark.parametrize("boundaries", ["of the model", "of the tokenizer"])
def test_token_classification(boundaries, saved):
    by_tokenizer = boundaries == "of the tokenizer"
    tag, model = token_pipeline(
        saved, {"add_sentence_boundaries": not by_tokenizer}, add_sentence_boundaries=by_tokenizer
    )
    assert type(tag) is ElmoTokenClassificationPipeline
    tokenizer = ElmoTokenizer(add_sentence_boundaries=by_tokenizer)
    single = [tag(text) for text in TEXTS]
    for text, entities in zip(TEXTS, single, strict=True):
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            scores = model(**inputs).logits.softmax(-1)[0]
        offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        words = [index for index, word in enumerate(inputs.word_ids()) if word is not None]
        assert [entity["index"] for entity in entities] == words
        assert [entity["word"] for entity in entities] == ElmoTokenizer().tokenize(text)
        assert [(entity["start"], entity["end"]) for entity in entities] == [offsets[index] for index in words]
        for entity in entities:
            score, label = scores[entity["index"]].max(0)
            assert entity["entity"] == LABELS["id2label"][label.item()]
            assert entity["score"] == pytest.approx(score.item(), abs=1e-6)
    assert len({entity["entity"] for entities in single for entity in entities}) > 1
    assert same(tag(TEXTS), single)
    assert same(tag(TEXTS, batch_size=3), single)
    assert same(list(tag((text for text in TEXTS), batch_size=2)), single)


def test_token_classification_padded_on_the_left(saved):
    tag, _ = token_pipeline(saved, padding_side="left")
    single = [tag(text) for text in TEXTS]
    batched = tag(TEXTS, batch_size=4)
    for one, other in zip(batched, single, strict=True):
        assert [(e["word"], e["start"], e["end"]) for e in one] == [(e["word"], e["start"], e["end"]) for e in other]
        assert [e["entity"] for e in one] == [e["entity"] for e in other]


@pytest.mark.parametrize("strategy", ["simple", "first", "average", "max"])
def test_aggregation_groups_neighbours_with_one_label(strategy, saved):
    tag, _ = token_pipeline(saved)
    for text in TEXTS:
        plain, grouped = tag(text), tag(text, aggregation_strategy=strategy)
        assert tag(text) == plain  # a strategy given to one call is not kept
        for entity in grouped:
            assert "".join(entity["word"].split()) == "".join(text[entity["start"] : entity["end"]].split())
        assert [entity["start"] for entity in grouped][:1] == [entity["start"] for entity in plain][:1]
        assert grouped[-1]["end"] == plain[-1]["end"]
        for entity in grouped:
            members = [word for word in plain if entity["start"] <= word["start"] and word["end"] <= entity["end"]]
            assert {word["entity"].split("-")[-1] for word in members} == {entity["entity_group"]}
            assert entity["score"] == pytest.approx(sum(word["score"] for word in members) / len(members), abs=1e-6)


def test_an_unknown_aggregation_strategy_is_refused(saved):
    tag, _ = token_pipeline(saved)
    with pytest.raises(ValueError, match="frist is not a valid AggregationStrategy"):
        tag("a b", aggregation_strategy="frist")


def test_lists_of_words(saved):
    tag, model = token_pipeline(saved)
    sentences = [["New York", "isn't", "far."], ["x"]]
    found = tag(sentences, is_split_into_words=True)
    assert [[entity["word"] for entity in entities] for entities in found] == sentences
    assert [(entity["start"], entity["end"]) for entity in found[0]] == [(0, 8), (9, 14), (15, 19)]
    assert same(tag(sentences, is_split_into_words=True, batch_size=2), found)
    assert same(tag(sentences[0], is_split_into_words=True), found[:1])
    inputs = ElmoTokenizer()(sentences[0], is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        scores = model(**inputs).logits.softmax(-1)[0].amax(-1)
    assert [entity["score"] for entity in found[0]] == pytest.approx(scores.tolist(), abs=1e-6)
    delimited = tag(sentences[:1], is_split_into_words=True, delimiter="--")
    assert [(entity["start"], entity["end"]) for entity in delimited[0]] == [(0, 8), (10, 15), (17, 21)]


def test_a_pipeline_of_another_model_is_as_it_was(tmp_path):
    pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] jo ##hn ' s house is far . a b".split()
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        initializer_range=1.0,
        **LABELS,
    )
    model, tokenizer = BertForTokenClassification(config).eval(), BertTokenizer(str(tmp_path / "vocab.txt"))
    ours = pipeline("token-classification", model=model, tokenizer=tokenizer)
    plain = TokenClassificationPipeline(model=model, tokenizer=tokenizer)
    texts = ["john's house is far.", "b a jo"]
    calls = [{}, {"batch_size": 2}, {"ignore_labels": []}, {"stride": 2, "aggregation_strategy": "simple"}]
    calls += [{"aggregation_strategy": strategy} for strategy in ("none", "simple", "first", "average", "max")]
    model.config.max_position_embeddings = tokenizer.model_max_length = 16
    for call in calls:
        assert ours(texts, **call) == plain(texts, **call), call
        assert ours(texts[0], **call) == plain(texts[0], **call), call
    words = [text.split() for text in texts]
    assert ours(words, is_split_into_words=True) == plain(words, is_split_into_words=True)
    assert any(ours(texts))


def test_pipelines_warn_of_nothing(saved, recwarn, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    tag, _ = token_pipeline(saved)
    tag(TEXTS, batch_size=2, aggregation_strategy="first")
    tag([["a", "b"]], is_split_into_words=True)
    assert [record.getMessage() for record in caplog.records] == []
    assert [str(warning.message) for warning in recwarn] == []
