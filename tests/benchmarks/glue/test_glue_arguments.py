import dataclasses

import pytest
from transformers import HfArgumentParser

from benchmarks.glue.arguments import Arguments, DataArguments, FineTuningArguments, ModelArguments, parse_arguments
from benchmarks.glue.data import select_tasks

REQUIRED = ["--model_name_or_path", "m", "--task_name", "cola, sst2", "--output_dir", "out"]

OWN = ["--validation_file", "b.csv", "--task_name", "mine"]


def test_lists_and_defaults():
    arguments = parse_arguments([*REQUIRED, "--seeds", "3,1"])
    assert arguments.data.task_names == ["cola", "sst2"]
    assert arguments.fine_tuning.seed_list == [3, 1]
    assert arguments.fine_tuning.group_by_length
    assert str(arguments.fine_tuning.run_dir("sst2", 3)) == "out/sst2/seed-3"
    assert not parse_arguments([*REQUIRED, "--no_group_by_length"]).fine_tuning.group_by_length


@pytest.mark.parametrize("part", [ModelArguments, DataArguments, FineTuningArguments])
def test_every_argument_has_a_help_text(part: type):
    assert all(field.metadata.get("help") for field in dataclasses.fields(part))


def test_help_can_be_formatted():
    assert "--gradient_accumulation_steps" in HfArgumentParser(list(Arguments.__annotations__.values())).format_help()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--task_name", "sst3"], "Unknown task 'sst3'"),
        (["--task_name", ","], "No task was named"),
        (["--suite", "minisuite", "--task_name", "all", "--data_dir", "x"], "must be left out, got 'x'"),
        (["--max_length", "0"], "--max_length must be at least 1, got 0"),
        (["--max_train_samples", "0"], "--max_train_samples must be at least 1"),
        (["--labels", "a,b"], "--labels must be left out without files of your own, got 'a,b'"),
        (["--metrics", "f1"], "--metrics must be left out without files"),
        (["--task_name", "ax"], "'ax' has no labels .* predicted with the model of mnli, so name that task too"),
        (["--task_name", "mnli,ax"], "'ax' has no labels"),
        (["--task_name", "ax", "--predict"], "'ax' has no labels"),
        (["--suite", "zh", "--task_name", "all"], "suite zh is read from a folder: give --data_dir"),
        (["--suite", "zh", "--task_name", "cola", "--data_dir", "x"], "Unknown task 'cola'; .* 'zh': chnsenticorp"),
        (["--task_name", "sentiment", "--predict"], "minisuite has no test splits"),
        (["--train_file", "a.csv"], "need at least --validation_file"),
        (["--suite", "files"], "need at least --validation_file"),
        ([*OWN, "--data_dir", "x"], "--data_dir must be left out, got 'x'"),
        ([*OWN, "--suite", "zh"], "Files of your own are no part of the suite 'zh'"),
        ([*OWN, "--task_name", "a,b"], "--task_name must be one name .* got 'a,b'"),
        ([*OWN, "--task_name", "../a"], "--task_name must be one name"),
        ([*OWN, "--predict"], "--predict with files of your own needs --test_file"),
        ([*OWN, "--labels", "a"], "--labels must be two or more different names, got 'a'"),
        ([*OWN, "--labels", "a,a,b"], "--labels must be two or more different names"),
        (["--predict", "--save_model", "none"], "--save_model must be best or last, got 'none'"),
        (["--seeds", "1,x"], "--seeds must be different whole numbers .* got '1,x'"),
        (["--seeds", "1,1"], "--seeds must be different"),
        (["--seeds", ""], "--seeds must be different"),
        (["--num_train_epochs", "-1"], "--num_train_epochs must be at least 0, got -1"),
        (["--per_device_train_batch_size", "0"], "at least 1"),
        (["--gradient_accumulation_steps", "0"], "at least 1"),
        (["--learning_rate", "0"], "--learning_rate must be above 0"),
        (["--learning_rate", "nan"], "--learning_rate must be above 0"),
        (["--warmup_ratio", "1.5"], "--warmup_ratio must be between 0 and 1, got 1.5"),
        (["--max_grad_norm", "-1"], "--max_grad_norm must be at least 0"),
    ],
)
def test_bad_values_are_refused(given: list[str], message: str):
    with pytest.raises(ValueError, match=message):
        parse_arguments([*REQUIRED, *given])


@pytest.mark.parametrize("name", ["save_model", "lr_scheduler_type", "mixed_precision"])
def test_bad_choices_are_refused(name: str):
    with pytest.raises(ValueError, match=f"--{name} must be .*, got 'nothing'"):
        FineTuningArguments(output_dir="out", **{name: "nothing"})


@pytest.mark.parametrize(
    ("task_name", "options", "is_offline", "suite"),
    [
        ("cola", {}, False, "glue"),
        ("cola", {}, True, "glue"),
        ("all", {}, False, "glue"),
        ("all", {}, True, "minisuite"),
        ("all", {"data_dir": "x"}, True, "glue"),
        ("sentiment,agreement", {}, False, "minisuite"),
        ("mine", {"validation_file": "b.csv"}, False, "files"),
        ("all", {"suite": "zh", "data_dir": "x"}, True, "zh"),
    ],
)
def test_the_suite_follows_from_what_is_given(monkeypatch, task_name, options, is_offline, suite):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", is_offline)
    assert DataArguments(task_name, **options).suite == suite


def test_the_diagnostic_set_is_named_with_its_task():
    arguments = parse_arguments([*REQUIRED, "--task_name", "mnli,ax", "--predict"])
    assert [task.name for task in select_tasks(arguments.data)] == ["mnli"]
