import json
from pathlib import Path

import pytest
import torch
from huggingface_hub import HfApi, ModelCard, constants, snapshot_download
from loopback_hub import LoopbackHub
from safetensors.torch import load
from tiny_models import HEADS, MODEL_TYPES, TOKENIZERS, saved, tiny_model
from transformers import AutoTokenizer

import hf_lineage
from hf_lineage import push_folder
from hf_lineage.auto import FAMILIES
from hf_lineage.cli import main
from hf_lineage.hub.contents import published_files

REPO = "tester/model"
MINE = b"---\nlicense: mit\n---\n# Mine\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    saved(path, "elmo")
    return path


@pytest.fixture
def run(monkeypatch, capfd):
    """Runs the command and returns its status, output and errors."""

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["hf-lineage", "push", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as error:
            status = int(error.code or 0)
        return status, *capfd.readouterr()

    return command


@pytest.mark.parametrize("with_code", [False, True], ids=["package", "code"])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_everything_arrives_in_one_commit(model_type, with_code, hub: LoopbackHub, tmp_path, read_folder):
    saved(tmp_path / "model", model_type)
    before = read_folder(tmp_path / "model")
    address = push_folder(tmp_path / "model", "model", with_code)
    repository = hub.repositories[REPO]
    assert address == f"{hub.url}/{REPO}/commit/{repository.branches['main']}"
    assert len(repository.commits) == 2  # the Hub's own and this one
    expected = published_files(tmp_path / "model", with_code)
    arrived = hub.files(REPO)
    assert arrived.keys() - {"README.md"} == expected.keys()
    assert {name: content for name, content in arrived.items() if name in expected} == {
        name: content if isinstance(content, bytes) else content.read_bytes() for name, content in expected.items()
    }
    assert before.keys() <= arrived.keys()
    assert arrived["model.safetensors"] == before["model.safetensors"]
    assert read_folder(tmp_path / "model") == before
    assert "auto_map" not in json.loads(before["config.json"])
    python = {name for name in arrived if name.endswith(".py")}
    assert (python == {"needs_hf_lineage.py"}) != with_code
    models = json.loads(arrived["config.json"])["auto_map"]
    assert models.keys() == {"AutoConfig", *FAMILIES[model_type].models}
    tokenizer = json.loads(arrived["tokenizer_config.json"])["auto_map"]["AutoTokenizer"]
    for reference in (*models.values(), tokenizer[0]):
        assert f"{reference.split('.')[0]}.py" in python
    assert hub.asked("PUT", "/storage/")  # the weights went as a large file


def test_plain_loading_reads_the_package(hub, folder):
    push_folder(folder, REPO, with_code=True)
    model = hf_lineage.ElmoForSequenceClassification.from_pretrained(REPO)
    again = AutoTokenizer.from_pretrained(REPO)
    assert type(again) is hf_lineage.ElmoTokenizer
    original = load((folder / "model.safetensors").read_bytes())
    assert all(torch.equal(original[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(("model_type", "auto_class"), HEADS)
def test_push_to_hub_of_every_class(model_type, auto_class, hub):
    model, tokenizer = tiny_model(model_type, auto_class), TOKENIZERS[model_type]()
    model.push_to_hub("model", private=True)
    tokenizer.push_to_hub("model")
    loaded = type(model).from_pretrained(REPO)
    assert all(torch.equal(loaded.state_dict()[name], tensor) for name, tensor in model.state_dict().items())
    assert AutoTokenizer.from_pretrained(REPO)("one two")["input_ids"] == tokenizer("one two")["input_ids"]
    assert hub.repositories[REPO].private
    assert "auto_map" not in json.loads(hub.files(REPO)["config.json"])


def test_private_repositories_want_the_token(hub, folder, tmp_path, monkeypatch):
    push_folder(folder, REPO, private=True)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(OSError, match=REPO):
        hf_lineage.ElmoModel.from_pretrained(REPO)
    with pytest.raises(OSError, match=REPO):
        hf_lineage.ElmoModel.from_pretrained(REPO, token="hf_another")
    hf_lineage.ElmoModel.from_pretrained(REPO, token=hub.token)
    to_storage = hub.asked("PUT", "/storage/") + hub.asked("GET", "/storage/")
    assert to_storage
    assert not any(request.authorization for request in to_storage)  # another host is told no token


def test_private_is_refused_for_a_public_repository(hub, folder):
    push_folder(folder, REPO)
    before = dict(hub.repositories[REPO].commits)
    (folder / "note.txt").write_text("secret")
    with pytest.raises(ValueError, match="public"):
        push_folder(folder, REPO, private=True)
    assert hub.repositories[REPO].commits == before


def test_another_branch(hub, folder):
    push_folder(folder, REPO)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# new\n")
    push_folder(folder, REPO, revision="v2")
    push_folder(folder, REPO, revision="v2")  # without a change nothing is committed
    assert hub.files(REPO).get("README.md") != b"---\nlicense: mit\n---\n# new\n"
    assert hub.files(REPO, "v2")["README.md"] == b"---\nlicense: mit\n---\n# new\n"
    assert len(hub.repositories[REPO].commits) == 3


def test_what_an_earlier_model_left_goes_in_the_same_commit(hub, folder, tmp_path):
    model = hf_lineage.ElmoForSequenceClassification.from_pretrained(folder)
    sharded = tmp_path / "sharded"
    model.save_pretrained(sharded, max_shard_size="4KB")
    hf_lineage.ElmoTokenizer().save_pretrained(sharded)
    hub.put(REPO, {"notes.txt": b"mine", "model.safetensors": b"old"})
    push_folder(sharded, REPO, with_code=True)
    arrived = hub.files(REPO)
    assert "model.safetensors" not in arrived
    assert len([name for name in arrived if name.startswith("model-0")]) > 1
    assert "modeling_elmo.py" in arrived
    push_folder(folder, REPO)
    arrived = hub.files(REPO)
    assert [name for name in arrived if name.startswith("model")] == ["model.safetensors"]
    assert [name for name in arrived if name.endswith(".py")] == ["needs_hf_lineage.py"]
    assert arrived["notes.txt"] == b"mine"


def test_code_of_a_tokenizer_that_stays_stays(hub, folder):
    push_folder(folder, REPO)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    push_folder(folder, REPO, with_code=True)
    assert {"needs_hf_lineage.py", "tokenizer_config.json", "modeling_elmo.py"} <= hub.files(REPO).keys()


@pytest.mark.parametrize("after", [0, 1000])
def test_a_broken_upload_leaves_nothing_and_is_repeated(after, hub, folder, no_waiting):
    hub.break_connection("PUT", "/storage/", after, times=20)
    with pytest.raises(OSError, match="not published on tester/model"):
        push_folder(folder, REPO)
    assert hub.files(REPO) == {}
    assert not hub.large_objects
    hub.faults.clear()
    push_folder(folder, REPO)
    assert hub.files(REPO).keys() - {"README.md"} == published_files(folder).keys()
    assert hub.files(REPO)["model.safetensors"] == (folder / "model.safetensors").read_bytes()


def test_an_upload_that_breaks_once_goes_on(hub, folder, no_waiting):
    hub.break_connection("PUT", "/storage/", 1000)
    push_folder(folder, REPO)
    assert hub.files(REPO)["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert len(hub.asked("PUT", "/storage/")) == 2


@pytest.mark.parametrize("what", ["connection", "status"])
def test_a_commit_that_fails_leaves_the_model_of_before(what, hub, folder, tmp_path):
    push_folder(folder, REPO)
    before = hub.files(REPO)
    saved(folder, "elmo")  # other weights
    if what == "connection":
        hub.break_connection("POST", "/commit/")
    else:
        hub.answer("POST", "/commit/", 500)
    with pytest.raises(OSError, match="not published"):
        push_folder(folder, REPO)
    assert hub.files(REPO) == before
    sent = len(hub.asked("PUT", "/storage/"))
    push_folder(folder, REPO)
    assert hub.files(REPO)["model.safetensors"] == (folder / "model.safetensors").read_bytes() != before
    assert len(hub.asked("PUT", "/storage/")) == sent  # the weights had arrived already


def test_a_branch_that_changed_meanwhile_is_not_mixed(hub, folder, monkeypatch):
    push_folder(folder, REPO)
    saved(folder, "elmo")
    preupload = HfApi.preupload_lfs_files

    def slow(*arguments, **keywords):
        hub.put(REPO, {"model.safetensors": b"another's"})
        return preupload(*arguments, **keywords)

    monkeypatch.setattr(HfApi, "preupload_lfs_files", slow)
    with pytest.raises(OSError, match="changed since"):
        push_folder(folder, REPO)
    assert hub.files(REPO)["model.safetensors"] == b"another's"


class TestToken:
    @pytest.mark.parametrize(
        ("method", "path"),
        [("POST", "/repos/create"), ("POST", "/preupload/"), ("PUT", "/storage/"), ("POST", "/commit/")],
    )
    def test_an_error_that_repeats_it_is_shown_without_it(self, method, path, hub, folder, run, no_waiting):
        hub.answer(method, path, 403, f"the token {hub.token} may not write", times=20)
        status, output, errors = run(folder, REPO, "--token", hub.token)
        assert (status, output) == (2, "")
        assert "the token <token> may not write" in errors
        assert hub.token not in errors
        assert len(errors.splitlines()) == 1

    def test_it_is_not_in_what_python_shows(self, hub, folder):
        hub.answer("POST", "/commit/", 403, f"the token {hub.token} may not write")
        with pytest.raises(OSError, match="<token>") as error:
            push_folder(folder, REPO)
        assert hub.token not in str(error.value)
        assert error.value.__suppress_context__

    def test_a_token_that_no_header_can_hold_is_not_shown(self, hub, folder, run):
        for token in ("hf_aToken\nwith a line", "hf_töken"):
            status, output, errors = run(folder, REPO, "--token", token)
            assert (status, output) == (2, "")
            assert "token" in errors
            assert "with a line" not in errors
            assert "töken" not in errors
        assert not hub.requests

    def test_a_file_that_holds_it_is_not_published(self, hub, folder):
        (folder / "README.md").write_text(f"---\nlicense: mit\n---\nset HF_TOKEN={hub.token}\n")
        with pytest.raises(ValueError, match=r"README\.md holds your token") as error:
            push_folder(folder, REPO)
        assert hub.token not in str(error.value)
        assert not hub.requests

    def test_it_is_asked_for(self, hub, folder, monkeypatch):
        monkeypatch.delenv("HF_TOKEN")
        with pytest.raises(OSError, match=r"not published.*Invalid username or password"):
            push_folder(folder, REPO)

    def test_a_wrong_one_says_so(self, hub, folder):
        with pytest.raises(OSError, match="Invalid username or password"):
            push_folder(folder, REPO, token="hf_another")


class TestCommand:
    def test_says_what_was_published_and_what_not(self, hub, folder, run):
        torch.save({}, folder / "training_args.bin")
        (folder / "checkpoint-2").mkdir()
        (folder / "checkpoint-2" / "optimizer.pt").write_bytes(b"")
        (folder / ".env").write_text("secret")
        (folder / "README.md").write_bytes(card := b"---\nlicense: mit\n---\n# My model\n")
        status, output, errors = run(folder, "model", "--private", "--with-code", "--message", "First")
        assert (status, errors) == (0, "")
        published, left_out = output.splitlines()
        assert published == f"{hub.url}/{REPO}/commit/{hub.repositories[REPO].branches['main']}"
        assert left_out == "not published: .env, checkpoint-2, training_args.bin"
        assert not hub.files(REPO).keys() & {".env", "training_args.bin", "checkpoint-2/optimizer.pt"}
        assert hub.files(REPO)["README.md"] == card
        assert hub.repositories[REPO].private
        assert hub.repositories[REPO].messages[-1] == "First"
        assert hub.asked("POST", "/api/validate-yaml")

    def test_says_that_a_card_names_another_place(self, hub, folder, run):
        (folder / "README.md").write_text('---\nlicense: mit\n---\npipeline(model="elsewhere")\n')
        said = run(folder, REPO)[1].splitlines()
        assert said[1:] == [f"README.md was published as it is and does not name {REPO}: see what its listing loads"]
        (folder / "README.md").write_text(f'---\nlicense: mit\n---\npipeline(model="{REPO}")\n')
        assert len(run(folder, REPO)[1].splitlines()) == 1

    def test_errors_are_one_line_and_come_before_any_request(self, hub, folder, run, tmp_path):
        for arguments, reason in [
            ((tmp_path / "none", REPO), "no folder"),
            ((tmp_path, REPO), "config.json"),
            ((folder, "not/a/name"), "not/a/name"),
            ((folder, "--no"), "no such option"),
        ]:
            status, output, errors = run(*arguments)
            assert (status, output) == (2, "")
            assert reason in errors.lower()
        assert not hub.requests

    def test_a_hub_that_is_not_there(self, hub, folder, run, no_waiting):
        hub.__exit__()
        status, output, errors = run(folder, REPO)
        assert (status, output) == (2, "")
        assert "not published" in errors
        assert len(errors.splitlines()) == 1


def test_a_card_is_made_where_there_is_none(hub, folder):
    push_folder(folder, "model")
    card = ModelCard(hub.files(REPO)["README.md"].decode())
    assert card.data.tags == ["elmo"]
    assert f'"{REPO}"' in card.text  # its listing names the user too
    assert not (folder / "README.md").exists()
    HfApi(token=hub.token).upload_file(path_or_fileobj=MINE, path_in_repo="README.md", repo_id=REPO)
    (folder / "note.txt").write_text("new")
    push_folder(folder, REPO)
    assert hub.files(REPO)["README.md"] == MINE
    assert "note.txt" in hub.files(REPO)


def test_a_card_with_bad_metadata_is_refused_before_anything_is_sent(hub, folder):
    (folder / "README.md").write_text("no metadata")
    with pytest.raises(ValueError, match="not published"):
        push_folder(folder, REPO)
    assert hub.files(REPO) == {}
    assert not hub.large_objects


class TestDownload:
    @pytest.fixture
    def large(self, hub, monkeypatch) -> bytes:
        monkeypatch.setattr(
            constants, "DOWNLOAD_CHUNK_SIZE", 1 << 16
        )  # what breaks inside of a chunk is asked for again
        content = bytes(torch.randint(0, 256, (3_000_000,), dtype=torch.uint8).numpy())
        hub.put(REPO, {"model.safetensors": content, "config.json": b"{}"})
        return content

    def test_one_that_breaks_goes_on_where_it_was(self, hub, large, no_waiting):
        hub.break_connection("GET", "/storage/", after=1_000_000)
        hub.break_connection("GET", "/storage/", after=500_000)
        folder = snapshot_download(REPO)
        assert Path(folder, "model.safetensors").read_bytes() == large
        starts = [int((request.range or "bytes=0-")[6:-1]) for request in hub.asked("GET", "/storage/")]
        assert starts[0] == 0
        assert 0 < starts[1] <= 1_000_000
        assert starts[1] < starts[2] <= 1_500_000

    def test_one_that_fails_leaves_no_file_and_is_repeated(self, hub, large, no_waiting, tmp_path):
        hub.break_connection("GET", "/storage/", after=0, times=50)
        with pytest.raises(Exception, match=r"disconnected|closed|reset|Incomplete"):
            snapshot_download(REPO)
        assert not list(tmp_path.rglob("*.safetensors"))
        hub.faults.clear()
        assert Path(snapshot_download(REPO), "model.safetensors").read_bytes() == large


class TestNamesFromTheServer:
    """A server that names files outside of the cache."""

    def outside(self, tmp_path: Path) -> list[Path]:
        return [path for path in tmp_path.rglob("*evil*") if path.is_file()]

    @pytest.mark.parametrize("name", ["../../../../evil.txt", "a/../../../../../evil.txt"])
    def test_of_a_listing(self, name, hub, tmp_path):
        hub.put(REPO, {name: b"evil", "config.json": b"{}"})
        with pytest.raises((ValueError, OSError)):
            snapshot_download(REPO)
        assert not self.outside(tmp_path)

    def test_of_shards(self, hub, folder, tmp_path):
        index = {"metadata": {}, "weight_map": {"scalar_mixes.0.weights": "../../../../evil.safetensors"}}
        config = (folder / "config.json").read_bytes()
        hub.put(REPO, {"config.json": config, "model.safetensors.index.json": json.dumps(index).encode()})
        hub.put(REPO, {"../../../../evil.safetensors": (folder / "model.safetensors").read_bytes()})
        with pytest.raises((ValueError, OSError)):
            hf_lineage.ElmoModel.from_pretrained(REPO)
        assert not self.outside(tmp_path)

    def test_in_the_folder_that_is_pushed(self, hub, folder):
        (folder / "model.safetensors").rename(folder.parent / "evil.safetensors")
        index = {"weight_map": {"a": "../evil.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        with pytest.raises(ValueError, match="files of its folder"):
            push_folder(folder, REPO)
        assert not hub.requests
