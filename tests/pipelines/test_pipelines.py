"""transformers' pipelines on every family: one text, several, batched and streamed, padded on either side."""

import pytest
import torch
from datasets import Dataset
from tiny_families import ALBERT, ELMO, FAMILIES, XLNET, config_of, model_class, tokenizer_of
from transformers import GPT2Config, GPT2LMHeadModel, TextGenerationPipeline, pipeline
from transformers.pipelines.pt_utils import KeyDataset

from hf_lineage import LineageXLNetTextGenerationPipeline

# of different lengths, so that batches are padded
TEXTS = ["the cat sat on the mat .", "a good film", "x", "not bad , not good : it was in a film"]
LONG = " ".join(["the cat was not on the mat ."] * 12)  # more than the tokenizers' 32 tokens
LABELS = {"id2label": {0: "O", 1: "B-ANIMAL", 2: "B-PLACE"}, "label2id": {"O": 0, "B-ANIMAL": 1, "B-PLACE": 2}}
HEADS = {
    "feature-extraction": "Model",
    "text-classification": "ForSequenceClassification",
    "zero-shot-classification": "ForSequenceClassification",
    "token-classification": "ForTokenClassification",
    "fill-mask": "ForMaskedLM",
    "text-generation": "ForCausalLM",
}
EXACT = {"atol": 1e-5, "rtol": 0}


