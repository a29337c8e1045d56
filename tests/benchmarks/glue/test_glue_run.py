import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import hf_lineage
from benchmarks.glue.__main__ import main
from benchmarks.glue.arguments import FineTuningArguments
from benchmarks.glue.data import TextCollator, load_task_data
from benchmarks.glue.models import load_model_and_tokenizer
from benchmarks.glue.optimization import create_optimizer
from benchmarks.glue.tasks import GLUE_TASKS
from benchmarks.glue.train import create_accelerator
from benchmarks.glue.training import Training

ROOT = Path(__file__).resolve().parents[3]


def read(output_dir: Path, task: str = "sst2", seed: int = 1) -> dict:
    return json.loads((output_dir / task / f"seed-{seed}" / "results.json").read_text())


def without_matrix(record: dict) -> dict:
    splits = record["validation"].items()
    kept = {split: {k: v for k, v in metrics.items() if k != "confusion_matrix"} for split, metrics in splits}
    return {**record, "validation": kept}


def weights(output_dir: Path, task: str = "sst2", seed: int = 1) -> dict[str, torch.Tensor]:
    return load_file(output_dir / task / f"seed-{seed}" / "model" / "model.safetensors")


def assert_same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    # The gradient of a key's bias is zero but for rounding, which Adam turns into steps of full size.
    compared = [name for name in one if not name.endswith("key.bias")]
    assert len(compared) == len(one) - 1 == len(other) - 1
    for name in compared:
        torch.testing.assert_close(
            one[name], other[name], rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.fixture(scope="module")
def trained(tmp_path_factory, model_dir, data_dir) -> Path:
    """The output folder of sst2 and stsb with two seeds."""
    output_dir = tmp_path_factory.mktemp("trained")
    argv = f"--model_name_or_path {model_dir} --task_name sst2,stsb --data_dir {data_dir} --output_dir {output_dir}"
    sizes = "--seeds 1,2 --num_train_epochs 6 --per_device_train_batch_size 8 --per_device_eval_batch_size 4"
    main([*argv.split(), *sizes.split(), "--learning_rate", "1e-2", "--max_length", "32"])
    return output_dir


def test_it_learns(trained: Path):
    for seed in (1, 2):
        results = read(trained, seed=seed)
        assert results["best"]["score"] >= 0.9 > results["majority_baseline"]["score"] + 0.2
        assert results["last"]["train_loss"] < 0.5 * results["epochs"][0]["train_loss"]


def test_results_are_complete(trained: Path, model_dir: Path, data_dir: Path):
    results = read(trained)
    assert (results["task"], results["suite"], results["seed"], results["model"]) == (
        "sst2",
        "glue",
        1,
        str(model_dir),
    )
    assert [record["epoch"] for record in results["epochs"]] == [1, 2, 3, 4, 5, 6]
    assert without_matrix(results["last"]) == results["epochs"][-1]
    assert without_matrix(results["best"]) == max(results["epochs"], key=lambda record: record["score"])
    matrix = results["best"]["validation"]["validation"]["confusion_matrix"]
    assert sum(map(sum, matrix)) == 13
    assert (matrix[0][0] + matrix[1][1]) / 13 == pytest.approx(results["best"]["score"])
    assert [record["step"] for record in results["epochs"]] == [12, 24, 36, 48, 60, 72]
    for record in results["epochs"]:
        assert record["train_seconds"] > 0
        assert record["eval_seconds"] > 0
        assert record["validation"]["validation"].keys() - {"notes"} == {"accuracy", "loss", "examples"}
        assert record["score"] == record["validation"]["validation"]["accuracy"]
    assert results["evaluated_examples"] == {"validation": 13}
    assert results["data"]["train_examples"] == results["data"]["splits"]["train"]["rows"] == 96
    assert results["data"]["origin"] == str(data_dir / "sst2")
    assert results["data"]["max_length"] == 32
    assert results["data"]["train_was_cut"] is False
    assert results["parameters"]["total"] == results["parameters"]["trainable"] > 0
    assert results["wall_seconds"] > sum(record["train_seconds"] for record in results["epochs"])
    assert results["train_examples_per_second"] > 0
    assert results["eval_examples_per_second"] > 0
    assert results["peak_memory_bytes"] > 10**7
    assert results["inference_latency_seconds"].keys() == {"1", "32"}
    assert results["flops"]["training_total"] > 6 * 96 * results["flops"]["forward_per_example"] > 0
    assert sum(results["parameters"]["by_part"].values()) == results["parameters"]["total"]
    assert (results["dev_selected"], results["tried"], results["stopped_early"]) == (False, [], False)
    assert results["arguments"]["learning_rate"] == 1e-2
    assert results["arguments"]["data_dir"] == str(data_dir)
    assert results["command"] == sys.orig_argv
    assert results["versions"]["hf_lineage"] == hf_lineage.__version__
    assert results["versions"]["torch"] == torch.__version__
    assert results["platform"]["num_processes"] == 1
    assert results["platform"]["device"] == ("cpu" if not torch.accelerator.is_available() else "cuda")
    assert results["model_config"]["id2label"] == {"0": "negative", "1": "positive"}
    if (ROOT / ".git").exists():
        head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        assert results["git"]["commit"] == head


def test_regression_is_scored_by_correlations(trained: Path):
    results = read(trained, "stsb")
    metrics = results["best"]["validation"]["validation"]
    assert metrics["examples"] == 5
    assert results["best"]["score"] == pytest.approx((metrics["pearson"] + metrics["spearman"]) / 2)
    assert results["majority_baseline"]["score"] == 0.0
    assert results["model_config"]["problem_type"] == "regression"


def test_the_table_is_written(trained: Path):
    text = (trained / "results.md").read_text()
    lines = text[text.index("### Scores of every task") :].splitlines()[2:]
    assert [line.split("|")[1].strip(" -") for line in lines[:4]] == ["task", "", "sst2", "stsb"]
    assert "±" in lines[2]
    assert " 1, 2 " in lines[2]
    assert "python" in text[text.index("### Commands") :]


def test_the_saved_model_is_the_best_and_scores_the_same_again(trained: Path, command, tmp_path: Path):
    checkpoint = trained / "sst2" / "seed-1" / "model"
    assert sorted(path.name for path in checkpoint.parent.iterdir()) == ["model", "results.json"]
    main(command(model_name_or_path=checkpoint, num_train_epochs=0, per_device_eval_batch_size=5))
    again, best = read(tmp_path / "out"), read(trained)["best"]
    assert again["best"]["epoch"] == 0
    assert again["best"]["score"] == best["score"]
    metrics = again["best"]["validation"]["validation"]
    assert metrics["loss"] == pytest.approx(best["validation"]["validation"]["loss"], rel=1e-5)
    assert again["data"]["train_examples"] == 0
    assert again["train_examples_per_second"] is None
    assert not (tmp_path / "out" / "sst2" / "seed-1" / "model").exists()


def test_a_run_repeats_exactly_and_seeds_differ(trained: Path, command, tmp_path: Path):
    main(command(num_train_epochs=6))
    assert [record["train_loss"] for record in read(tmp_path / "out")["epochs"]] == [
        record["train_loss"] for record in read(trained)["epochs"]
    ]
    assert read(trained, seed=2)["epochs"][0]["train_loss"] != read(trained, seed=1)["epochs"][0]["train_loss"]


@pytest.mark.parametrize("max_train_samples", [16, 11, 9])
def test_accumulation_gives_the_weights_of_the_full_batch(command, tmp_path: Path, max_train_samples: int):
    """11 and 9 leave a last step with a partial batch, and with one batch instead of two."""
    options = {"max_train_samples": max_train_samples, "save_model": "last"}
    main(command(output_dir=tmp_path / "whole", per_device_train_batch_size=4, **options))
    halves = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    main(command(output_dir=tmp_path / "halves", **halves, **options))
    assert_same_weights(weights(tmp_path / "halves"), weights(tmp_path / "whole"))
    whole, accumulated = read(tmp_path / "whole"), read(tmp_path / "halves")
    assert accumulated["last"]["train_loss"] == pytest.approx(whole["last"]["train_loss"], rel=1e-4)
    assert whole["data"]["train_was_cut"]


def test_two_processes_do_what_one_does(command, tmp_path: Path):
    two, one, again = tmp_path / "two", tmp_path / "one", tmp_path / "again"
    options = {"save_model": "last", "task_name": "sst2"}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    argv = command(output_dir=two, per_device_train_batch_size=4, per_device_eval_batch_size=4, **options)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(
        [*launch, "-m", "benchmarks.glue", *argv],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sst2 seed 1 epoch 2/2") == 1
    results = read(two)
    assert results["platform"]["num_processes"] == 2
    # 13 examples in batches of 2 x 4: the last round has 5 examples and 3 repeated ones.
    assert results["last"]["validation"]["validation"]["examples"] == 13

    main(command(output_dir=one, per_device_train_batch_size=8, **options))
    assert_same_weights(weights(two), weights(one))
    assert read(one)["last"]["score"] == results["last"]["score"]

    main(command(model_name_or_path=two / "sst2" / "seed-1" / "model", output_dir=again, num_train_epochs=0))
    evaluated = read(again)["last"]["validation"]["validation"]
    assert evaluated["examples"] == 13
    assert evaluated["accuracy"] == results["last"]["validation"]["validation"]["accuracy"]
    assert evaluated["loss"] == pytest.approx(results["last"]["validation"]["validation"]["loss"], rel=1e-5)


def test_a_model_over_characters_is_trained_saved_and_loaded(command, tmp_path: Path):
    options = {"task_name": "stsb", "per_device_eval_batch_size": 4}
    main(command(model_name_or_path="elmo-small", num_train_epochs=1, **options))
    checkpoint = tmp_path / "out" / "stsb" / "seed-1" / "model"
    main(command(model_name_or_path=checkpoint, output_dir=tmp_path / "again", num_train_epochs=0, **options))
    metrics = read(tmp_path / "out", "stsb")["last"]["validation"]["validation"]
    assert read(tmp_path / "again", "stsb")["last"]["validation"]["validation"] == pytest.approx(metrics, rel=1e-4)


def test_nothing_is_saved_where_nothing_is_asked_for(command, tmp_path: Path):
    main(command(save_model="none"))
    assert [path.name for path in (tmp_path / "out" / "sst2" / "seed-1").iterdir()] == ["results.json"]


def test_other_settings_in_a_folder_are_refused_unless_it_is_to_start_anew(command, tmp_path: Path):
    main(command(num_train_epochs=1))
    with pytest.raises(ValueError, match=r"out/sst2 have other settings: --num_train_epochs was 1 and is now 2"):
        main(command(num_train_epochs=2))
    assert len(read(tmp_path / "out")["epochs"]) == 1
    main([*command(num_train_epochs=2), "--overwrite_output_dir"])
    assert len(read(tmp_path / "out")["epochs"]) == 2


def test_results_of_unknown_settings_are_refused(command, tmp_path: Path):
    main(command(num_train_epochs=1))
    (tmp_path / "out" / "sst2" / "settings.json").unlink()
    with pytest.raises(ValueError, match=r"results in .*sst2, but no settings\.json"):
        main(command(num_train_epochs=1))


def test_bad_data_of_a_later_task_stops_before_any_training(command, tmp_path: Path):
    with pytest.raises(ValueError, match="'rte'"):
        main(command(task_name="sst2,rte"))
    assert not (tmp_path / "out").exists()


def test_a_diverged_run_fails(command):
    with pytest.raises(FloatingPointError, match="try a lower --learning_rate"):
        main(command(learning_rate=1e38, max_grad_norm=0))


def test_a_pipe_gets_one_line_an_epoch_and_no_bars(command, capfd: pytest.CaptureFixture):
    main(command())
    output, errors = capfd.readouterr()
    assert [line.split(":")[0] for line in output.splitlines()[:2]] == [
        "sst2 seed 1 epoch 1/2",
        "sst2 seed 1 epoch 2/2",
    ]
    assert "%|" not in errors


def test_learning_rate_warms_up_and_ends_at_zero(model_dir: Path, data_dir: Path):
    data = load_task_data(GLUE_TASKS["sst2"], data_dir=str(data_dir))
    model, tokenizer = load_model_and_tokenizer(str(model_dir), data.task)
    # 96 examples: 12 steps an epoch, 24 in all, 6 of them to warm up
    settings = FineTuningArguments(
        "unused",
        num_train_epochs=2,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        learning_rate=0.3,
        warmup_ratio=0.25,
    )
    collator = TextCollator(tokenizer, data.task, 32)
    training = Training(create_accelerator(settings), model, data.train, collator, settings, seed=1)
    training.run_epoch(lambda: None)
    assert training.scheduler.get_last_lr()[0] == pytest.approx(0.3 * 12 / 18)
    training.run_epoch(lambda: None)
    assert training.scheduler.get_last_lr()[0] == 0.0
    assert training.scheduler.last_epoch == 24


def test_matrices_decay_and_vectors_do_not():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    model.r_w_bias = torch.nn.Parameter(torch.zeros(2, 2))
    decayed, others = create_optimizer(model, FineTuningArguments("unused", weight_decay=0.3)).param_groups
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.3, 0.0)
    assert [parameter.shape for parameter in decayed["params"]] == [(2, 3)]
    assert len(others["params"]) == 4
