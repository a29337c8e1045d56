"""Model cards: what they say is what the folder holds, and their listings run."""

import json
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest
from card_families import FAMILIES, tiny_config, tiny_tokenizer
from huggingface_hub import ModelCard
from transformers import AutoModel, BertConfig, BertModel

import hf_lineage
from benchmarks.glue.__main__ import main as fine_tune
from hf_lineage.auto import FAMILIES as TABLE
from hf_lineage.cli import main
from hf_lineage.hub.family_card import family_card
from hf_lineage.hub.model_card import create_model_card, write_model_card
from hf_lineage.pretraining.__main__ import main as pretrain

CLASSES = [(family, name) for family in FAMILIES for name in TABLE[family].models.values()]
CLASSES.append(("lineage_xlnet", "LineageXLNetForQuestionAnswering"))
# The Hub's tasks; that of a language model depends on its family
TASKS = {
    "Model": "feature-extraction",
    "ForMaskedLM": "fill-mask",
    "LMHeadModel": "text-generation",
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForQuestionAnsweringSimple": "question-answering",
    "ForMultipleChoice": "multiple-choice",
}
PRETRAINING_TASKS = {"elmo": "feature-extraction", "lineage_albert": "fill-mask", "lineage_xlnet": "text-generation"}
PAPERS = {"elmo": "peters-etal-2018", "lineage_albert": "lan-etal-2020", "lineage_xlnet": "yang-etal-2019"}


def saved(folder: Path, family: str, name: str | None = None, **fields) -> Path:
    """A tiny model in a folder, with its tokenizer."""
    name = name or TABLE[family].models["AutoModel"]
    getattr(hf_lineage, name)(tiny_config(family, **fields)).save_pretrained(folder)
    tokenizer = tiny_tokenizer(family)
    if family == "elmo":
        words = folder / "words.txt"
        words.write_text("\n".join(["<S>", "</S>", "<UNK>", "It", "was", "the", "film", ".", "one"]) + "\n")
        tokenizer = hf_lineage.ElmoTokenizer(vocab_file=str(words))
        words.unlink()
    tokenizer.save_pretrained(folder)
    return folder


def table(text: str, heading: str) -> dict[str, str]:
    """The rows of two columns in a section."""
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE))


