"""Registration with transformers' Auto classes, in fresh processes, since it depends on what is imported when."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hf_lineage
from hf_lineage import ElmoConfig, ElmoForTokenClassification, ElmoTokenizer
from hf_lineage.auto import FAMILIES

REPOSITORY = str(Path(hf_lineage.__file__).parents[1])

FIND_EVERYTHING = """
import sys
folder = sys.argv[1]
from transformers import AutoConfig, AutoTokenizer, pipeline
import transformers
assert type(AutoConfig.from_pretrained(folder)).__name__ == "ElmoConfig"
assert type(AutoConfig.for_model("elmo")).__name__ == "ElmoConfig"
assert type(AutoTokenizer.from_pretrained(folder)).__name__ == "ElmoTokenizer"
from hf_lineage.auto import FAMILIES
assert sum(len(family.models) for family in FAMILIES.values()) >= 6
sizes = {
    "elmo": AutoConfig.from_pretrained(folder, vocab_size=9).to_dict(),
    "lineage_albert": {"hidden_size": 8, "embedding_size": 4, "num_attention_heads": 2, "vocab_size": 9},
    "lineage_xlnet": {"d_model": 8, "n_head": 2, "d_inner": 8, "n_layer": 1, "vocab_size": 9},
}
assert sizes.keys() == FAMILIES.keys()
for model_type, family in FAMILIES.items():
    for auto_class, name in family.models.items():
        config = AutoConfig.for_model(model_type, **{k: v for k, v in sizes[model_type].items() if k != "model_type"})
        model = getattr(transformers, auto_class).from_config(config)
        assert type(model).__name__ == name, (auto_class, type(model))
model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
assert type(model).__name__ == "ElmoForTokenClassification"
tag = pipeline("token-classification", model=folder, ignore_labels=[])
assert type(tag).__name__ == "ElmoTokenClassificationPipeline"
assert [entity["word"] for entity in tag("It isn't.")] == ["It", "is", "n't", "."]
import hf_lineage
config = AutoConfig.from_pretrained(folder)
for name, value in {"ElmoModel": "AutoModel", "ElmoForTokenClassification": "AutoModelForTokenClassification"}.items():
    assert getattr(transformers, value)._model_mapping[type(config)] is getattr(hf_lineage, name)
print("found")
"""

ORDERS = {
    "package alone": "import hf_lineage",
    "package, AutoModel": "import hf_lineage; from transformers import AutoModel",
    "package, AutoConfig": "import hf_lineage; from transformers import AutoConfig",
    "package, AutoTokenizer": "import hf_lineage; from transformers import AutoTokenizer",
    "package, PreTrainedModel": "import hf_lineage; from transformers import PreTrainedModel",
    "package, pipeline": "import hf_lineage; from transformers import pipeline",
    "package, Trainer": "import hf_lineage; from transformers import Trainer",
    "package, BertModel": "import hf_lineage; from transformers import BertModel",
    "package, a module deep inside": "import hf_lineage, transformers.pipelines.token_classification",
    "AutoModel, package": "from transformers import AutoModel; import hf_lineage",
    "pipeline, package": "from transformers import pipeline; import hf_lineage",
    "a model first": "from hf_lineage import ElmoModel",
    "the tokenizer first": "from hf_lineage import ElmoTokenizer; ElmoTokenizer()('a')",
    "the pipeline first": "from hf_lineage import ElmoTokenClassificationPipeline",
    "the other pipeline first": "from hf_lineage import LineageXLNetTextGenerationPipeline",
    "reloaded": "import hf_lineage, importlib; importlib.reload(hf_lineage); from hf_lineage import ElmoModel",
    "reloaded with its table after use": """
import hf_lineage, importlib
hf_lineage.ElmoModel, hf_lineage.ElmoTokenizer
importlib.reload(hf_lineage.auto)
importlib.reload(hf_lineage)
""",
    "registered again": "import hf_lineage.auto; hf_lineage.auto.register(); hf_lineage.auto.register()",
    "registered again after use": """
import hf_lineage.auto
from transformers import AutoModel, pipeline
hf_lineage.auto.register()
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    config = ElmoConfig(
        char_cnn_filters=[[1, 4]], num_highway_layers=0, hidden_size=8, lstm_hidden_size=6, classifier_hidden_size=4
    )
    ElmoForTokenClassification(config).save_pretrained(path)
    ElmoTokenizer().save_pretrained(path)
    return str(path)