@pytest.fixture
def piped(tmp_path):
    """Saves a model with weights that are far apart and its tokenizer, and loads them as a pipeline."""

    def load(task: str, family: str, padding_side: str = "right", **fields):
        torch.manual_seed(0)
        model = model_class(family, HEADS[task])(config_of(family, **fields)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:  # biases would make every answer the same
                    parameter.normal_(0, 0.5)
        model.save_pretrained(tmp_path)
        tokenizer_of(family, padding_side).save_pretrained(tmp_path)
        return pipeline(task, model=str(tmp_path)), model

    return load


def encoded(family: str, *texts: str, **settings) -> dict[str, torch.Tensor]:
    return dict(tokenizer_of(family)(*texts, return_tensors="pt", **settings))


def every_way(pipe, texts: list, **settings) -> list[list]:
    """What a pipeline gives for some texts: one by one, at once, in batches, from a generator and from a dataset."""
    column = KeyDataset(Dataset.from_dict({"text": texts}), "text")
    return [
        [pipe(text, **settings) for text in texts],
        pipe(texts, **settings),
        pipe(texts, batch_size=3, **settings),
        list(pipe((text for text in texts), batch_size=2, **settings)),
        list(pipe(column, batch_size=len(texts), **settings)),
    ]


def scores_by_label(entries: list[dict]) -> torch.Tensor:
    return torch.tensor([entry["score"] for entry in sorted(entries, key=lambda entry: entry["label"])])


@pytest.mark.parametrize("padding_side", ["right", "left"])
@pytest.mark.parametrize("family", FAMILIES)
def test_feature_extraction(family, padding_side, piped):
    pipe, model = piped("feature-extraction", family, padding_side)
    with torch.no_grad():
        expected = [model(**encoded(family, text)).last_hidden_state[0] for text in TEXTS]
    for found in every_way(pipe, TEXTS):
        for vectors, wanted in zip(found, expected, strict=True):
            # a row of a batch comes with its padding
            vectors = torch.tensor(vectors)[0]
            real = vectors[: len(wanted)] if padding_side == "right" else vectors[-len(wanted) :]
            torch.testing.assert_close(real, wanted, **EXACT)
    cut = torch.tensor(pipe(LONG, truncation=True))[0]
    with torch.no_grad():
        wanted = model(**encoded(family, LONG, truncation=True)).last_hidden_state[0]
    assert len(cut) == 32
    torch.testing.assert_close(cut, wanted, **EXACT)


@pytest.mark.parametrize("padding_side", ["right", "left"])
@pytest.mark.parametrize("family", FAMILIES)
def test_text_classification(family, padding_side, piped):
    pipe, model = piped("text-classification", family, padding_side, num_labels=3)
    with torch.no_grad():
        expected = [model(**encoded(family, text)).logits[0].softmax(-1) for text in TEXTS]
    for found in every_way(pipe, TEXTS, top_k=None):
        for entries, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(scores_by_label(entries), wanted, **EXACT)
    with torch.no_grad():
        wanted = model(**encoded(family, LONG, truncation=True)).logits[0].softmax(-1)
    for cut in (
        pipe([LONG, "x"], batch_size=2, truncation=True, top_k=None)[:1],
        [pipe(LONG, truncation=True, top_k=3)],
    ):
        torch.testing.assert_close(scores_by_label(cut[0]), wanted, **EXACT)


@pytest.mark.parametrize("padding_side", ["right", "left"])
@pytest.mark.parametrize("family", FAMILIES)
def test_text_classification_of_pairs(family, padding_side, piped):
    pipe, model = piped("text-classification", family, padding_side, num_labels=2)
    pairs = [{"text": text, "text_pair": other} for text, other in zip(TEXTS, reversed(TEXTS), strict=True)]
    with torch.no_grad():
        expected = [model(**encoded(family, *pair.values())).logits[0].softmax(-1) for pair in pairs]
    ways = [[pipe([pair], top_k=None)[0] for pair in pairs], pipe(pairs, batch_size=3, top_k=None)]
    ways.append(list(pipe((pair for pair in pairs), batch_size=4, top_k=None)))
    for found in ways:
        for entries, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(scores_by_label(entries), wanted, **EXACT)


@pytest.mark.parametrize("padding_side", ["right", "left"])
@pytest.mark.parametrize("family", FAMILIES)
def test_zero_shot_classification(family, padding_side, piped):
    names = {"id2label": {0: "entailment", 1: "contradiction"}, "label2id": {"entailment": 0, "contradiction": 1}}
    pipe, model = piped("zero-shot-classification", family, padding_side, **names)
    labels = ["animals", "the film"]
    with torch.no_grad():
        logits = [model(**encoded(family, TEXTS[0], f"This is {label}.")).logits[0, 0] for label in labels]
    expected = torch.stack(logits).softmax(0)
    for batch_size in (1, 2):
        found = pipe(TEXTS[0], candidate_labels=labels, hypothesis_template="This is {}.", batch_size=batch_size)
        scores = dict(zip(found["labels"], found["scores"], strict=True))
        torch.testing.assert_close(torch.tensor([scores[label] for label in labels]), expected, **EXACT)


@pytest.mark.parametrize("padding_side", ["right", "left"])
@pytest.mark.parametrize("family", FAMILIES)
def test_token_classification(family, padding_side, piped):
    pipe, model = piped("token-classification", family, padding_side, **LABELS)
    tokenizer = tokenizer_of(family)

    def expected(text: str, **settings) -> list[dict]:
        inputs = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, **settings)
        with torch.no_grad():
            probabilities = model(**encoded(family, text, **settings)).logits[0].softmax(-1)
        scores, classes = probabilities.max(-1)
        return [
            {"entity": LABELS["id2label"][int(classes[i])], "score": float(scores[i]), "start": start, "end": end}
            for i, (start, end) in enumerate(inputs["offset_mapping"])
            if not inputs["special_tokens_mask"][i]
        ]

    def check(found: list[dict], wanted: list[dict]) -> None:
        assert len(found) == len(wanted)
        for entity, other in zip(found, wanted, strict=True):
            assert {name: entity[name] for name in ("entity", "start", "end")} == {
                name: other[name] for name in ("entity", "start", "end")
            }
            assert entity["score"] == pytest.approx(other["score"], abs=1e-5)

    for found in every_way(pipe, TEXTS, ignore_labels=[]):
        for entities, text in zip(found, TEXTS, strict=True):
            check(entities, expected(text))
    # this pipeline always cuts to the tokenizer's length
    check(pipe(LONG, ignore_labels=[]), expected(LONG, truncation=True))
    settings = {"aggregation_strategy": "simple", "ignore_labels": []}
    grouped = [pipe(text, **settings) for text in TEXTS]
    assert all(grouped)
    for groups, alone in zip(pipe(TEXTS, batch_size=4, **settings), grouped, strict=True):
        places = [
            [(group["entity_group"], group["start"], group["end"]) for group in each] for each in (groups, alone)
        ]
        assert places[0] == places[1]
        assert [group["score"] for group in groups] == pytest.approx([group["score"] for group in alone], abs=1e-5)


