import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerBase

import hf_lineage
from benchmarks.glue.models import (
    checked_max_length,
    count_parameters,
    load_model_and_tokenizer,
    load_tokenizer,
    set_train_mode,
)
from benchmarks.glue.presets import PRESETS
from benchmarks.glue.tasks import GLUE_TASKS, Task
from benchmarks.glue.vocabularies import train_vocabulary
from benchmarks.minisuite import load_task

SST2, STSB, MNLI, RTE, WNLI = (GLUE_TASKS[name] for name in ("sst2", "stsb", "mnli", "rte", "wnli"))


@pytest.mark.parametrize("task", [SST2, STSB, MNLI])
def test_the_head_is_that_of_the_task(model_dir: Path, task):
    model, _ = load_model_and_tokenizer(str(model_dir), task)
    assert model.config.num_labels == max(len(task.labels), 1)
    assert model.config.problem_type == ("regression" if task.is_regression else "single_label_classification")
    if task.labels:
        assert tuple(model.config.id2label.values()) == task.labels
        assert model.config.label2id == {label: index for index, label in enumerate(task.labels)}


def test_weights_are_loaded_in_float32(model_dir: Path, tmp_path: Path):
    model, tokenizer = load_model_and_tokenizer(str(model_dir), SST2)
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_model_and_tokenizer(str(tmp_path), SST2)[0].dtype == torch.float32


@pytest.fixture(scope="session")
def vocabularies(tmp_path_factory) -> Callable[[str, Task], PreTrainedTokenizerBase | None]:
    """Give a preset the tokenizer that it has on a few sentences."""
    folder = tmp_path_factory.mktemp("vocabularies")

    def tokenizer_of(name: str, task: Task) -> PreTrainedTokenizerBase | None:
        preset = PRESETS[name]
        if preset.vocabulary is None:
            return None
        texts = load_task("sentiment")["train"]["sentence"][:200]
        train = Dataset.from_dict(dict.fromkeys(task.text_columns, texts))
        return train_vocabulary(preset.vocabulary, preset.vocab_size, task, train, folder / f"{name}-{task.name}")

    return tokenizer_of


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("task", [SST2, STSB])
def test_presets_take_the_task_and_learn(name: str, task, vocabularies):
    model, tokenizer = load_model_and_tokenizer(name, task, tokenizer=vocabularies(name, task))
    assert type(model.config).__name__ == PRESETS[name].config
    for field, value in PRESETS[name].config_kwargs.items():
        assert getattr(model.config, field) == value
    texts = [["A fine day.", "No"], ["A day.", "Yes, it was"]][: len(task.text_columns)]
    labels = torch.tensor([0.5, 4.0]) if task.is_regression else torch.tensor([0, 1])
    output = model(**tokenizer(*texts, padding=True, return_tensors="pt"), labels=labels)
    assert output.logits.shape == (2, max(len(task.labels), 1))
    output.loss.backward()
    without = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    # weights that a classifier never uses
    assert without <= {"transformer.mask_emb"}


@pytest.mark.parametrize(("name", "least", "most"), [("tiny", 0.1e6, 0.5e6), ("small", 1e6, 4e6)])
def test_sizes_of_presets(name: str, least: float, most: float, model_dir: Path):
    for preset in (preset for preset in PRESETS if preset.endswith(name)):
        vocab_size = PRESETS[preset].vocab_size
        tokenizer = AutoTokenizer.from_pretrained(model_dir) if vocab_size else None
        model, _ = load_model_and_tokenizer(preset, SST2, tokenizer=tokenizer)
        if tokenizer is not None:
            model.resize_token_embeddings(vocab_size)
        assert least <= model.num_parameters() <= most, preset


def test_a_preset_with_pieces_needs_a_tokenizer_and_one_of_characters_takes_no_other(model_dir: Path):
    with pytest.raises(ValueError, match="'albert-small' has no vocabulary of its own"):
        load_model_and_tokenizer("albert-small", SST2)
    with pytest.raises(ValueError, match=r"'elmo-small' reads characters, but .* gives pieces"):
        load_model_and_tokenizer("elmo-small", SST2, tokenizer=AutoTokenizer.from_pretrained(model_dir))
    with pytest.raises(ValueError, match="'bert-tiny' reads pieces, but ElmoTokenizer gives characters"):
        load_model_and_tokenizer("bert-tiny", SST2, tokenizer=hf_lineage.ElmoTokenizer())
    with pytest.raises(ValueError, match="no tokenizer can be loaded from '/nowhere/at/all'"):
        load_tokenizer("/nowhere/at/all")


def test_a_given_tokenizer_must_not_know_more_than_the_model(model_dir: Path):
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    assert load_model_and_tokenizer(str(model_dir), SST2, tokenizer=tokenizer)[1] is tokenizer
    tokenizer.add_tokens(["another"])
    with pytest.raises(ValueError, match="vocab_size=20, but the tokenizer has 21 tokens"):
        load_model_and_tokenizer(str(model_dir), SST2, tokenizer=tokenizer)


