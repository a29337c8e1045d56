import ast
import json
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import CONFIGS, MODEL_TYPES, TOKENIZERS, saved
from transformers.dynamic_module_utils import get_relative_import_files

import hf_lineage
from hf_lineage.auto import FAMILIES
from hf_lineage.hub.contents import left_out_files, published_files, write_code
from hf_lineage.hub.custom_code import code_files, code_texts, model_auto_map, tokenizer_auto_map

# What transformers requires itself
ALLOWED = {"torch", "transformers", "numpy", "regex", "safetensors", "tokenizers", *sys.stdlib_module_names}


@pytest.fixture(params=MODEL_TYPES)
def family(request):
    return FAMILIES[request.param]


def imports(path: Path) -> list[tuple[int, str]]:
    """Level and module of every import in a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module or ""))
        elif isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
    return found


def test_files_import_their_siblings_and_what_transformers_requires(family):
    files = code_files(family)
    names = {path.stem for path in files}
    for path in files:
        for level, module in imports(path):
            assert (level, module) in [(1, name) for name in names] or level == 0, (path.name, module)
            assert level or module.partition(".")[0] in ALLOWED, (path.name, module)


def test_every_model_takes_the_files_along_that_the_auto_map_names(family):
    """transformers copies the file of a class and what it imports, and keeps the whole `auto_map`."""
    named = {reference.partition(".")[0] for reference in model_auto_map(family, with_code=True).values()}
    for module in named - {family.config[0].rpartition(".")[2]}:
        (start,) = (path for path in code_files(family) if path.stem == module)
        assert named <= {module, *(Path(path).stem for path in get_relative_import_files(start))}


def test_what_only_the_package_can_do_stays_in_it_and_all_else_goes():
    """Cards, pipelines, and what reads and writes ELMo's original files."""
    stays = {
        model_type: {path.stem for path in files[0].parent.glob("[!_]*.py")} - {path.stem for path in files}
        for model_type, files in ((model_type, code_files(FAMILIES[model_type])) for model_type in MODEL_TYPES)
    }
    assert stays == {
        "elmo": {
            f"{name}_elmo"
            for name in "card convert conversion embedder manylangs pipeline sources static_vectors vocabulary_cache "
            "word_input word_vectors".split()
        },
        "lineage_albert": {"card_albert"},
        "lineage_xlnet": {"card_xlnet", "pipeline_xlnet"},
    }


@pytest.mark.parametrize("with_code", [True, False])
def test_every_auto_class_names_what_its_file_has(family, with_code):
    texts = code_texts(family, with_code)
    references = model_auto_map(family, with_code) | {
        name: pair[0] for name, pair in tokenizer_auto_map(family, with_code).items()
    }
    assert references.keys() == {"AutoConfig", "AutoTokenizer", *family.models}
    for reference in references.values():
        module, name = reference.split(".")
        nodes = ast.parse(texts[f"{module}.py"]).body
        classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert name in (classes if with_code else imported)


def test_the_line_that_imports_the_package_is_all_there_is(family):
    (text,) = code_texts(family, with_code=False).values()
    assert "pip install hf-lineage" in text.splitlines()[0]
    assert len([line for line in text.splitlines() if line and not line.startswith('"')]) == 1


class TestFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        saved(tmp_path / "model", "elmo")
        return tmp_path / "model"

    def test_the_way_can_be_changed_in_place(self, folder):
        without = {path.name for path in folder.iterdir()}
        assert "modeling_elmo.py" in write_code(folder, with_code=True)
        assert (folder / "modeling_elmo.py").is_file()
        write_code(folder)
        assert {path.name for path in folder.iterdir()} == without | {"needs_hf_lineage.py"}
        config = json.loads((folder / "config.json").read_text())
        assert config["auto_map"]["AutoModel"] == "needs_hf_lineage.ElmoModel"

    def test_other_code_of_ones_own_is_published_and_old_code_is_not(self, folder):
        (folder / "handler.py").write_text("# mine")
        (folder / "masks_xlnet.py").write_text("# of another model")
        (folder / "modeling_elmo.py").write_text("# old")
        files = published_files(folder)
        assert {name for name in files if name.endswith(".py")} == {"handler.py", "needs_hf_lineage.py"}
        assert b"# old" not in published_files(folder, with_code=True)["modeling_elmo.py"]

    def test_what_is_left_out(self, folder):
        for name in "a/checkpoint-1/model.safetensors a/note.txt training_args.bin .git/config runs/x/events".split():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("")
        assert left_out_files(folder) == [".git", "a/checkpoint-1", "runs", "training_args.bin"]
        assert "a/note.txt" in published_files(folder)
        assert not set(published_files(folder)) & set(left_out_files(folder))

    def test_a_tokenizer_of_transformers_stays_what_it_is(self, folder):
        config = {"tokenizer_class": "BertTokenizer", "auto_map": {"AutoTokenizer": ["old.Tokenizer", None]}}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        assert json.loads(published_files(folder)["tokenizer_config.json"]) == {"tokenizer_class": "BertTokenizer"}

    def test_a_pooler_may_be_left_out(self, tmp_path):
        model = hf_lineage.LineageAlbertModel(CONFIGS["lineage_albert"](), add_pooling_layer=False)
        model.save_pretrained(tmp_path)
        assert "model.safetensors" in published_files(tmp_path)

    def test_without_a_tokenizer(self, folder):
        for path in folder.glob("tokenizer*"):
            path.unlink()
        assert "tokenizer_config.json" not in published_files(folder)

    def broken(self, folder: Path, how: str) -> None:
        config = json.loads((folder / "config.json").read_text())
        weights = folder / "model.safetensors"
        if how == "no configuration":
            (folder / "config.json").unlink()
        elif how == "no JSON":
            (folder / "config.json").write_text("{")
        elif how == "a list":
            (folder / "config.json").write_text("[]")
        elif how == "another model":
            (folder / "config.json").write_text(json.dumps({**config, "model_type": "bert"}))
        elif how == "contradiction":
            (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 3}))
        elif how == "no weights":
            weights.unlink()
        elif how == "cut off":
            weights.write_bytes(weights.read_bytes()[:-10])
        elif how == "no safetensors":
            weights.write_bytes(b"PK" * 100)
        elif how == "shard missing":
            weights.rename(folder / "model-00001-of-00002.safetensors")
            names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
            (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
        elif how == "another size":
            (folder / "config.json").write_text(json.dumps({**config, "lstm_hidden_size": 14}))
        elif how == "a weight missing":
            tensors = load_file(weights)
            tensors.pop("elmo.encoder.forward_layers.0.input_linear.bias")
            save_file(tensors, weights, metadata={"format": "pt"})
        elif how == "another family":
            save_file({"wte.weight": torch.zeros(2, 2)}, weights, metadata={"format": "pt"})
        elif how == "another tokenizer":
            TOKENIZERS["lineage_xlnet"]().save_pretrained(folder)

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ("no configuration", r"no config\.json"),
            ("no JSON", r"config\.json is not JSON"),
            ("a list", "must hold an object, not list"),
            ("another model", "type 'bert', not one of elmo, lineage_albert, lineage_xlnet"),
            ("contradiction", "hidden_size"),
            ("no weights", r"no model\.safetensors"),
            ("cut off", r"model\.safetensors is damaged or cut off"),
            ("no safetensors", r"model\.safetensors is damaged or cut off"),
            ("shard missing", r"no model-00002-of-00002\.safetensors"),
            ("another size", r"of the shape \(\d+, 8\), by its config\.json it must be"),
            ("a weight missing", r"lacks 1 of its weights, such as elmo\.encoder\.forward_layers\.0"),
            ("another family", r"lacks \d+ of its weights"),
            ("another tokenizer", "LineageXLNetTokenizer beside the model, which ElmoTokenizer goes with"),
        ],
    )
    def test_what_is_not_a_whole_model_is_refused(self, how, message, folder):
        self.broken(folder, how)
        with pytest.raises(ValueError, match=message):
            published_files(folder)
