import dataclasses

import pytest
from transformers import HfArgumentParser

from benchmarks.glue.arguments import Arguments, DataArguments, FineTuningArguments, ModelArguments, parse_arguments

REQUIRED = ["--model_name_or_path", "m", "--task_name", "cola, sst2", "--output_dir", "out"]


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