def test_a_frozen_encoder_leaves_the_head(model_dir: Path):
    model, _ = load_model_and_tokenizer(str(model_dir), SST2, freeze_encoder=True)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == {"classifier.weight", "classifier.bias"}
    assert count_parameters(model)["trainable"] == 2 * 16 + 2
    set_train_mode(model, freeze_encoder=True)
    assert (model.training, model.dropout.training, model.bert.training) == (True, True, False)
    with pytest.raises(ValueError, match="'elmo-tiny' has no trained encoder"):
        load_model_and_tokenizer("elmo-tiny", SST2, freeze_encoder=True)


def test_elmo_keeps_its_mix_when_its_encoder_is_frozen(tmp_path: Path):
    model, tokenizer = load_model_and_tokenizer("elmo-tiny", SST2)
    model.elmo.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model, _ = load_model_and_tokenizer(str(tmp_path), SST2, freeze_encoder=True)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert {"elmo.scalar_mixes.0.weights", "elmo.scalar_mixes.0.gamma"} <= trained
    assert not any(name.startswith(("elmo.encoder", "elmo.character_encoder")) for name in trained)
    set_train_mode(model, freeze_encoder=True)
    assert (model.elmo.dropout.training, model.elmo.encoder.training) == (True, False)


def test_weights_that_the_checkpoint_lacks_are_trained_in_a_frozen_encoder(tmp_path: Path, model_dir: Path):
    model = BertModel.from_pretrained(model_dir, add_pooling_layer=False)
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(model_dir).save_pretrained(tmp_path)
    model, _ = load_model_and_tokenizer(str(tmp_path), SST2, freeze_encoder=True)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == {
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
        "classifier.weight",
        "classifier.bias",
    }


def test_a_head_of_another_size_is_replaced(model_dir: Path, tmp_path: Path):
    model, tokenizer = load_model_and_tokenizer(str(model_dir), MNLI)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_model_and_tokenizer(str(tmp_path), RTE)[0].config.num_labels == 2
    with pytest.raises(ValueError, match="has the labels"):
        load_model_and_tokenizer(str(tmp_path), RTE, trained_head=True)


def test_without_training_the_head_must_be_there_and_fit(model_dir: Path, tmp_path: Path):
    with pytest.raises(ValueError, match=r"no trained head for 'sst2'.*classifier\.weight"):
        load_model_and_tokenizer(str(model_dir), SST2, trained_head=True)
    with pytest.raises(ValueError, match="'elmo-small' is not trained"):
        load_model_and_tokenizer("elmo-small", SST2, trained_head=True)
    model, tokenizer = load_model_and_tokenizer(str(model_dir), RTE)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    load_model_and_tokenizer(str(tmp_path), RTE, trained_head=True)
    for task in (WNLI, STSB):
        with pytest.raises(ValueError, match="'entailment', 'not_entailment'"):
            load_model_and_tokenizer(str(tmp_path), task, trained_head=True)


def test_a_checkpoint_without_label_names_is_evaluated_as_it_is(model_dir: Path, tmp_path: Path):
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    tokenizer.save_pretrained(tmp_path)
    model = BertForSequenceClassification(BertConfig.from_pretrained(model_dir, num_labels=2))
    model.save_pretrained(tmp_path)
    loaded, _ = load_model_and_tokenizer(str(tmp_path), SST2, trained_head=True)
    assert torch.equal(loaded.classifier.weight, model.classifier.weight)


def test_an_unknown_model_is_named_with_the_presets(tmp_path: Path):
    with pytest.raises(ValueError, match=r"No model .*nothing'.*presets \(elmo-tiny, albert-tiny"):
        load_model_and_tokenizer(str(tmp_path / "nothing"), SST2)


def test_a_tokenizer_without_padding_pads_with_its_end_token(model_dir: Path, tmp_path: Path):
    folder = shutil.copytree(model_dir, tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(folder)
    with pytest.raises(ValueError, match="no token to pad with"):
        load_model_and_tokenizer(str(folder), SST2)
    tokenizer.eos_token = "[SEP]"
    tokenizer.save_pretrained(folder)
    BertConfig.from_pretrained(model_dir, pad_token_id=None).save_pretrained(folder)
    model, loaded = load_model_and_tokenizer(str(folder), SST2)
    assert loaded.pad_token == "[SEP]"
    assert model.config.pad_token_id == loaded.pad_token_id == tokenizer.convert_tokens_to_ids("[SEP]")


def test_max_length_is_bounded_by_tokenizer_and_positions(model_dir: Path):
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    assert checked_max_length(16, tokenizer, BertConfig(max_position_embeddings=64), "m") == 16
    with pytest.raises(ValueError, match="--max_length must be at most 32, the longest input of 'm', got 64"):
        checked_max_length(64, tokenizer, BertConfig(max_position_embeddings=64), "m")
    with pytest.raises(ValueError, match="at most 20, the longest input of 'm', got 21"):
        checked_max_length(21, tokenizer, BertConfig(max_position_embeddings=20), "m")


def test_shared_parameters_count_once():
    layer = torch.nn.Linear(3, 2)
    model = torch.nn.Sequential(layer, layer)
    layer.bias.requires_grad_(False)
    assert count_parameters(model) == {"total": 8, "trainable": 6, "by_part": {"0": 8}}
