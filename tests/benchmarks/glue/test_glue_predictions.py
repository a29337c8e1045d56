import json
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from official_files import write_official
from transformers import AutoTokenizer

from benchmarks.glue.__main__ import main
from benchmarks.glue.arguments import parse_arguments
from benchmarks.glue.data import TextCollator
from benchmarks.glue.leaderboard import PREDICTION_FILES, prediction_file
from benchmarks.glue.models import load_model_and_tokenizer
from benchmarks.glue.predictions import (
    choose_predictor,
    predict_in_order,
    prediction_loader,
    render_predictions,
    write_submission,
)
from benchmarks.glue.tasks import GLUE_TASKS
from benchmarks.glue.train import create_accelerator
from benchmarks.glue.validate import main as validate

SST2, MNLI = GLUE_TASKS["sst2"], GLUE_TASKS["mnli"]


@pytest.fixture
def official(tmp_path: Path, sentiment_rows) -> Path:
    """A folder of the official files: sst2 with all its test rows, mnli with ten of each test split, and AX."""
    folder = tmp_path / "official"
    write_official(folder, SST2, "train", sentiment_rows(64, 0))
    write_official(folder, SST2, "validation", sentiment_rows(13, 1))
    write_official(folder, SST2, "test", sentiment_rows(1821, 2))
    sizes = {"train": 32, "validation": 7, "test": 10}
    for split in ("train", *MNLI.validation_splits, *MNLI.test_splits):
        count = sizes[split.split("_")[0]]
        write_official(folder, MNLI, split, _pairs(sentiment_rows(count, 3)))
    write_official(folder, GLUE_TASKS["ax"], "test", _pairs(sentiment_rows(1104, 4)))
    return folder


def _pairs(rows: list[dict]) -> list[dict]:
    return [{"premise": row["sentence"], "hypothesis": "a film", "label": row["label"] * 2} for row in rows]


def read_predictions(path: Path) -> list[str]:
    header, *rows = path.read_text().rstrip("\n").split("\n")
    assert header == "index\tprediction"
    assert [row.split("\t")[0] for row in rows] == [str(index) for index in range(len(rows))]
    return [row.split("\t")[1] for row in rows]


@pytest.mark.filterwarnings("ignore:.*submission.zip lacks", "ignore:.*would not be taken")
def test_the_best_seed_predicts_in_the_order_of_the_rows(command, official: Path, tmp_path: Path, sentiment_rows):
    main([*command(data_dir=official, seeds="1,2", task_name="sst2", num_train_epochs=3), "--predict"])
    out = tmp_path / "out"
    found = read_predictions(out / "predictions" / "SST-2.tsv")
    scores = {
        seed: json.loads((out / "sst2" / f"seed-{seed}" / "results.json").read_text())["best"]["score"]
        for seed in (1, 2)
    }
    best = max(scores, key=lambda seed: scores[seed])
    record = json.loads((out / "predictions" / "predictions.json").read_text())["SST-2.tsv"]
    assert (record["seed"], record["rows"], record["validation_score"]) == (best, 1821, scores[best])
    assert record["model"] == str(out / "sst2" / f"seed-{best}" / "model")

    # One row at a time, in order, with the model of that seed.
    model, tokenizer = load_model_and_tokenizer(record["model"], SST2, trained_head=True)
    texts = [row["sentence"] for row in sentiment_rows(1821, 2)]
    with torch.inference_mode():
        logits = [model.eval()(**tokenizer(text, return_tensors="pt")).logits[0] for text in texts]
    # Rows about which the model does not care, and which rounding may decide, are left out.
    decided = [index for index, row in enumerate(logits) if (row[0] - row[1]).abs() > 1e-4]
    assert len(decided) > 1700
    assert [found[index] for index in decided] == [str(int(logits[index].argmax())) for index in decided]
    assert {*found} == {"0", "1"}
    with zipfile.ZipFile(out / "predictions" / "submission.zip") as archive:
        assert archive.namelist() == ["SST-2.tsv"]
    assert validate([str(out / "predictions" / "submission.zip"), "--allow_missing"]) == 0


