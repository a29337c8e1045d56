import json
import math

import pytest
import torch
from pretraining_runs import MODEL, prepare
from transformers import AutoTokenizer, BertConfig, BertForPreTraining

from hf_lineage import LineageAlbertConfig, LineageAlbertForPreTraining
from hf_lineage.pretraining.albert import AlbertArguments, AlbertObjective
from hf_lineage.pretraining.arguments import PretrainingArguments

BERT = {
    "vocab_size": 65,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "initializer_range": 0.3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("data"))


@pytest.fixture
def make_objective(folder):
    def make(own: dict | None = None, **settings) -> AlbertObjective:
        if "model_name_or_path" not in settings:
            settings = {"model_config": json.dumps(MODEL), **settings}
        arguments = PretrainingArguments(
            train_files=[str(folder / "train.txt")],
            tokenizer_name_or_path=str(folder / "tokenizer"),
            output_dir="unused",
            **{"max_steps": 1, "max_length": 32, **settings},
        )
        tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
        return AlbertObjective(arguments, AlbertArguments(**(own or {})), tokenizer)

    return make


def batch(objective: AlbertObjective, sentence_objective: str | None = None, size: int = 24):
    dataset = objective._dataset(
        objective.train_corpus(), sentence_objective or objective.own.sentence_objective, num_shards=1
    )
    examples = [example for example, _ in zip(dataset, range(size), strict=False)]
    return objective.collator()(examples)


@pytest.mark.parametrize("sentence_objective", ["sop", "nsp", "none"])
def test_losses_are_the_models_and_counts_are_their_terms(make_objective, sentence_objective: str):
    objective = make_objective({"sentence_objective": sentence_objective})
    model = objective.create_model().eval()
    inputs = batch(objective)
    losses, carried = objective.losses(model, inputs, None)
    counts = objective.counts(inputs)
    assert carried is None
    assert sum(losses.values()) == model(**inputs).loss
    assert losses.keys() == counts.keys()
    assert len(losses) == (1 if sentence_objective == "none" else 2)
    assert counts["prediction_loss"] == sum(1 for label in inputs["labels"].flatten().tolist() if label != -100)
    if sentence_objective != "none":
        assert counts["sentence_loss"] == 24
    assert objective.num_tokens(inputs) == inputs["input_ids"].ne(objective.tokenizer.pad_token_id).sum()


def test_what_is_minimized_has_the_weighted_sentence_loss(make_objective):
    losses = {"prediction_loss": torch.tensor(2.0), "sentence_loss": torch.tensor(0.5)}
    assert make_objective().total(losses) == 2.5
    assert make_objective({"sentence_loss_weight": 8.0}).total(losses) == 6.0
    assert make_objective({"sentence_loss_weight": 8.0}).total({"prediction_loss": torch.tensor(2.0)}) == 2.0


@pytest.mark.parametrize("sentence_objective", ["sop", "nsp", "none"])
@pytest.mark.parametrize("padding_free", [False, True])
def test_evaluation_sums_give_the_models_losses(make_objective, sentence_objective: str, padding_free: bool):
    fields = json.dumps({**MODEL, "padding_free": padding_free, "initializer_range": 0.3})
    objective = make_objective({"sentence_objective": sentence_objective}, model_config=fields)
    model = objective.create_model().eval()
    inputs = batch(objective)
    with torch.no_grad():
        outputs = model(**inputs)
        sums, _ = objective.evaluate(model, inputs, None, sentence_objective)
    metrics = objective.summarize({name: float(value) for name, value in sums.items()}, sentence_objective)
    right = (outputs.prediction_logits.argmax(-1) == inputs["labels"]).sum().item()
    assert metrics["masked_lm_loss"] == pytest.approx(outputs.prediction_loss.item(), rel=1e-5)
    assert metrics["masked_lm_accuracy"] == right / metrics["masked_lm_count"]
    if sentence_objective == "none":
        assert "sentence_loss" not in metrics
        return
    assert metrics["sentence_loss"] == pytest.approx(outputs.sentence_loss.item(), rel=1e-5)
    share = metrics["sentence_accuracy"]
    assert share * 24 == pytest.approx(round(share * 24))
    assert metrics["sentence_accuracy_standard_error"] == pytest.approx(math.sqrt(share * (1 - share) / 24))


