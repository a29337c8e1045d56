import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

import hf_lineage
from benchmarks.glue.models import (
    PRESETS,
    count_parameters,
    effective_max_length,
    load_model_and_tokenizer,
)
from benchmarks.glue.tasks import GLUE_TASKS

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


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("task", [SST2, STSB])
def test_presets_take_the_task_and_learn(name: str, task):
    model, tokenizer = load_model_and_tokenizer(name, task)
    assert isinstance(model, getattr(hf_lineage, PRESETS[name].model))
    for field, value in PRESETS[name].config_kwargs.items():
        assert getattr(model.config, field) == value
    texts = [["A fine day.", "No"], ["A day.", "Yes, it was"]][: len(task.text_columns)]
    labels = torch.tensor([0.5, 4.0]) if task.is_regression else torch.tensor([0, 1])
    output = model(**tokenizer(*texts, padding=True, return_tensors="pt"), labels=labels)
    assert output.logits.shape == (2, max(len(task.labels), 1))
    output.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters() if parameter.requires_grad)


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
    with pytest.raises(ValueError, match=r"No model .*nothing'.*presets \(elmo-tiny, elmo-small"):
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
    assert effective_max_length(16, tokenizer, BertConfig(max_position_embeddings=64)) == 16
    with pytest.warns(UserWarning, match="64 is more than the model takes; 32 is used"):
        assert effective_max_length(64, tokenizer, BertConfig(max_position_embeddings=64)) == 32
    with pytest.warns(UserWarning, match="20 is used"):
        assert effective_max_length(64, tokenizer, BertConfig(max_position_embeddings=20)) == 20


def test_shared_parameters_count_once():
    layer = torch.nn.Linear(3, 2)
    model = torch.nn.Sequential(layer, layer)
    layer.bias.requires_grad_(False)
    assert count_parameters(model) == {"total": 8, "trainable": 6}
