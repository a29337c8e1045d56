import dataclasses
import json
import re
from pathlib import Path

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
        (["--early_stopping_patience", "0"], "--early_stopping_patience must be at least 1"),
        (["--save_steps", "0"], "--save_steps must be at least 1"),
        (["--layer_decay", "0"], "--layer_decay must be above 0 and at most 1, got 0"),
        (["--layer_decay", "0.9", "--freeze_encoder"], "--layer_decay does not go with --freeze_encoder"),
        (["--report_to", "nothing"], "--report_to must be none, all or installed ones of .*; got 'nothing'"),
        (["--grid", "{"], "--grid must be a JSON object, got '{'"),
        (["--grid", "[1]"], "--grid must be a JSON object that gives each setting a list"),
        (["--grid", '{"learning_rate": []}'], "gives each setting a list of values"),
        (["--grid", '{"seeds": [1]}'], "--grid may vary learning_rate, .*; got 'seeds'"),
        (["--grid", '{"learning_rate": ["1e-5"]}'], "--grid: '1e-5' is no value of learning_rate"),
        (["--grid", '{"num_train_epochs": [1.5]}'], "--grid: 1.5 is no value of num_train_epochs"),
        (["--grid", '{"learning_rate": [0]}'], "--learning_rate must be above 0, got 0"),
        (
            ["--grid", '{"learning_rate": [1]}', "--num_train_epochs", "0"],
            "--grid does not go with --num_train_epochs 0",
        ),
    ],
)
def test_bad_values_are_refused(given: list[str], message: str):
    with pytest.raises(ValueError, match=message):
        parse_arguments([*REQUIRED, *given])


@pytest.mark.parametrize("name", ["save_model", "lr_scheduler_type", "mixed_precision"])
def test_bad_choices_are_refused(name: str):
    with pytest.raises(ValueError, match=f"--{name} must be .*, got 'nothing'"):
        FineTuningArguments(output_dir="out", **{name: "nothing"})


CONFIG = """
model_name_or_path: m
task_name: [cola, sst2]
output_dir: out
seeds: [1, 2]
learning_rate: 3e-5
group_by_length: false
early_stopping_patience: null
grid:
  learning_rate: [1e-5, 3e-5]
  num_train_epochs: [2]
"""


def test_a_file_has_the_names_of_the_flags_and_flags_win(tmp_path: Path):
    (tmp_path / "c.yaml").write_text(CONFIG)
    arguments = parse_arguments(["--config", str(tmp_path / "c.yaml"), "--seeds", "7", "--warmup_ratio=0.2"])
    assert (arguments.model.model_name_or_path, arguments.data.task_names) == ("m", ["cola", "sst2"])
    settings = arguments.fine_tuning
    assert (settings.seed_list, settings.learning_rate, settings.warmup_ratio) == ([7], 3e-5, 0.2)
    assert (settings.group_by_length, settings.early_stopping_patience) == (False, None)
    assert settings.grid_points == [
        {"learning_rate": 1e-5, "num_train_epochs": 2},
        {"learning_rate": 3e-5, "num_train_epochs": 2},
    ]


def test_a_json_file_is_read_too(tmp_path: Path):
    values = {"model_name_or_path": "m", "task_name": "all", "output_dir": "out", "max_length": 64}
    (tmp_path / "c.json").write_text(json.dumps(values))
    assert parse_arguments(["--config", str(tmp_path / "c.json")]).data.max_length == 64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("learning_rat: 1", "has an unknown setting 'learning_rat'; did you mean learning_rate"),
        ("- 1", "must hold settings and their values"),
        ("a: [", "cannot read"),
        ("max_length: 0", "--max_length must be at least 1"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: str, message: str):
    (tmp_path / "c.yaml").write_text(content)
    with pytest.raises(ValueError, match=message):
        parse_arguments(["--config", str(tmp_path / "c.yaml"), *REQUIRED])


def test_points_of_a_grid_are_settings():
    grid = {"learning_rate": [1e-5, 3e-5], "weight_decay": [0, 0.1]}
    settings = FineTuningArguments(output_dir="out", grid=json.dumps(grid))
    assert len(settings.grid_points) == 4
    at_last = settings.at(settings.grid_points[-1])
    assert (at_last.learning_rate, at_last.weight_decay, at_last.grid) == (3e-5, 0.1, None)
    assert FineTuningArguments(output_dir="out").grid_points == [{}]


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


def test_the_settings_in_the_documentation_are_settings(tmp_path: Path):
    page = Path(__file__).resolve().parents[3] / "docs" / "benchmarks.md"
    (listing,) = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "settings.yaml").write_text(listing, encoding="utf-8")
    arguments = parse_arguments(["--config", str(tmp_path / "settings.yaml")])
    assert arguments.data.task_names == ["mrpc", "rte"]
    assert arguments.fine_tuning.early_stopping_patience == 2
    assert [point["learning_rate"] for point in arguments.fine_tuning.grid_points] == [2e-5, 5e-5]
