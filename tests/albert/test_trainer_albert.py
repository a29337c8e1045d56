import pytest
import torch
from datasets import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithFlattening,
    Trainer,
    TrainingArguments,
)

from hf_lineage import (
    LineageAlbertForMaskedLM,
    LineageAlbertForPreTraining,
    LineageAlbertForSequenceClassification,
    LineageAlbertForTokenClassification,
)

TEXTS = [f"{'good' if number % 2 else 'bad'} {'very ' * (number % 5)}film ." for number in range(24)]
LABELS = [number % 2 for number in range(24)]


@pytest.fixture
def arguments(tmp_path):
    def make(**options):
        defaults = {
            "per_device_train_batch_size": 4,
            "learning_rate": 0.01,
            "lr_scheduler_type": "constant",
            "max_steps": 30,
            "use_cpu": True,
            "disable_tqdm": True,
            "save_strategy": "no",
            "seed": 0,
        }
        return TrainingArguments(str(tmp_path / "runs"), **{**defaults, **options})

    return make


def as_tuple(predictions):
    return predictions if isinstance(predictions, tuple) else (predictions,)


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


@pytest.fixture(scope="module")
def sentences(tokenizer):
    data = Dataset.from_dict({"text": TEXTS, "labels": LABELS})
    return data.map(lambda batch: tokenizer(batch["text"]), batched=True, remove_columns=["text"])


@pytest.fixture(scope="module")
def masked(tokenizer):
    """Rows of different lengths and numbers of predicted tokens."""
    ids = [tokenizer(text)["input_ids"] for text in TEXTS[:8]]
    labels = [
        [token if 0 < place <= number % 4 + (number == 5) * 3 else -100 for place, token in enumerate(row)]
        for number, row in enumerate(ids)
    ]
    assert len({sum(label != -100 for label in row) for row in labels}) > 3
    return Dataset.from_dict({"input_ids": ids, "labels": labels})


@pytest.mark.parametrize(
    "fields", [{}, {"share_parameters": "none", "padding_free": True}, {"layer_norm_position": "pre"}], ids=str
)
def test_fine_tuning_a_sentence_classifier(fields, tiny, tokenizer, sentences, arguments, tmp_path):
    model = LineageAlbertForSequenceClassification(tiny(hidden_dropout_prob=0.05, initializer_range=0.1, **fields))
    weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    trainer = Trainer(
        model,
        arguments(),
        train_dataset=sentences,
        eval_dataset=sentences,
        processing_class=tokenizer,
        compute_metrics=accuracy,
    )
    first = trainer.evaluate()
    trainer.train()
    last = trainer.evaluate()
    assert last["eval_loss"] < first["eval_loss"] / 2
    assert last["eval_accuracy"] == 1.0
    moved = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, weights[name])}
    assert moved == set(weights)

    trainer.save_model(tmp_path / "saved")
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert type(loaded) is LineageAlbertForSequenceClassification
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in model.state_dict().items())
    inputs = AutoTokenizer.from_pretrained(tmp_path / "saved")(TEXTS[:5], padding=True, return_tensors="pt")
    assert "token_type_ids" in inputs
    with torch.no_grad():
        torch.testing.assert_close(loaded(**inputs).logits, model.eval()(**inputs).logits, atol=1e-5, rtol=1e-5)


def test_fine_tuning_a_token_classifier(tiny, tokenizer, arguments, tmp_path):
    encoded = tokenizer(TEXTS)
    classes = {"▁good": 1, "▁bad": 2}
    labels = [
        [-100 if token in (2, 3) else classes.get(tokenizer.convert_ids_to_tokens(token), 0) for token in row]
        for row in encoded["input_ids"]
    ]
    data = Dataset.from_dict({**encoded, "labels": labels})

    def metrics(prediction):
        real = prediction.label_ids != -100
        return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids)[real].mean())}

    model = LineageAlbertForTokenClassification(tiny(id2label={0: "O", 1: "GOOD", 2: "BAD"}))
    trainer = Trainer(
        model,
        arguments(eval_strategy="steps", eval_steps=10),
        train_dataset=data,
        eval_dataset=data,
        processing_class=tokenizer,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        compute_metrics=metrics,
    )
    trainer.train()
    evaluations = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    assert len(evaluations) == 3
    assert evaluations[-1]["eval_accuracy"] == 1.0
    trainer.save_model(tmp_path / "saved")
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path / "saved")
    assert loaded.config.id2label == {0: "O", 1: "GOOD", 2: "BAD"}


def one_step(model, arguments, data, collator, **options):
    """A step of plain gradient descent over all of the data in its order; gives the loss that was logged."""
    trainer = Trainer(
        model,
        arguments(
            max_steps=1,
            logging_steps=1,
            optim="sgd",
            learning_rate=0.5,
            max_grad_norm=0.0,
            train_sampling_strategy="sequential",
            **options,
        ),
        train_dataset=data,
        data_collator=collator,
    )
    trainer.train()
    return next(entry["loss"] for entry in trainer.state.log_history if "loss" in entry)