def test_the_model_of_mnli_predicts_the_diagnostic_set(command, official: Path, tmp_path: Path):
    argv = [*command(data_dir=official, task_name="mnli,ax", num_train_epochs=1), "--predict"]
    with (
        pytest.warns(UserWarning, match=r"submission\.zip lacks CoLA\.tsv, SST-2\.tsv,"),
        pytest.warns(UserWarning, match=r"MNLI-m\.tsv would not be taken by the leaderboard: .* 9796 rows, got 10"),
        pytest.warns(UserWarning, match=r"MNLI-mm\.tsv would not be taken by the leaderboard: .* 9847 rows, got 10"),
    ):
        main(argv)
    folder = tmp_path / "out" / "predictions"
    assert {path.name for path in folder.iterdir()} == {
        "MNLI-m.tsv",
        "MNLI-mm.tsv",
        "AX.tsv",
        "predictions.json",
        "submission.zip",
    }
    assert len(read_predictions(folder / "AX.tsv")) == 1104
    assert {*read_predictions(folder / "AX.tsv")} <= set(MNLI.labels)
    assert len(read_predictions(folder / "MNLI-mm.tsv")) == 10
    assert not (tmp_path / "out" / "ax").exists()
    # Later calls add to the archive, here one that only evaluates.
    model = shutil.copytree(tmp_path / "out" / "mnli" / "seed-1" / "model", tmp_path / "model")
    before = (folder / "submission.zip").read_bytes()
    argv = command(model_name_or_path=model, data_dir=official, task_name="mnli", num_train_epochs=0)
    with pytest.warns(UserWarning, match="lacks CoLA"):
        main([*argv, "--predict", "--overwrite_output_dir"])
    assert json.loads((folder / "predictions.json").read_text())["AX.tsv"]["model"] == str(model)
    assert (folder / "submission.zip").read_bytes() == before


def test_known_labels_of_a_test_split_are_scored(command, tmp_path: Path, sentiment_rows, write_split, capsys):
    for split, seed in (("train", 0), ("validation", 1), ("test", 2)):
        write_split(tmp_path / "data", "sst2", split, sentiment_rows(64 if split == "train" else 21, seed))
    with pytest.warns(UserWarning, match="there must be 1821 rows, got 21"):
        main([*command(data_dir=tmp_path / "data", num_train_epochs=3), "--predict"])
    folder = tmp_path / "out" / "predictions"
    record = json.loads((folder / "predictions.json").read_text())["SST-2.tsv"]
    found = read_predictions(folder / "SST-2.tsv")
    expected = sum(int(one) == row["label"] for one, row in zip(found, sentiment_rows(21, 2), strict=True)) / 21
    assert record["metrics"]["accuracy"] == pytest.approx(expected)
    assert f"accuracy {expected:.4f}" in capsys.readouterr().out


def test_files_of_ones_own_are_trained_on_predicted_and_tabled(command, tmp_path: Path, sentiment_rows):
    names, options = ("Bad", "GOOD"), {}
    for split, count in (("train", 64), ("validation", 13), ("test", 9)):
        rows = [
            {"sentence1": row["sentence"], **({"label": names[row["label"]]} if split != "test" else {})}
            for row in sentiment_rows(count, count)
        ]
        options[f"{split}_file"] = tmp_path / f"{split}.jsonl"
        options[f"{split}_file"].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    argv = command(task_name="reviews", num_train_epochs=3, **options)
    position = argv.index("--data_dir")
    main([*argv[:position], *argv[position + 2 :], "--predict"])
    out = tmp_path / "out"
    results = json.loads((out / "reviews" / "seed-1" / "results.json").read_text())
    assert (results["suite"], results["model_config"]["id2label"]) == ("files", {"0": "Bad", "1": "GOOD"})
    assert results["majority_baseline"]["validation"].keys() == {"validation"}
    found = read_predictions(out / "predictions" / "reviews.tsv")
    assert len(found) == 9
    assert {*found} <= {*names}
    assert not (out / "predictions" / "submission.zip").exists()
    assert "| reviews | " in (out / "results.md").read_text()
    assert "accuracy " in (out / "results.md").read_text()


