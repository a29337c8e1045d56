"""The files for `accelerate launch --config_file`, read by accelerate itself."""

import os
from pathlib import Path
from unittest import mock

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "launch"
KINDS = {
    "one_cpu": DistributedType.NO,
    "gpus": DistributedType.MULTI_GPU,
    "fsdp": DistributedType.FSDP,
    "deepspeed_zero2": DistributedType.DEEPSPEED,
}


def test_every_file_is_tested():
    assert {path.stem for path in FOLDER.iterdir()} == set(KINDS)


def launch_arguments(name: str):
    command = ["--config_file", str(FOLDER / f"{name}.yaml"), "-m", "benchmarks.glue", "--task_name", "rte"]
    with mock.patch("accelerate.commands.launch.is_torch_xla_available", return_value=False):
        return _validate_launch_command(launch_command_parser().parse_args(command))[0]


@pytest.mark.parametrize("name", KINDS)
def test_a_file_is_a_configuration_of_accelerate(name: str):
    config = load_config_from_file(str(FOLDER / f"{name}.yaml"))
    assert DistributedType(config.distributed_type) == KINDS[name]
    assert config.num_processes == (1 if name == "one_cpu" else 8)
    arguments = launch_arguments(name)
    assert (arguments.module, arguments.training_script) == (True, "benchmarks.glue")
    assert (arguments.use_fsdp, arguments.use_deepspeed) == (name == "fsdp", name == "deepspeed_zero2")


def test_processes_are_told_of_fsdp():
    environment = prepare_multi_gpu_env(launch_arguments("fsdp"))
    assert environment["ACCELERATE_USE_FSDP"] == "true"
    with mock.patch.dict(os.environ, environment):
        plugin = FullyShardedDataParallelPlugin()
    assert (plugin.fsdp_version, plugin.min_num_params) == (2, 1_000_000)
    assert plugin.reshard_after_forward is True
    assert plugin.state_dict_type.name == "FULL_STATE_DICT"


def test_processes_are_told_of_deepspeed():
    arguments = launch_arguments("deepspeed_zero2")
    arguments.deepspeed_fields_from_accelerate_config = []  # which the launcher sets where deepspeed is installed
    _, environment = prepare_deepspeed_cmd_env(arguments)
    assert environment["ACCELERATE_USE_DEEPSPEED"] == "true"
    assert environment["ACCELERATE_DEEPSPEED_ZERO_STAGE"] == "2"
    assert environment["ACCELERATE_GRADIENT_CLIPPING"] == "1.0"
