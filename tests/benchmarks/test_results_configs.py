"""The settings that results were made with are settings of the commands as they are."""

from pathlib import Path

import pytest
import yaml

from benchmarks.glue.arguments import parse_arguments as parse_glue
from benchmarks.glue.presets import PRESETS
from hf_lineage.pretraining.arguments import parse_arguments as parse_pretraining
from hf_lineage.pretraining.objective import FAMILIES, objective_class

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "benchmarks" / "results" / "configs").glob("*.yaml"))


def test_there_are_some():
    assert {"elmo-pretraining", "elmo-small", "minilm-frozen"} <= {path.stem for path in CONFIGS}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_settings_are_read(path):
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    if "family" in given:
        settings, _ = parse_pretraining(
            ["--config", str(path)], list(FAMILIES), lambda family: objective_class(family).arguments_class
        )
        assert settings.family == given["family"]
    else:
        arguments = parse_glue(["--config", str(path)])
        assert arguments.model.model_name_or_path == given["model_name_or_path"]
        assert given["model_name_or_path"] in PRESETS or given["model_name_or_path"].startswith("runs/")
        # results are kept, trained models are not
        assert given["output_dir"].startswith("benchmarks/results/")
        assert given["save_model"] == "none"
