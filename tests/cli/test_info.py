import json
import re

import pytest
from typer.testing import CliRunner

from hf_lineage import (
    ElmoConfig,
    ElmoForSequenceClassification,
    ElmoModel,
    ElmoTokenizer,
    LineageAlbertConfig,
    LineageAlbertForPreTraining,
)
from hf_lineage.cli import app, main

FIELDS = {"char_cnn_filters": [[1, 4], [2, 8]], "num_highway_layers": 1, "hidden_size": 16, "lstm_hidden_size": 12}


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def numbers(output):
    rows = re.findall(r"([a-z]\w*)\W+?([\d,]+)\s*\W*$", output, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in rows}


def test_parts_and_total(tmp_path):
    model = ElmoModel(ElmoConfig(**FIELDS, num_scalar_mixes=2))
    model.save_pretrained(tmp_path)
    ElmoTokenizer().save_pretrained(tmp_path)
    result = CliRunner().invoke(app, ["info", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "elmo" in result.output
    assert numbers(result.output) == {
        "character_encoder": count(model.character_encoder),
        "encoder": count(model.encoder),
        "scalar_mixes": 2 * 4,
        "total": count(model),
    }


def test_the_head_of_a_saved_classifier_counts(tmp_path):
    model = ElmoForSequenceClassification(ElmoConfig(**FIELDS))
    model.save_pretrained(tmp_path)
    result = CliRunner().invoke(app, ["info", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert numbers(result.output)["total"] == count(model)


def test_a_configuration_alone_is_enough_and_a_large_model_is_not_built(tmp_path):
    ElmoConfig(lstm_hidden_size=400_000).save_pretrained(tmp_path)
    result = CliRunner().invoke(app, ["info", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert numbers(result.output)["total"] > 7_000_000_000


@pytest.mark.parametrize("config", [None, {}, {"model_type": "none such"}, {"model_type": "elmo", "hidden_size": 3}])
def test_errors_are_one_line(config, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "model"
    if config is not None:
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("sys.argv", ["hf-lineage", "info", str(folder)])
    with pytest.raises(SystemExit) as error:
        main()
    said, errors = capfd.readouterr()
    assert (error.value.code, said) == (2, "")
    assert errors.startswith("hf-lineage: ")
    assert len(errors.splitlines()) == 1, errors
    assert ("hidden_size" if config and "hidden_size" in config else "model") in errors


def test_layer_map_and_parts_of_a_model_that_shares_blocks(tmp_path):
    config = LineageAlbertConfig(
        vocab_size=50, embedding_size=4, hidden_size=8, num_attention_heads=2, intermediate_size=12,
        num_hidden_layers=6, num_hidden_groups=2, share_parameters="attention", ffn_layer_blocks=[0, 0, 0, 1, 2, 2],
    )  # fmt: skip
    model = LineageAlbertForPreTraining(config)
    model.save_pretrained(tmp_path)
    result = CliRunner().invoke(app, ["info", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = re.findall(r"│\s+([\d-]+)\s+│\s+(\d+)\s+│\s+(\d+)\s+│", result.output)
    assert rows == [("0-2", "0", "0"), ("3", "1", "1"), ("4-5", "1", "2")]
    base = model.albert
    predictions = count(model.predictions) - count(base.embeddings.word_embeddings)
    assert numbers(result.output) == {
        "embeddings": count(base.embeddings),
        "embedding_projection": 4 * 8 + 8,
        "attention_blocks": count(base.attention_blocks),
        "ffn_blocks": count(base.ffn_blocks),
        "pooler": count(base.pooler),
        "predictions": predictions,
        "sentence_classifier": 2 * 8 + 2,
        "total": count(model),
    }
