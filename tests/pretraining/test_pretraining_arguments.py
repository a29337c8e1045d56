import json
import subprocess
import sys
from pathlib import Path

import pytest
from pretraining_runs import ROOT

from hf_lineage.pretraining.albert import AlbertArguments
from hf_lineage.pretraining.arguments import FREE_SETTINGS, PretrainingArguments, parse_arguments
from hf_lineage.pretraining.objective import FAMILIES, objective_class

REQUIRED = ["--train_files", "text.txt", "--tokenizer_name_or_path=tokenizer", "--output_dir=out"]


def parse(*words: str) -> tuple[PretrainingArguments, AlbertArguments]:
    return parse_arguments(list(words), list(FAMILIES), lambda family: objective_class(family).arguments_class)


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return f"--config={path}"


def test_flags_alone():
    settings, own = parse(*REQUIRED, "--max_steps=3", "--sentence_objective", "nsp", "--family", "albert")
    assert (settings.train_files, settings.tokenizer_name_or_path) == (["text.txt"], "tokenizer")
    assert settings.max_steps == 3
    assert settings.family == "albert"
    assert own.sentence_objective == "nsp"


def test_a_yaml_file(tmp_path: Path):
    text = """
        family: albert
        train_files: [one.txt, two.txt.gz]
        tokenizer_name_or_path: tokenizer
        output_dir: out
        max_minutes: 2.5
        learning_rate: 1e-3       # a string in YAML 1.1
        mixed_precision: no       # false in YAML 1.1
        full_determinism: true
        eval_steps: null
        validation_objectives: [sop, nsp]
        model_config: {hidden_size: 32, layer_norm_eps: 1e-12, share_parameters: none}
    """
    settings, own = parse(write(tmp_path / "run.yaml", text))
    assert settings.train_files == ["one.txt", "two.txt.gz"]
    assert (settings.max_minutes, settings.max_steps, settings.eval_steps) == (2.5, None, None)
    assert settings.learning_rate == 1e-3
    assert settings.mixed_precision == "no"
    assert settings.full_determinism is True
    assert own.validation_objectives == ["sop", "nsp"]
    assert settings.config_fields == {"hidden_size": 32, "layer_norm_eps": 1e-12, "share_parameters": "none"}


def test_a_json_file_gives_the_same(tmp_path: Path):
    values = {
        "train_files": ["text.txt"],
        "tokenizer_name_or_path": "tokenizer",
        "output_dir": "out",
        "max_steps": 7,
        "learning_rate": 0.001,
        "model_config": {"hidden_size": 32},
    }
    from_file = parse(write(tmp_path / "run.json", json.dumps(values)))
    flags = ["--max_steps=7", "--learning_rate=0.001", '--model_config={"hidden_size": 32}']
    assert from_file == parse(*REQUIRED, *flags)