USE_CHANGES_NOTHING = """
import os, random
import numpy, torch, transformers
transformers.AutoModel, transformers.pipeline, transformers.Trainer
from transformers.utils import logging
def state():
    return [
        dict(os.environ), logging.get_verbosity(), torch.get_rng_state().tolist(), torch.get_default_dtype(),
        torch.get_num_threads(), torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled(),
        random.getstate(), numpy.random.get_state()[1].tolist(),
    ]
before = state()
import hf_lineage
for name in hf_lineage.__all__:
    getattr(hf_lineage, name)
assert state() == before
"""

WITHOUT_THE_PACKAGE = """
import sys
from transformers import AutoModel
try:
    AutoModel.from_pretrained(sys.argv[1])
except ValueError as error:
    assert "elmo" in str(error)
else:
    raise AssertionError
"""

IMPORT_ALONE = """
import logging, os, random, sys, warnings
def state():
    loggers = {name: getattr(each, "level", None) for name, each in logging.root.manager.loggerDict.items()}
    filters, paths = [str(each) for each in warnings.filters], list(sys.path)
    root = [logging.root.level, len(logging.root.handlers)]
    return [dict(os.environ), root, loggers, random.getstate(), filters, paths]
import wrapt  # what it changes is its own affair
before = state()
modules = set(sys.modules)
import hf_lineage
assert state() == before
new = {name.partition(".")[0] for name in set(sys.modules) - modules}
assert not new & {"torch", "transformers", "numpy", "h5py", "typer", "huggingface_hub"}, new
assert set(hf_lineage.__all__) <= set(dir(hf_lineage))
try:
    hf_lineage.Absent
except AttributeError as error:
    assert "hf_lineage" in str(error) and "Absent" in str(error)
else:
    raise AssertionError
assert "torch" not in sys.modules
hf_lineage.ElmoConfig
import hf_lineage.elmo.tokenization_elmo
"""


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": REPOSITORY, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )


# Each script needs a process that has not imported transformers, and a process takes seconds to import torch and the
# like. So one process imports those, which no registration waits for, and forks a child for each script.
FORK = """
import json, os, sys, tempfile, traceback
import accelerate, datasets, sklearn.metrics, tokenizers, torch, torch._dynamo
torch.set_num_threads(1)
scripts, folder = json.loads(sys.argv[1]), sys.argv[2]
assert not any(name.partition(".")[0] in ("transformers", "hf_lineage") for name in sys.modules)
results = {}
for name, script in scripts.items():
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            sys.argv = ["-c", folder]
            status = 1
            try:
                exec(script, {"__name__": "__main__"})
                status = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        results[name] = [status, output.read()]
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def outcomes(folder):
    """Exit status and output of each script."""
    scripts = {order: f"{code}\n{FIND_EVERYTHING}" for order, code in ORDERS.items()}
    scripts |= {"use of every name": USE_CHANGES_NOTHING, "without the package": WITHOUT_THE_PACKAGE}
    if not hasattr(os, "fork"):
        results = {name: run(script, folder) for name, script in scripts.items()}
        return {name: [result.returncode, result.stdout + result.stderr] for name, result in results.items()}
    result = run(FORK, json.dumps(scripts), folder)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("order", ORDERS)
def test_everything_is_found_in_any_order_of_imports(order, outcomes):
    status, output = outcomes[order]
    assert status == 0, output
    lines = [line for line in output.splitlines() if line and "Loading weights" not in line]
    assert lines == ["found"], output


def test_using_every_name_changes_nothing_else(outcomes):
    assert outcomes["use of every name"] == [0, ""]


def test_without_the_package_transformers_does_not_know_the_model(outcomes):
    assert outcomes["without the package"] == [0, ""]


def test_importing_changes_nothing_else():
    result = run(IMPORT_ALONE)
    assert result.returncode == 0, result.stderr
    assert result.stdout == result.stderr == ""


def test_public_names_are_what_they_say():
    for name in hf_lineage.__all__:
        value = getattr(hf_lineage, name)
        assert name == "__version__" or value.__name__ == name
    for family in FAMILIES.values():
        assert set(family.models.values()) <= set(hf_lineage.__all__)