@pytest.fixture
def twins(tiny, randomize):
    """Masked language models with the same weights."""

    def make(**fields):
        torch.manual_seed(0)
        return randomize(LineageAlbertForMaskedLM(tiny(**fields)))

    return make


def assert_close_weights(found, expected, initial):
    for (name, value), other, before in zip(
        found.named_parameters(), expected.parameters(), initial.parameters(), strict=True
    ):
        torch.testing.assert_close(value, other, atol=1e-6, rtol=1e-4)
        assert not torch.equal(value, before) or name.endswith("key.bias"), name


@pytest.mark.parametrize(("size", "sparse_prediction"), [(1, True), (2, True), (4, False)])
def test_accumulated_batches_are_one_batch(size, sparse_prediction, twins, tokenizer, masked, arguments):
    collator = DataCollatorForTokenClassification(tokenizer)
    whole, parts = twins(), twins(sparse_prediction=sparse_prediction)
    expected = one_step(whole, arguments, masked, collator, per_device_train_batch_size=8)
    found = one_step(
        parts, arguments, masked, collator, per_device_train_batch_size=size, gradient_accumulation_steps=8 // size
    )
    assert found == pytest.approx(expected, abs=2e-4)
    assert_close_weights(parts, whole, twins())


def test_training_on_packed_rows(twins, tokenizer, masked, arguments):
    padded, packed, padding_free = twins(), twins(), twins(padding_free=True)
    collator = DataCollatorForTokenClassification(tokenizer)
    losses = [
        one_step(model, arguments, masked, collate, per_device_train_batch_size=8)
        for model, collate in ((padded, collator), (packed, DataCollatorWithFlattening()), (padding_free, collator))
    ]
    assert losses == pytest.approx([losses[0]] * 3, abs=2e-4)
    for model in (packed, padding_free):
        assert_close_weights(model, padded, twins())


@pytest.mark.filterwarnings("ignore:.*checkpointing:FutureWarning")
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradient_checkpointing(use_reentrant, twins, tokenizer, masked, arguments):
    plain, checkpointed = twins(), twins()
    collator = DataCollatorForTokenClassification(tokenizer)
    options = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": use_reentrant}}
    expected = one_step(plain, arguments, masked, collator, per_device_train_batch_size=8)
    found = one_step(checkpointed, arguments, masked, collator, per_device_train_batch_size=8, **options)
    assert found == expected
    assert all(map(torch.equal, checkpointed.state_dict().values(), plain.state_dict().values()))


@pytest.mark.parametrize(
    ("objective", "label_names"),
    [
        ("sop", ["labels", "sentence_order_label"]),
        ("sop", ["labels"]),
        ("sop", ["sentence_order_label"]),
        ("nsp", ["labels", "next_sentence_label"]),
        ("none", ["labels"]),
    ],
    ids=str,
)
def test_pretraining(objective, label_names, tiny, tokenizer, arguments):
    orders = [number % 2 for number in range(12)]
    pairs = [["good film", "very bad ."][:: -1 if order else 1] for order in orders]
    encoded = tokenizer(*map(list, zip(*pairs, strict=True)))
    columns = dict(encoded)
    for name in label_names:
        columns[name] = orders
    if "labels" in label_names:
        columns["labels"] = [[-100, *row[1:3], *[-100] * (len(row) - 3)] for row in encoded["input_ids"]]
    data = Dataset.from_dict(columns)
    trainer = Trainer(
        LineageAlbertForPreTraining(tiny(sentence_objective=objective, initializer_range=0.1)),
        # Trainer evaluates a loss if it has all labels that it knows of, and takes all that the class has for those
        arguments(label_names=label_names),
        train_dataset=data,
        eval_dataset=data,
        data_collator=lambda rows: {name: torch.tensor([row[name] for row in rows]) for name in rows[0]},
        compute_metrics=lambda prediction: {"shapes": [values.shape for values in as_tuple(prediction.predictions)]},
    )
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_loss"] < before["eval_loss"] / 2
    logits = [(12, len(encoded["input_ids"][0]), 60), (12, 2)]
    assert after["eval_shapes"] == (logits[:1] if objective == "none" else logits)


def test_a_resumed_run_ends_where_an_unbroken_one_does(tiny, tokenizer, sentences, arguments, tmp_path):
    def train(folder, max_steps, resume):
        torch.manual_seed(0)
        model = LineageAlbertForSequenceClassification(tiny(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2))
        options = arguments(max_steps=max_steps, save_strategy="steps", save_steps=4)
        options.output_dir = str(tmp_path / folder)
        Trainer(model, options, train_dataset=sentences, processing_class=tokenizer).train(
            resume_from_checkpoint=resume
        )
        return model.state_dict()

    whole = train("whole", 8, None)
    train("broken", 4, None)
    resumed = train("broken", 8, True)
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())
