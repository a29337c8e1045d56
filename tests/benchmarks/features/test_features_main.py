import json

import pytest

from benchmarks.features.__main__ import main
from hf_lineage import ElmoForPreTraining


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command and returns its exit status, what it printed and its errors."""

    def run_command(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["benchmarks.features", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        return int(exit_info.value.code or 0), *capsys.readouterr()

    return run_command


def test_tagging(model_folder, pos_folder, tmp_path, run):
    command = ("tagging", "--model_name_or_path", model_folder, "--task", "pos", "--data_dir", pos_folder)
    command = (*command, "--output_dir", tmp_path, "--epochs", 2, "--lstm_size", 4, "--seeds", "1,2")
    status, _, errors = run(*command, "--random_weights")
    assert status == 0, errors
    status, printed, errors = run(*command)
    assert status == 0, errors
    assert (tmp_path / "results.md").read_text() == printed
    lines = [line.split("|")[1].strip() for line in printed.splitlines() if line.startswith("| ")]
    assert lines == ["features", "majority tag", "most frequent tag of word", "random biLM", "pretrained biLM"]
    result = json.loads((tmp_path / "pos" / "pretrained" / "seed_2" / "results.json").read_text())
    assert result["seed"] == 2
    assert result["settings"]["lstm_size"] == 4
    assert len(result["epochs"]) == 2
    assert result["best"] in result["epochs"]
    assert result["versions"]["seqeval"]
    assert f"{100 * result['baselines']['majority_tag']['test']['accuracy']:.1f}" in printed
    # what is finished is not repeated, and runs of other settings are not mixed with it
    path = tmp_path / "pos" / "random" / "seed_1" / "results.json"
    before = path.stat().st_mtime_ns
    assert run(*command, "--random_weights")[0] == 0
    assert path.stat().st_mtime_ns == before
    status, _, errors = run(*command, "--batch_size", 3)
    assert status == 2
    assert "has other settings (batch_size)" in errors


def test_retrained_model_is_another_one(model_folder, wic_folder, tmp_path, run):
    folder = tmp_path / "model"
    model = ElmoForPreTraining.from_pretrained(model_folder)
    for _ in range(2):
        model.save_pretrained(folder)
        command = ("wic", "--model_name_or_path", folder, "--data_dir", wic_folder, "--output_dir", tmp_path / "out")
        status, _, errors = run(*command, "--seeds", 1)
        model.elmo.encoder.forward_layers[0].input_linear.weight.data += 1
    assert status == 2
    assert "has other settings (weights_digest)" in errors


def test_word_in_context(model_folder, wic_folder, tmp_path, run):
    command = ("wic", "--model_name_or_path", model_folder, "--data_dir", wic_folder, "--output_dir", tmp_path)
    assert run(*command, "--random_weights", "--seeds", "1,2")[0] == 0
    status, printed, errors = run(*command, "--seeds", "1,2")
    assert status == 0, errors
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if "biLM " in line]
    assert len(rows) == 1 + 2 * 4 * 2
    result = json.loads((tmp_path / "wic" / "pretrained" / "seed_1" / "results.json").read_text())
    assert result["dropped"] == {"train": 1, "validation": 1}
    assert set(result["accuracy"]) == {"context-free", "layer 1", "layer 2", "mean of layers"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--task": "chunking"}, "--task must be one of pos, ner, got 'chunking'"),
        ({"--seeds": "1,1"}, "--seeds must be different integers"),
        ({"--seeds": ","}, "--seeds must be different integers"),
        ({"--learning_rate": 0}, "--learning_rate must be a number above 0"),
        ({"--data_dir": "nowhere"}, "--data_dir must be a folder with"),
    ],
)
def test_wrong_arguments(model_folder, pos_folder, tmp_path, run, changes, message):
    given = {"--model_name_or_path": model_folder, "--task": "pos", "--data_dir": pos_folder, "--output_dir": tmp_path}
    status, _, errors = run("tagging", *(word for pair in (given | changes).items() for word in pair))
    assert status == 2
    assert message in errors
    assert not list(tmp_path.iterdir())
