import random
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.features.language_model import LayerCache, load_model
from benchmarks.features.tagging import HeadSettings, best_epoch, predict, shuffled_batches, tag_logits, train_tagger
from benchmarks.features.tagging_data import SPLITS, TASKS, baselines, load_tagging_data, tagging_metrics
from hf_lineage import ElmoForTokenClassification

SETTINGS = HeadSettings(epochs=12, batch_size=8, learning_rate=2e-2, lstm_size=8, dropout=0.1, classifier_dropout=0.2)


def _tagger(model_folder: str, num_labels: int):
    return load_model(
        ElmoForTokenClassification, model_folder, False, 1, num_labels=num_labels, **SETTINGS.config_fields
    )


def test_logits_from_the_cache_are_those_of_the_model(model_folder, pos_folder):
    data = load_tagging_data(TASKS["pos"], pos_folder)
    tagger, tokenizer = _tagger(model_folder, 4)
    tagger.eval()
    sentences = data.splits["test"].words
    cache = LayerCache.of(tagger.elmo, tokenizer, sentences)
    inputs = tokenizer(sentences[:3], is_split_into_words=True, return_tensors="pt", padding=True)
    with torch.no_grad():
        torch.nn.init.normal_(tagger.elmo.scalar_mixes[0].weights)
        expected = tagger(**inputs).logits
        vectors, mask = cache.batch([0, 1, 2])
        logits = tag_logits(tagger, vectors, mask)
    assert mask.equal(inputs["attention_mask"])
    torch.testing.assert_close(logits[mask.bool()], expected[mask.bool()], atol=1e-6, rtol=1e-5)
    flat = predict(tagger, cache)
    assert [len(tags) for tags in flat] == [len(words) for words in sentences]
    assert flat[:3] == [row[: len(tags)].tolist() for row, tags in zip(logits.argmax(-1), flat[:3], strict=True)]


def test_training_learns_repeatably_and_leaves_the_language_model_alone(model_folder, pos_folder):
    task, data = TASKS["pos"], load_tagging_data(TASKS["pos"], pos_folder)
    records = []
    for _ in range(2):
        tagger, tokenizer = _tagger(model_folder, 4)
        before = {name: weight.clone() for name, weight in tagger.state_dict().items()}
        caches = {split: LayerCache.of(tagger.elmo, tokenizer, data.splits[split].words) for split in SPLITS}
        statistics = caches["train"].statistics()
        for cache in caches.values():
            cache.standardize(*statistics)
        records.append(train_tagger(tagger, caches, task, data, SETTINGS, seed=3))
        changed = {name for name, weight in tagger.state_dict().items() if not torch.equal(weight, before[name])}
        assert not any("encoder." in name for name in changed)
        assert {"elmo.scalar_mixes.0.weights", "features.lstm.weight_hh_l0", "classifier.weight"} <= changed
    first, second = ([{**record, "seconds": 0} for record in some] for some in records)
    assert first == second
    assert [record["epoch"] for record in first] == list(range(1, 13))
    assert best_epoch(task, first)["validation"]["accuracy"] > 0.9
    assert first[-1]["train_loss"] < first[0]["train_loss"]
    assert sum(first[-1]["scalar_mix"]["weights"]) == pytest.approx(1)


def test_best_epoch_is_the_first_of_the_best_on_validation():
    records = [{"validation": {"f1": f1}, "test": {"f1": 1 - f1}} for f1 in (0.2, 0.6, 0.6, 0.1)]
    assert best_epoch(TASKS["ner"], records) is records[1]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=200), st.integers(1, 8))
def test_batches_hold_every_sentence_once(lengths, batch_size):
    batches = list(shuffled_batches(lengths, batch_size, random.Random(0)))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= batch_size for batch in batches)


def test_baselines(pos_folder, ner_folder):
    found = baselines(TASKS["pos"], load_tagging_data(TASKS["pos"], pos_folder))
    test = load_tagging_data(TASKS["pos"], pos_folder).splits["test"]
    total = sum(map(len, test.words))
    assert found["most_frequent_tag_of_word"]["validation"]["accuracy"] == 1
    assert found["most_frequent_tag_of_word"]["test"]["accuracy"] == pytest.approx(1 - 1 / total)
    assert found["majority_tag"]["validation"]["accuracy"] == pytest.approx(1 / 3)
    entities = baselines(TASKS["ner"], load_tagging_data(TASKS["ner"], ner_folder))
    assert entities["majority_tag"]["test"] == {"f1": 0, "precision": 0, "recall": 0}
    assert entities["most_frequent_tag_of_word"]["test"]["f1"] == 1


def test_entities_count_as_a_whole(ner_folder):
    data = load_tagging_data(TASKS["ner"], ner_folder)
    predicted = [[0, 1, 2, 0, 0]] * 3 + [[0, 1, 0, 0, 0]] * 3
    assert tagging_metrics(TASKS["ner"], data, "test", predicted) == {"f1": 0.5, "precision": 0.5, "recall": 0.5}


def test_data_that_does_not_fit_is_refused(pos_folder, ner_folder, tmp_path):
    with pytest.raises(ValueError, match="must have the columns tokens and upos"):
        load_tagging_data(TASKS["pos"], ner_folder)
    with pytest.raises(ValueError, match=r"one such folder in it; .* has 0"):
        load_tagging_data(TASKS["pos"], tmp_path)
    for split in SPLITS:
        (tmp_path / f"{split}.parquet").write_bytes(Path(pos_folder, "grammar", f"{split}.parquet").read_bytes())
    rows = Dataset.from_parquet(str(tmp_path / "test.parquet"), keep_in_memory=True)
    rows.map(lambda row, number: {"upos": row["upos"][number == 2 :]}, with_indices=True).to_parquet(
        tmp_path / "test.parquet"
    )
    with pytest.raises(ValueError, match=r"test\.parquet, row 2: 9 words and 8 tags"):
        load_tagging_data(TASKS["pos"], tmp_path)