def test_without_any_test_split_nothing_is_trained(command, tmp_path: Path):
    with pytest.raises(ValueError, match="--predict needs a test split; none in"):
        main([*command(), "--predict"])
    assert not (tmp_path / "out").exists()


def test_without_a_kept_model_there_is_nothing_to_predict_with(command):
    with pytest.raises(ValueError, match="--save_model must be best or last, got 'none'"):
        main([*command(save_model="none"), "--predict"])
    with pytest.raises(ValueError, match="No model of 'sst2' was kept"):
        choose_predictor(SST2, parse_arguments(command()))


@pytest.mark.parametrize(("save_model", "seed"), [("best", 2), ("last", 1)])
def test_seeds_are_compared_by_the_epoch_that_was_kept(command, tmp_path: Path, save_model: str, seed: int):
    for number, best, last in ((1, 0.7, 0.6), (2, 0.8, 0.5), (3, 0.8, 0.6), (4, 0.9, 0.9)):
        folder = tmp_path / "out" / "sst2" / f"seed-{number}"
        (folder if number == 4 else folder / "model").mkdir(parents=True)
        scores = {"best": {"score": best}, "last": {"score": last}}
        (folder / "results.json").write_text(json.dumps(scores))
    chosen = choose_predictor(SST2, parse_arguments(command(seeds="1,2,3,4", save_model=save_model)))
    assert (chosen.seed, chosen.model) == (seed, str(tmp_path / "out" / "sst2" / f"seed-{seed}" / "model"))


def test_numbers_are_clipped_and_have_three_decimals():
    logits = torch.tensor([[-0.4], [-0.0], [0.0004], [2.34567], [4.9996], [7.0]])
    assert render_predictions(GLUE_TASKS["stsb"], logits, ()) == ["0.000", "0.000", "0.000", "2.346", "5.000", "5.000"]


@pytest.mark.parametrize("name", ["cola", "mrpc", "qqp", "wnli", "mnli", "qnli", "rte"])
def test_classes_are_written_as_the_leaderboard_wants(name: str):
    task = GLUE_TASKS[name]
    file = prediction_file(task, task.test_splits[0])
    written = render_predictions(task, torch.eye(len(task.labels)), file.labels)
    assert written == (list(task.labels) if name in ("mnli", "qnli", "rte") else ["0", "1"])


def test_a_row_predicted_twice_is_an_error(model_dir: Path, command):
    arguments = parse_arguments(command())
    accelerator = create_accelerator(arguments.fine_tuning)
    model, tokenizer = load_model_and_tokenizer(str(model_dir), SST2)
    split = Dataset.from_dict({"sentence": ["good film", "bad", "the story was dull"]})
    loader = prediction_loader(split, TextCollator(tokenizer, SST2, 16), arguments)
    logits = predict_in_order(accelerator, model, accelerator.prepare(loader))
    with torch.inference_mode():
        for text, row in zip(split["sentence"][:], logits, strict=True):
            one = model(**AutoTokenizer.from_pretrained(model_dir)(text, return_tensors="pt")).logits[0]
            torch.testing.assert_close(row, one)
    batches = [*loader, next(iter(loader))]

    class Doubled:
        dataset = split

        def __iter__(self):
            return iter(batches)

    with pytest.raises(RuntimeError, match="6 predictions do not cover the 3 rows"):
        predict_in_order(accelerator, model, Doubled())


def test_the_archive_holds_every_file_and_repeats(tmp_path: Path):
    for file in PREDICTION_FILES:
        (tmp_path / file.name).write_text("index\tprediction\n")
    first = write_submission(tmp_path).read_bytes()
    assert write_submission(tmp_path).read_bytes() == first
    with zipfile.ZipFile(tmp_path / "submission.zip") as archive:
        assert archive.namelist() == [file.name for file in PREDICTION_FILES]
        assert {member.external_attr >> 16 for member in archive.infolist()} == {0o644}
    (tmp_path / "AX.tsv").unlink()
    with pytest.warns(UserWarning, match=r"lacks AX\.tsv; the leaderboard wants all 11 files"):
        write_submission(tmp_path)
