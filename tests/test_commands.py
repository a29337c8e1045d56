import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_lineage.commands import HIDDEN, public_command, without_folders, without_secrets

TOKEN = "hf_" + "aB3" * 11


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--hub_token", "abc", "--seed", "1"], ["--hub_token", HIDDEN, "--seed", "1"]),
        (["--hub_token=abc"], [f"--hub_token={HIDDEN}"]),
        (["--api-key", "x"], ["--api-key", HIDDEN]),
        (["--hub_token", "--seed", "1"], ["--hub_token", "--seed", "1"]),
        ([f"--note=see {TOKEN}."], [f"--note=see {HIDDEN}."]),
        (["https://me:pw@example.org/x"], [f"https://{HIDDEN}@example.org/x"]),
        (["--tokenizer_name_or_path", "a/b"], ["--tokenizer_name_or_path", "a/b"]),
        (["--batch_tokens", "2048"], ["--batch_tokens", "2048"]),
        (["-m", "benchmarks.glue"], ["-m", "benchmarks.glue"]),
    ],
)
def test_secrets_are_hidden_and_nothing_else(words, expected):
    assert without_secrets(words, {}) == expected


@pytest.mark.parametrize("name", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY", "DB_PASSWORD", "AWS_SECRET"])
def test_values_of_secret_variables_are_hidden_wherever_they_stand(name, monkeypatch):
    monkeypatch.setenv(name, "s3cr3t-value")
    monkeypatch.setenv("HARMLESS", "benchmarks.glue")
    found = without_secrets(["-m", "benchmarks.glue", "--config", '{"auth": "s3cr3t-value"}'])
    assert found == ["-m", "benchmarks.glue", "--config", f'{{"auth": "{HIDDEN}"}}']


def test_short_values_of_secret_variables_are_no_secrets():
    assert without_secrets(["--seed", "1"], {"USE_TOKEN": "1", "NO_SECRET": ""}) == ["--seed", "1"]
    assert without_secrets(["path/to/tokenizer"], {"TOKENIZER": "path/to/tokenizer"}) == ["path/to/tokenizer"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/me/glue", "glue"),
        ("/home/me/glue/", "glue"),
        ("--data_dir=/home/me/glue", "--data_dir=glue"),
        ("~/models/elmo", "elmo"),
        (r"C:\Users\me\elmo", "elmo"),
        (r"\\server\share\elmo", "elmo"),
        ("file:///home/me/text.txt", "text.txt"),
        ('{"a": "/home/me/x", "b": 1}', '{"a": "x", "b": 1}'),
        ("/data/a.txt,/data/b.txt", "a.txt,b.txt"),
        ("/home/my name/the data", "the data"),
        ("--data_dir=/home/my name/the data", "--data_dir=the data"),
        ("read /home/me/a and /home/me/b", "read a and b"),
        ("runs/elmo", "runs/elmo"),
        ("me/elmo", "me/elmo"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("1/2", "1/2"),
        ("/", "."),
    ],
)
def test_folders_of_a_machine_are_taken_away_and_nothing_else(text, expected):
    assert without_folders(text) == expected


NAMES = st.text("abcdefgh123._-", min_size=1, max_size=8).filter(lambda name: name.strip("."))


@given(st.lists(NAMES, min_size=2, max_size=5), st.sampled_from(["{}", "--x={}", "[{}]", '{{"a": "{}"}}', "a,{}"]))
def test_of_every_absolute_path_only_the_last_name_is_left(names, form):
    path = "/" + "/".join(["private-folder", *names])
    assert without_folders(form.format(path)) == form.format(names[-1])


@given(st.lists(st.text(max_size=12), max_size=6))
def test_a_public_command_can_be_read_by_a_shell(words):
    expected = [without_folders(word) for word in without_secrets(["run", *words])]
    assert shlex.split(public_command(["run", *words])) == expected


@pytest.mark.parametrize("interpreter", ["/venv/bin/python3.11", ".venv/bin/python", r"C:\venv\python.exe", "python"])
def test_the_interpreter_is_python(interpreter):
    assert public_command([interpreter, "-m", "x y"]) == "python -m 'x y'"
