"""Models that were trained and published, loaded by readers who have this package and by readers who have not."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from fresh_processes import run_scripts, site_with_only
from loopback_hub import TOKEN, LoopbackHub, use
from tiny_models import MODEL_TYPES, SENTENCES, TOKENIZERS, tiny_model
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments
from typer.testing import CliRunner

from hf_lineage.auto import FAMILIES
from hf_lineage.cli import app

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked")

WAYS = ["plain", "package", "code"]

LOAD = """
import json, sys
if import_first:
    import hf_lineage
import torch, transformers
from transformers import AutoModelForSequenceClassification, AutoTokenizer
arguments = {} if trust is None else {"trust_remote_code": trust}
def outputs(source):
    tokenizer = AutoTokenizer.from_pretrained(source, **arguments)
    model = AutoModelForSequenceClassification.from_pretrained(source, **arguments)
    with torch.no_grad():
        inputs = tokenizer(sentences, padding=True, return_tensors="pt")
        return tokenizer, model, model(**inputs).logits
for repo, result in repositories.items():
    tokenizer, model, logits = outputs(repo)
    torch.save(logits, f"{result}.pt")
    model.save_pretrained(result)
    tokenizer.save_pretrained(result)
    assert torch.equal(outputs(result)[2], logits)
    modules = {type(each).__module__.partition(".")[0] for each in (tokenizer, model, model.config)}
    with open(f"{result}.json", "w") as file:
        json.dump(sorted(modules), file)
"""

EVERY_CLASS = """
for auto_class, name in models.items():
    auto = getattr(transformers, auto_class)
    model = auto.from_pretrained(repo, trust_remote_code=True, ignore_mismatched_sizes=True)
    assert type(model).__name__ == name, type(model)
    assert type(model).__module__.startswith("transformers_modules."), type(model)
"""

FAIL = """
import importlib.util
for name in ("hf_lineage", "accelerate", "datasets", "h5py", "wrapt", "sentencepiece"):
    assert importlib.util.find_spec(name) is None, name
from transformers import AutoModelForSequenceClassification, AutoTokenizer
for repo in repositories:
    for trust in (True, False):
        for auto_class in (AutoTokenizer, AutoModelForSequenceClassification):
            try:
                auto_class.from_pretrained(repo, trust_remote_code=trust)
            except Exception as error:
                said = " ".join(str(error).split())
                print(f"{repo} {trust} {auto_class.__name__}: {type(error).__name__}: {said}")