def test_a_model_is_scored_on_the_labels_of_another_objective(make_objective):
    objective = make_objective({"sentence_objective": "nsp", "validation_objectives": ["sop", "nsp"]})
    model = objective.create_model().eval()
    inputs = batch(objective, "sop")
    sums, _ = objective.evaluate(model, inputs, None, "sop")
    logits = model(**{name: value for name, value in inputs.items() if "label" not in name}).sentence_logits
    assert sums["sentence_correct"] == (logits.argmax(-1) == inputs["sentence_order_label"]).sum()
    assert sums["sentence_count"] == 24


def test_validation_sets_have_the_names_of_their_objectives(make_objective, folder):
    files = {"validation_files": [str(folder / "validation.txt")]}
    assert list(make_objective(**files).validation_datasets(1)) == ["sop"]
    both = make_objective({"validation_objectives": ["nsp", "none"]}, **files).validation_datasets(1)
    assert list(both) == ["nsp", "none"]
    assert "next_sentence_label" in next(iter(both["nsp"]))
    assert make_objective().validation_datasets(1) == {}


def test_held_out_documents_are_not_trained_on(make_objective):
    objective = make_objective(validation_share=0.3)
    (held_out,) = objective.validation_datasets(1).values()
    train, held_out = ({example["example_id"] for example in data} for data in (objective.train_dataset(1), held_out))
    assert not train & held_out
    assert 0.15 < len(held_out) / len(train | held_out) < 0.45


def test_the_configuration_takes_what_the_tokenizer_says(make_objective):
    config = make_objective({"sentence_objective": "nsp"}).create_model().config
    assert (config.vocab_size, config.pad_token_id, config.bos_token_id, config.eos_token_id) == (65, 0, 2, 3)
    assert (config.sentence_objective, config.hidden_size) == ("nsp", 16)
    larger = json.dumps({**MODEL, "vocab_size": 72})
    assert make_objective(model_config=larger).create_model().config.vocab_size == 72


def test_training_can_go_on_from_a_model_of_ours_and_from_bert(make_objective, tmp_path):
    ours = LineageAlbertForPreTraining(LineageAlbertConfig(vocab_size=65, **MODEL))
    ours.save_pretrained(tmp_path / "ours")
    loaded = make_objective(model_name_or_path=str(tmp_path / "ours")).create_model()
    assert torch.equal(loaded.predictions.dense.weight, ours.predictions.dense.weight)
    bert = BertForPreTraining(BertConfig(**BERT)).eval()
    bert.save_pretrained(tmp_path / "bert")
    objective = make_objective({"sentence_objective": "nsp"}, model_name_or_path=str(tmp_path / "bert"))
    model = objective.create_model().eval()
    assert model.config.sentence_objective == "nsp"
    inputs = batch(objective)
    expected = bert(**inputs)
    torch.testing.assert_close(model(**inputs).loss, expected.loss, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hiden_size": 8}, "'hiden_size', which is no field of LineageAlbertConfig; did you mean 'hidden_size'"),
        ({"sentence_objective": "nsp"}, "sentence_objective='nsp', but the settings make it 'sop'"),
        ({"vocab_size": 64}, "vocab_size=64, but the tokenizer has 65 tokens"),
        ({"max_position_embeddings": 31}, "--max_length is 32, but the model has max_position_embeddings=31"),
        ({"hidden_size": 7}, "hidden_size=7 must be a multiple of num_attention_heads=2"),
    ],
)
def test_models_that_cannot_be_are_refused(make_objective, fields: dict, message: str):
    with pytest.raises(ValueError, match=message):
        make_objective(model_config=json.dumps({**MODEL, **fields})).create_model()
