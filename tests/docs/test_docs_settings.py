"""The files of settings in the documentation are read by the commands that they are for."""

import pytest
import yaml
from docs_pages import Block, blocks

from benchmarks.glue.arguments import parse_arguments as parse_glue
from hf_lineage.pretraining.arguments import parse_arguments as parse_pretraining
from hf_lineage.pretraining.objective import FAMILIES, objective_class


@pytest.fixture
def parsed(tmp_path):
    """Reads a block with the command that its settings are for, and returns all that they set."""

    def parse(block: Block) -> dict:
        path = tmp_path / "settings.yaml"
        path.write_text(block.code, encoding="utf-8")
        if "family" in yaml.safe_load(block.code):
            own_class = lambda family: objective_class(family).arguments_class  # noqa: E731
            parts = parse_pretraining(["--config", str(path)], list(FAMILIES), own_class)
        else:
            parts = parse_glue(["--config", str(path)])
        return {name: value for part in parts for name, value in vars(part).items()}

    return parse


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_settings_are_read(block, parsed):
    found = parsed(block)
    for name, value in yaml.safe_load(block.code).items():
        if not isinstance(value, (list, dict, str)):  # as they stand; 1e-3 is a string to YAML 1.1
            assert found[name] == value


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ("albert_pretraining", {"family": "albert", "max_minutes": 18, "sentence_objective": "sop"}),
        ("xlnet_pretraining", {"family": "xlnet", "max_length": 32, "objective": "permutation", "memory": True}),
        ("elmo_pretraining", {"family": "elmo", "unroll_steps": 20, "softmax": "sampled"}),
        ("pretraining", {"family": "albert", "max_steps": 20000, "learning_rate": 1e-3}),
        ("benchmarks", {"task_name": "mrpc,rte", "num_train_epochs": 4, "early_stopping_patience": 2}),
    ],
)
def test_settings_are_those_of_the_text(page, settings, parsed):
    (block,) = blocks("yaml", f"docs/{page}.md")
    found = parsed(block)
    assert {name: found[name] for name in settings} == settings