"""


@dataclass
class Published:
    """What was published, and what came of loading it."""

    hub: LoopbackHub
    folder: Path
    logits: dict[str, torch.Tensor] = field(default_factory=dict)
    outcomes: dict[str, tuple[int, str]] = field(default_factory=dict)

    def loaded(self, case: str, name: str) -> tuple[torch.Tensor, list[str]]:
        """The logits of a model in a case of `LOAD`, and the packages of the classes."""
        status, output = self.outcomes[case]
        assert status == 0, output
        packages = json.loads((self.folder / f"{name}.json").read_text())
        return torch.load(self.folder / f"{name}.pt", weights_only=True), packages

    def saved(self, name: str) -> tuple[set[str], dict, dict]:
        """What a case of `LOAD` has saved: names of Python files, and the `auto_map` of model and tokenizer."""
        folder = self.folder / name
        configs = [json.loads((folder / file).read_text()) for file in ("config.json", "tokenizer_config.json")]
        maps = [config.get("auto_map", {}) for config in configs]
        return {path.name for path in folder.glob("*.py")}, *maps


def train_and_publish(hub: LoopbackHub, folder: Path, model_type: str) -> torch.Tensor:
    """Two steps with Trainer, which publishes too, and then the two ways with code."""
    tokenizer = TOKENIZERS[model_type]()
    model = tiny_model(model_type)
    before = [parameter.clone() for parameter in model.parameters()]
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            str(folder), max_steps=2, per_device_train_batch_size=2, use_cpu=True, report_to="none",
            push_to_hub=True, hub_model_id=f"{model_type}-plain", save_steps=1, disable_tqdm=True,
        ),
        train_dataset=[{**tokenizer(sentence), "labels": label} for label, sentence in enumerate(SENTENCES)] * 2,
        data_collator=DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
    )  # fmt: skip
    trainer.train()
    trainer.push_to_hub()
    assert any(not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))
    for way in ("package", "code"):
        options = ["--with-code"] if way == "code" else []
        result = CliRunner().invoke(app, ["push", str(folder), f"{model_type}-{way}", *options])
        assert result.exit_code == 0, result.output
    with torch.no_grad():
        return model.eval()(**tokenizer(SENTENCES, padding=True, return_tensors="pt")).logits


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Iterator[Published]:
    folder = tmp_path_factory.mktemp("published")
    with LoopbackHub() as hub, pytest.MonkeyPatch.context() as monkeypatch:
        use(hub, folder / "cache", monkeypatch)
        found = Published(hub, folder)
        for model_type in MODEL_TYPES:
            torch.manual_seed(0)
            found.logits[model_type] = train_and_publish(hub, folder / model_type, model_type)
        environment = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        for kind, site in (("with", None), ("without", site_with_only(["torch", "transformers"], folder / "site"))):
            cases = cases_with_package(folder) if site is None else cases_without(folder)
            found.outcomes |= run_scripts(cases, {**environment, "HF_HOME": str(folder / f"home {kind}")}, site)
        yield found


def load_case(folder: Path, import_first: bool, trust: bool | None, results: dict[str, str]) -> tuple[str, dict]:
    """Loads repositories, and saves what came of each under a name."""
    repositories = {f"tester/{repo}": str(folder / name) for repo, name in results.items()}
    return LOAD, {
        "repositories": repositories,
        "import_first": import_first,
        "trust": trust,
        "sentences": SENTENCES,
    }


def cases_with_package(folder: Path) -> dict[str, tuple[str, dict]]:
    everything = {f"{model_type}-{way}": f"imported-{model_type}-{way}" for model_type in MODEL_TYPES for way in WAYS}
    cases = {"imported": load_case(folder, True, None, everything)}
    for model_type in MODEL_TYPES:
        for way in ("package", "code"):
            name = f"trusted-{model_type}-{way}"
            cases[name] = load_case(folder, False, True, {f"{model_type}-{way}": name})
    return cases


def cases_without(folder: Path) -> dict[str, tuple[str, dict]]:
    cases = {
        "fail": (FAIL, {"repositories": [f"tester/{model_type}-{way}" for model_type in MODEL_TYPES for way in WAYS]})
    }
    for model_type in MODEL_TYPES:
        repo = f"{model_type}-code"
        name = f"without-{repo}"
        script, variables = load_case(folder, False, True, {repo: name})
        more = {"repo": f"tester/{repo}", "models": FAMILIES[model_type].models}
        cases[name] = (script + EVERY_CLASS, variables | more)
    return cases


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_with_the_package_imported_it_needs_no_trust_and_saves_no_code(model_type, way, published):
    name = f"imported-{model_type}-{way}"
    logits, packages = published.loaded("imported", name)
    assert torch.equal(logits, published.logits[model_type])
    assert packages == ["hf_lineage"]
    assert published.saved(name) == (set(), {}, {})


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_with_the_package_not_imported_the_line_in_the_repository_imports_it(model_type, published):
    name = f"trusted-{model_type}-package"
    logits, packages = published.loaded(name, name)
    assert torch.equal(logits, published.logits[model_type])
    assert packages == ["hf_lineage"]
    assert published.saved(name) == (set(), {}, {})


@pytest.mark.parametrize("kind", ["trusted", "without"])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_the_code_in_the_repository_gives_the_same_and_travels_on(model_type, kind, published):
    """With the package not imported, and without it; there every Auto class has found its class too."""
    name = f"{kind}-{model_type}-code"
    logits, packages = published.loaded(name, name)
    assert torch.equal(logits, published.logits[model_type])
    assert packages == ["transformers_modules"]
    files, model_map, tokenizer_map = published.saved(name)
    repository = published.hub.files(f"tester/{model_type}-code")
    assert files == {name for name in repository if name.endswith(".py")}
    assert model_map == json.loads(repository["config.json"])["auto_map"]
    assert tokenizer_map == json.loads(repository["tokenizer_config.json"])["auto_map"]


def said(published: Published, model_type: str, way: str, trust: bool) -> list[str]:
    """What AutoTokenizer and an AutoModel have said without the package."""
    status, output = published.outcomes["fail"]
    assert status == 0, output
    start = f"tester/{model_type}-{way} {trust} "
    return [line.removeprefix(start) for line in output.splitlines() if line.startswith(start)]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_without_the_package_the_line_in_the_repository_says_what_to_install(model_type, published):
    hint = (
        "ImportError: This modeling file requires the following packages that were not found in your environment: "
        "hf_lineage. Run `pip install hf_lineage`"
    )
    expected = [f"AutoTokenizer: {hint}", f"AutoModelForSequenceClassification: {hint}"]
    assert said(published, model_type, "package", True) == expected


@pytest.mark.parametrize("way", ["package", "code"])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_no_code_runs_without_trust(model_type, way, published):
    lines = said(published, model_type, way, False)
    assert len(lines) == 2
    for line in lines:
        assert "ValueError: The repository" in line
        assert "trust_remote_code=True" in line


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_without_the_package_a_plain_model_is_unknown(model_type, published):
    (line,) = (line for line in said(published, model_type, "plain", True) if line.startswith("AutoModel"))
    assert f"model type `{model_type}` but Transformers does not recognize" in line


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_trainer_publishes_no_code_and_no_token(model_type, published):
    files = published.hub.files(f"tester/{model_type}-plain")
    assert not [name for name in files if name.endswith(".py")]
    assert {"config.json", "model.safetensors", "tokenizer_config.json", "README.md"} <= files.keys()
    assert not [name for name, content in files.items() if TOKEN.encode() in content]