def test_flags_win_over_the_file(tmp_path: Path):
    config = write(tmp_path / "run.yaml", "{train_files: [a, b], output_dir: x, max_steps: 5, seed: 3, max_ngram: 2}")
    settings, own = parse("--seed=4", config, *REQUIRED, "--max_ngram", "1")
    assert (settings.seed, settings.output_dir, settings.train_files, own.max_ngram) == (4, "out", ["text.txt"], 1)
    assert settings.max_steps == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{learnign_rate: 1}", "unknown setting 'learnign_rate'; did you mean learning_rate?"),
        ("{zzz: 1}", "unknown setting 'zzz'; there are train_files, "),
        ("just words", "must hold settings and their values, got 'just words'"),
        ("{a: ", "cannot read"),
        ("{family: gpt}", "must be one of albert, xlnet, elmo, got 'gpt'"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse(write(tmp_path / "run.yaml", text), *REQUIRED, "--max_steps=1")


def test_a_missing_file():
    with pytest.raises(ValueError, match="cannot read nowhere"):
        parse("--config=nowhere.yaml", *REQUIRED)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "either --max_steps or --max_minutes, got None and None"),
        ("--max_steps=1 --max_minutes=1", "either --max_steps or --max_minutes, got 1 and 1.0"),
        ("--max_steps=0", "--max_steps must be at least 1, got 0"),
        ("--max_minutes=0", "--max_minutes must be above 0, got 0.0"),
        ("--max_steps=1 --learning_rate=0", "--learning_rate must be above 0"),
        ("--max_steps=1 --learning_rate=nan", "--learning_rate must be above 0, got nan"),
        ("--max_steps=1 --warmup_ratio=1.5", "--warmup_ratio must be between 0 and 1"),
        ("--max_steps=1 --adam_beta2=1", "--adam_beta2 must be at least 0 and below 1"),
        ("--max_steps=1 --per_device_train_batch_size=0", "--per_device_train_batch_size must be at least 1"),
        ("--max_steps=1 --save_total_limit=0", "--save_total_limit must be at least 1"),
        ("--max_steps=1 --dataloader_num_workers=-1", "--dataloader_num_workers must be at least 0"),
        ("--max_steps=1 --max_length=7", "--max_length must be at least 8"),
        ("--max_steps=1 --validation_share=1", "--validation_share must be at least 0 and below 1"),
        (
            "--max_steps=1 --validation_share=.1 --validation_files=a",
            "validation_files or --validation_share, not",
        ),
        ("--max_steps=1 --model_config={} --model_name_or_path=a", "--model_config or --model_name_or_path, not"),
        ("--max_steps=1 --model_config=[1]", r"--model_config must be a JSON object, got '\[1\]'"),
        ("--max_steps=1 --model_config={", "--model_config must be a JSON object"),
        ("--max_steps=1 --masked_fraction=0", "--masked_fraction must be above 0 and at most 1"),
        ("--max_steps=1 --sentence_loss_weight=0", "--sentence_loss_weight must be a number above 0"),
        ("--max_steps=1 --sentence_loss_weight=inf", "--sentence_loss_weight must be a number above 0"),
        ("--max_steps=1 --max_predictions=0", "--max_predictions must be at least 1"),
        ("--max_steps=1 --max_ngram=0", "--max_ngram must be at least 1"),
        ("--max_steps=1 --short_sequence_probability=2", "--short_sequence_probability must be between 0 and 1"),
        ("--max_steps=1 --validation_objectives sop sop", "different ones of sop, nsp and none"),
        ("--max_steps=1 --validation_objectives mlm", "different ones of sop, nsp and none"),
        ("--max_steps=1 --no_such_thing=1", "--no_such_thing"),
    ],
)
def test_wrong_values(flags: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse(*REQUIRED, *flags.split())


@pytest.mark.parametrize("flags", ["--optimizer=sgd", "--sentence_objective=mlm", "--seed=x", "--mixed_precision=fp8"])
def test_wrong_words_end_the_program(flags: str, capsys):
    with pytest.raises(SystemExit):
        parse(*REQUIRED, "--max_steps=1", flags)
    assert flags.split("=")[0] in capsys.readouterr().err


def test_free_settings_are_settings():
    assert {*FREE_SETTINGS} <= {*PretrainingArguments.__dataclass_fields__}


def test_help_says_what_there_is(capsys):
    with pytest.raises(SystemExit):
        parse("--help")
    usage = " ".join(capsys.readouterr().out.split())
    for text in (
        "--config FILE",
        "--sentence_objective {sop,nsp,none}",
        "--optimizer {lamb,adamw,adagrad}",
        "default: 0.025)",
    ):
        assert text in usage


def test_the_program_says_what_is_wrong():
    words = [sys.executable, "-m", "hf_lineage.pretraining", *REQUIRED]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    message = "hf_lineage.pretraining: Give either --max_steps or --max_minutes, got None and None\n"
    assert done.stderr.endswith(message)
    assert "Traceback" not in done.stderr
