import json
import logging

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
)

from hf_lineage import ElmoForPreTraining, ElmoForSequenceClassification, ElmoForTokenClassification, ElmoTokenizer

TEXTS = [f"{'good' if number % 2 else 'bad'} {'very ' * (number % 5)}film ." for number in range(24)]
LABELS = [number % 2 for number in range(24)]


@pytest.fixture
def arguments(tmp_path):
    def make(**options):
        defaults = {
            "per_device_train_batch_size": 4,
            "learning_rate": 0.02,
            "lr_scheduler_type": "constant",
            "max_steps": 24,
            "use_cpu": True,
            "disable_tqdm": True,
            "save_strategy": "no",
            "seed": 0,
        }
        return TrainingArguments(str(tmp_path / "runs"), **{**defaults, **options})

    return make


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def sentences(tokenizer, pairs=False):
    data = Dataset.from_dict({"text": TEXTS, "other": TEXTS[::-1], "labels": LABELS})

    def encode(batch):
        return tokenizer(batch["text"], batch["other"] if pairs else None)

    return data.map(encode, batched=True, remove_columns=["text", "other"])


@pytest.mark.parametrize("sampling", ["random", "group_by_length"])
def test_fine_tuning_a_sentence_classifier(sampling, tiny, arguments, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    model, tokenizer = ElmoForSequenceClassification(tiny(dropout=0.1)), ElmoTokenizer()
    # the first is set by the first loss that is computed, the second by every Trainer
    changing = {"problem_type", "use_cache"}
    before = {name: value for name, value in model.config.to_dict().items() if name not in changing}
    weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    data = sentences(tokenizer)
    trainer = Trainer(
        model,
        arguments(train_sampling_strategy=sampling, include_num_input_tokens_seen="non_padding"),
        train_dataset=data,
        eval_dataset=data,
        processing_class=tokenizer,
        compute_metrics=accuracy,
    )
    first = trainer.evaluate()
    trainer.train()
    last = trainer.evaluate()
    assert last["eval_loss"] < first["eval_loss"] / 2
    assert last["eval_accuracy"] == 1.0
    # 24 steps of 4 are four passes over the 24 texts
    assert trainer.state.num_input_tokens_seen == 4 * sum(len(ids) for ids in data["input_ids"])
    moved = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, weights[name])}
    assert moved == set(weights)
    assert {name: value for name, value in model.config.to_dict().items() if name not in changing} == before
    assert "were aligned" not in caplog.text

    trainer.save_model(tmp_path / "saved")
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert type(loaded) is ElmoForSequenceClassification
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in model.state_dict().items())
    saved = json.loads((tmp_path / "saved/config.json").read_text())
    assert (saved["bos_token_id"], saved["eos_token_id"]) == (0, 1)
    inputs = AutoTokenizer.from_pretrained(tmp_path / "saved")(TEXTS[:5], padding=True, return_tensors="pt")
    with torch.no_grad():
        assert torch.equal(loaded(**inputs).logits, model.eval()(**inputs).logits)


@pytest.mark.parametrize("pair_encoding", ["joint", "separate"])
def test_fine_tuning_on_pairs(pair_encoding, tiny, arguments):
    tokenizer = ElmoTokenizer(padding_side="left")
    data = sentences(tokenizer, pairs=True)
    assert any(map(any, data["token_type_ids"]))
    model = ElmoForSequenceClassification(tiny(pair_encoding=pair_encoding, classifier_pooling="last"))
    trainer = Trainer(
        model, arguments(), train_dataset=data, eval_dataset=data, processing_class=tokenizer, compute_metrics=accuracy
    )
    trainer.train()
    assert trainer.evaluate()["eval_accuracy"] == 1.0


def test_fine_tuning_a_token_classifier(tiny, arguments, tmp_path):
    tokenizer = ElmoTokenizer()
    words = [text.split() for text in TEXTS]
    labels = [[{"good": 1, "bad": 2}.get(word, 0) for word in sentence] for sentence in words]
    data = Dataset.from_dict({"words": words, "labels": labels}).map(
        lambda batch: tokenizer(batch["words"], is_split_into_words=True), batched=True, remove_columns=["words"]
    )

    def metrics(prediction):
        real = prediction.label_ids != -100
        assert real.sum() == sum(map(len, words))
        return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids)[real].mean())}

    model = ElmoForTokenClassification(tiny(id2label={0: "O", 1: "GOOD", 2: "BAD"}))
    trainer = Trainer(
        model,
        arguments(train_sampling_strategy="group_by_length", eval_strategy="steps", eval_steps=6),
        train_dataset=data,
        eval_dataset=data,
        processing_class=tokenizer,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        compute_metrics=metrics,
    )
    trainer.train()
    evaluations = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    assert len(evaluations) == 4
    assert evaluations[-1]["eval_accuracy"] == 1.0
    trainer.save_model(tmp_path / "saved")
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path / "saved")
    assert loaded.config.id2label == {0: "O", 1: "GOOD", 2: "BAD"}
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in model.state_dict().items())


def test_a_resumed_run_ends_where_an_unbroken_one_does(tiny, arguments, tmp_path):
    tokenizer = ElmoTokenizer()
    data = sentences(tokenizer)

    def train(folder, max_steps, resume):
        torch.manual_seed(0)
        model = ElmoForSequenceClassification(tiny(dropout=0.2))
        options = arguments(max_steps=max_steps, save_strategy="steps", save_steps=4)
        options.output_dir = str(tmp_path / folder)
        Trainer(model, options, train_dataset=data, processing_class=tokenizer).train(resume_from_checkpoint=resume)
        return model.state_dict()

    whole = train("whole", 8, None)
    train("broken", 4, None)
    resumed = train("broken", 8, True)
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())


def test_predictions_of_the_language_model_under_trainer(tiny, arguments, tmp_path):
    words = ["<S>", "</S>", "<UNK>", "good", "bad", "film", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    tokenizer = ElmoTokenizer(vocab_file=str(tmp_path / "vocab.txt"))
    data = Dataset.from_dict({"text": TEXTS}).map(
        lambda example: {
            **tokenizer(example["text"]),
            "labels": tokenizer.convert_tokens_to_word_ids(tokenizer.tokenize(example["text"])),
        },
        remove_columns=["text"],
    )
    trainer = Trainer(
        ElmoForPreTraining(tiny(vocab_size=len(words))),
        arguments(),
        train_dataset=data,
        eval_dataset=data,
        processing_class=tokenizer,
        data_collator=DataCollatorForTokenClassification(tokenizer),
    )
    first = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert first == pytest.approx(np.log(len(words)), abs=0.5)
    assert trainer.evaluate()["eval_loss"] < first / 2