def listing(text: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return code


@pytest.fixture
def run(monkeypatch, capfd):
    """Runs `hf-lineage card` in this process; gives exit status, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["hf-lineage", "card", *map(str, arguments)])
        capfd.readouterr()
        try:
            main()
            status = 0
        except SystemExit as error:
            status = error.code or 0
        return status, *capfd.readouterr()

    return command


@pytest.mark.parametrize(("family", "name"), CLASSES, ids=[name for _, name in CLASSES])
def test_the_card_of_every_class_is_true_and_its_listing_runs(family, name, tmp_path, monkeypatch):
    folder = saved(tmp_path / "me" / "a-model", family, name)
    text = str(create_model_card(folder, "me/a-model"))
    data = ModelCard(text).data
    suffix = re.sub("^(Elmo|LineageAlbert|LineageXLNet)", "", name)
    assert data.pipeline_tag == TASKS.get(suffix, PRETRAINING_TASKS[family])
    assert (data.library_name, data.license, data.eval_results) == ("transformers", None, None)
    model = getattr(hf_lineage, name).from_pretrained(folder)
    rows = table(text, "Model")
    assert rows["class"] == f"`{name}`"
    assert rows["total"] == f"{sum(parameter.numel() for parameter in model.parameters()):,}"
    assert type(tiny_tokenizer(family)).__name__ in rows["tokenizer"]
    assert PAPERS[family] in text
    assert str(tmp_path) not in text
    assert "{" not in re.sub(r"```.*?```", "", text, flags=re.DOTALL)  # nothing of the template is left
    monkeypatch.chdir(tmp_path)
    Path("listing.py").write_text(listing(text), encoding="utf-8")
    found = runpy.run_path("listing.py")
    assert "hf_lineage" in found
    if "model" in found:
        # texts are scored by the language model alone
        assert type(found["model"]).__name__ == name.replace("XLNetForPreTraining", "XLNetLMHeadModel")


def test_the_layer_map_says_which_layers_share(tmp_path):
    fields = {"share_parameters": "attention", "num_hidden_groups": 2, "ffn_layer_blocks": [0, 0, 0, 1]}
    text = str(create_model_card(saved(tmp_path, "lineage_albert", **fields)))
    assert re.findall(r"^\| ([\d-]+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE) == [
        ("0-1", "0", "0"),
        ("2", "1", "0"),
        ("3", "1", "1"),
    ]
    assert table(text, "Model")["shared"] == "4 layers on 2 attention and 2 feed-forward blocks"
    assert "No two layers share weights" in str(create_model_card(saved(tmp_path / "elmo", "elmo")))


def test_papers_follow_the_model(tmp_path):
    bert_like = saved(tmp_path / "bert", "lineage_albert", share_parameters="none")
    assert "devlin-etal-2019" in str(create_model_card(bert_like))
    assert "devlin-etal-2019" not in str(create_model_card(saved(tmp_path / "albert", "lineage_albert")))
    many = tmp_path / "many"
    AutoModel.from_config(tiny_config("elmo", char_vocabulary="dictionary")).save_pretrained(many)
    assert "che-etal-2018" in str(create_model_card(many))


def test_what_is_told_is_written(tmp_path):
    folder = saved(tmp_path, "elmo")
    card = create_model_card(
        folder, "me/x", language=["en", "de"], license="cc-by-4.0", notes=["Mind the gap."],
        source_facts={"format": "a | b", "files": "one\ntwo"},
    )  # fmt: skip
    data = ModelCard(str(card)).data
    assert (data.language, data.license) == (["en", "de"], "cc-by-4.0")
    text = str(card)
    assert "| format | a \\| b |\n| files | one two |" in text
    assert "The weights: cc-by-4.0." in text
    assert "Mind the gap." in text
    assert "Nothing is known" not in text


def test_a_model_without_a_tokenizer_or_with_code_says_so(tmp_path):
    AutoModel.from_config(tiny_config("lineage_xlnet")).save_pretrained(tmp_path)
    text = str(create_model_card(tmp_path))
    assert "needs a tokenizer" in text
    assert table(text, "Model")["tokenizer"] == "none in the folder"
    assert "trust_remote_code" not in text
    (tmp_path / "modeling_xlnet.py").write_text("raise SystemExit('never run')\n")
    assert "`trust_remote_code=True` loads it. Read it first" in str(create_model_card(tmp_path))


@pytest.fixture(scope="module")
def fine_tuned(tmp_path_factory):
    """The folder of a run of `benchmarks.glue`, its paths absolute."""
    folder = tmp_path_factory.mktemp("secret-place")
    argv = sys.orig_argv
    arguments = [
        "--model_name_or_path", "albert-tiny", "--task_name", "sentiment", "--suite", "minisuite",
        "--max_length", "16", "--output_dir", str(folder / "out"), "--max_train_samples", "64",
        "--num_train_epochs", "1",
    ]  # fmt: skip
    sys.orig_argv = ["/opt/venv/bin/python3.11", "-m", "benchmarks.glue", *arguments]
    try:
        fine_tune(arguments)
    finally:
        sys.orig_argv = argv
    (results,) = (folder / "out").rglob("results.json")
    return results.parent


def test_fine_tuning_is_in_the_card_as_it_was_measured(fine_tuned):
    folder = fine_tuned / "model"
    text = write_model_card(folder, create_model_card(folder, "me/sentiment")).read_text(encoding="utf-8")
    results = json.loads((fine_tuned / "results.json").read_text())
    data = ModelCard(text).data
    (split, metrics), *_ = results["last"]["validation"].items()
    found = {(each.dataset_split, each.metric_type): each.metric_value for each in data.eval_results}
    assert found == {(split, "accuracy"): metrics["accuracy"]}
    (result,) = data.eval_results
    assert (result.task_type, result.dataset_name) == ("text-classification", "generated task sentiment")
    assert (data.model_name, data.metrics, data.datasets) == ("sentiment", ["accuracy"], None)
    rows = table(text, "Training")
    assert rows["started from"] == "albert-tiny"
    assert rows["training data"].startswith("64 examples")
    assert rows["batch"] == "32 examples a step"
    assert "the training data was cut to 64 examples" in text
    assert f"{results['majority_baseline']['score']:.4g}" in text
    assert "python -m benchmarks.glue --model_name_or_path albert-tiny" in text
    assert "--output_dir out" in text
    assert "secret-place" not in text
    assert "/opt/venv" not in text


def test_results_of_another_architecture_are_refused(fine_tuned, tmp_path):
    folder = saved(tmp_path, "elmo")
    shutil.copy(fine_tuned / "results.json", folder)
    with pytest.raises(ValueError, match="type 'lineage_albert', not of this 'elmo'"):
        create_model_card(folder)
    text = str(create_model_card(folder, results=[]))
    assert "Nothing is known" in text


def test_metrics_have_the_names_of_the_hub_and_of_its_dataset(fine_tuned, tmp_path):
    content = json.loads((fine_tuned / "results.json").read_text())
    metrics = {"pearson": 0.5, "spearman": 0.25, "loss": 1.0, "examples": 9, "confusion_matrix": [[1]]}
    content.update(suite="glue", task="stsb", dev_selected=True)
    content["arguments"]["save_model"] = "best"
    content["best"] = {**content["last"], "validation": {"validation": metrics}}
    content["data"]["splits"]["validation"]["is_subset"] = True
    (tmp_path / "run.json").write_text(json.dumps(content))
    card = create_model_card(fine_tuned / "model", results=[tmp_path / "run.json"])
    data = ModelCard(str(card)).data
    assert [(each.metric_type, each.metric_value) for each in data.eval_results] == [
        ("pearsonr", 0.5),
        ("spearmanr", 0.25),
    ]
    assert {(each.dataset_type, each.dataset_config) for each in data.eval_results} == {("nyu-mll/glue", "stsb")}
    assert data.datasets == ["nyu-mll/glue"]
    for remark in ("settings were chosen on the validation", "epoch was chosen on the validation", "is a part of"):
        assert remark in str(card)


def test_pretraining_is_in_the_card_as_it_was_measured(tmp_path, monkeypatch):
    folder = tmp_path / "secret-place"
    folder.mkdir()
    (folder / "text.txt").write_text("\n\n".join("It was the film .\nThe film was sweet jam ." for _ in range(40)))
    tiny_tokenizer("lineage_albert").save_pretrained(folder / "tokenizer")
    sizes = {"embedding_size": 4, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12}
    arguments = [
        f"--train_files={folder / 'text.txt'}", f"--validation_files={folder / 'text.txt'}", "--max_steps=2",
        f"--tokenizer_name_or_path={folder / 'tokenizer'}", f"--output_dir={folder / 'out'}", "--max_length=16",
        f"--model_config={json.dumps({**sizes, 'num_hidden_layers': 2})}", "--per_device_train_batch_size=4",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "orig_argv", ["/opt/venv/bin/python", "-m", "hf_lineage.pretraining", *arguments])
    pretrain(arguments)
    text = str(create_model_card(folder / "out" / "model", "me/albert"))
    results = json.loads((folder / "out" / "results.json").read_text())
    rows = table(text, "Training")
    assert rows["training data"] == f"text.txt: {results['tokens']:,} tokens were read in 2 steps"
    assert "--train_files=text.txt" in text
    assert "secret-place" not in text
    measured = results["validation"]["last"]["validation"]
    found = {each.metric_name: each.metric_value for each in ModelCard(text).data.eval_results}
    expected = {key.replace("_", " "): value for values in measured.values() for key, value in values.items()}
    assert found
    assert all(found[name] == expected[name] for name in found)
    assert {each.task_type for each in ModelCard(text).data.eval_results} == {"fill-mask"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot read the results"),
        ("[]", "holds no results of"),
        ('{"benchmark": "other"}', "holds no results of"),
        ('{"benchmark": "benchmarks.glue"}', "is damaged: KeyError"),
        ('{"family": "albert", "arguments": 3}', "is damaged"),
    ],
)
def test_damaged_results_are_refused(content, words, tmp_path):
    folder = saved(tmp_path, "elmo")
    (folder / "results.json").write_text(content)
    with pytest.raises(ValueError, match=words):
        create_model_card(folder)


def test_the_command_prints_or_writes(tmp_path, run):
    folder = saved(tmp_path / "elmo", "elmo")
    status, said, errors = run(folder, "--name", "me/elmo", "--language", "en", "--license", "mit")
    assert (status, errors) == (0, "")
    assert ModelCard(said).data.language == ["en"]
    assert not (folder / "README.md").exists()
    assert run(folder, "--write")[0] == 0
    assert (folder / "README.md").read_text().startswith("---\n")
    status, _, errors = run(folder, "--write")
    assert (status, len(errors.splitlines())) == (2, 1)
    assert "README.md exists" in errors
    assert run(folder, "--write", "--overwrite", "--license", "mit")[0] == 0
    assert ModelCard.load(folder / "README.md").data.license == "mit"
    assert run(folder, "--overwrite")[0] == 2


def test_folders_without_a_model_of_the_package_are_refused(tmp_path, run):
    status, _, errors = run(tmp_path)
    assert status == 2
    assert "there is no config.json" in errors
    saved(tmp_path / "model", "elmo")
    assert "a run keeps its model in model/" in run(tmp_path)[2]
    sizes = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(**sizes, intermediate_size=8)).save_pretrained(tmp_path / "bert")
    status, _, errors = run(tmp_path / "bert")
    assert status == 2
    assert "no model card for the model type 'bert'; there is one for elmo, lineage_albert, lineage_xlnet" in errors


def test_a_damaged_tokenizer_is_named(tmp_path, run):
    folder = saved(tmp_path / "elmo", "elmo")
    (folder / "tokenizer_config.json").write_text("{")
    status, _, errors = run(folder)
    assert status == 2
    assert f"the tokenizer in {folder} cannot be read" in errors


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_a_part_of_the_card(family):
    card = family_card(family)
    assert card.tag in family
    for paper in card.citations(tiny_config(family)):
        assert re.match(r"@inproceedings\{[\w-]+,\n", paper)
        assert paper.count("{") == paper.count("}")