@pytest.mark.parametrize("padding_side", ["right", "left"])
def test_fill_mask(padding_side, piped):
    pipe, model = piped("fill-mask", ALBERT, padding_side)
    tokenizer = tokenizer_of(ALBERT)
    texts = [
        f"{tokenizer.mask_token} cat",
        f"the cat {tokenizer.mask_token} on the mat .",
        f"a {tokenizer.mask_token}",
    ]

    def expected(text: str, **settings) -> dict[int, float]:
        inputs = encoded(ALBERT, text, **settings)
        (place,) = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero().flatten().tolist()
        with torch.no_grad():
            scores, tokens = model(**inputs).logits[0, place].softmax(-1).topk(4)
        return dict(zip(tokens.tolist(), scores.tolist(), strict=True))

    for found in every_way(pipe, texts, top_k=4):
        for guesses, text in zip(found, texts, strict=True):
            assert {guess["token"]: guess["score"] for guess in guesses} == pytest.approx(expected(text), abs=1e-5)
    long = f"{tokenizer.mask_token} {LONG}"
    (best, *_) = pipe(long, tokenizer_kwargs={"truncation": True})
    assert best["score"] == pytest.approx(max(expected(long, truncation=True).values()), abs=1e-5)
    assert best["sequence"].startswith(tokenizer.decode(best["token"]).strip())
    (guess,) = pipe(texts[0], targets=["▁film"])
    assert guess["token_str"].strip() == "film"


def test_text_generation(piped):
    pipe, model = piped("text-generation", XLNET, "left")
    tokenizer = tokenizer_of(XLNET, "left")
    settings = {"max_new_tokens": 6, "do_sample": False}
    expected = []
    for text in TEXTS:
        inputs = tokenizer(text, add_special_tokens=False, return_tensors="pt")
        (ids,) = model.generate(**inputs, **settings, pad_token_id=tokenizer.pad_token_id)
        expected.append(ids[inputs["input_ids"].shape[1] :].tolist())
    assert len({*map(tuple, expected)}) == len(TEXTS)
    for found in every_way(pipe, TEXTS, return_full_text=False, **settings):
        for (entry,), wanted in zip(found, expected, strict=True):
            assert entry["generated_text"] == tokenizer.decode(wanted, skip_special_tokens=True)
    (entry,) = pipe(TEXTS[0], **settings)
    assert entry["generated_text"].startswith("the cat sat on the mat")
    (entry,) = pipe(TEXTS[0], return_tensors=True, add_special_tokens=True, **settings)
    prompt = tokenizer(TEXTS[0])["input_ids"]
    assert entry["generated_token_ids"][: len(prompt)] == prompt
    assert prompt[-2:] == [tokenizer.sep_token_id, tokenizer.cls_token_id]
    (entry,) = pipe(LONG, truncation=True, return_tensors=True, **settings)
    assert len(entry["generated_token_ids"]) == 32 + settings["max_new_tokens"]


def test_text_that_is_too_long_for_the_model_says_what_to_do(piped):
    pipe, _ = piped("text-classification", ALBERT)
    with pytest.raises(
        ValueError, match=r"max_position_embeddings=64 tokens, got 110: cut the text \(truncation=True\)"
    ):
        pipe(LONG)


@pytest.mark.parametrize("family", [ELMO, XLNET])
def test_text_longer_than_the_tokenizer_asks_for_is_read_whole(family, piped):
    pipe, model = piped("text-classification", family)
    with torch.no_grad():
        wanted = model(**encoded(family, LONG)).logits[0].softmax(-1)
    torch.testing.assert_close(scores_by_label(pipe(LONG, top_k=None)), wanted, **EXACT)


def test_text_generation_of_another_model_is_as_it_was():
    torch.manual_seed(0)
    tokenizer = tokenizer_of(ALBERT, "left")
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": len(tokenizer), "initializer_range": 1.0}
    model = GPT2LMHeadModel(GPT2Config(bos_token_id=2, eos_token_id=3, pad_token_id=0, **sizes)).eval()
    ours = pipeline("text-generation", model=model, tokenizer=tokenizer)
    plain = TextGenerationPipeline(model=model, tokenizer=tokenizer)
    assert type(ours) is LineageXLNetTextGenerationPipeline
    calls = [{}, {"add_special_tokens": False}, {"add_special_tokens": True}, {"batch_size": 2, "prefix": "a film"}]
    for call in calls:
        settings = {"max_new_tokens": 4, "do_sample": False, "return_tensors": True, **call}
        assert ours(TEXTS, **settings) == plain(TEXTS, **settings)
