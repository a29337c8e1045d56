"""What is said of folders that hold no model, or not the one that is wanted."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from card_families import FAMILIES, tiny_config, tiny_tokenizer
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertModel,
    GPT2Config,
    XLNetConfig,
    XLNetModel,
)
from transformers.utils import logging

import hf_lineage
from hf_lineage.auto import FAMILIES as TABLE
from hf_lineage.elmo.tokenizer_origin_elmo import check_tokenizer_origin

BASE_CLASSES = {family: getattr(hf_lineage, TABLE[family].models["AutoModel"]) for family in FAMILIES}
CONFIG_CLASSES = {family: getattr(hf_lineage, TABLE[family].config[1]) for family in FAMILIES}
TOKENIZER_CLASSES = {family: getattr(hf_lineage, TABLE[family].tokenizer[1]) for family in FAMILIES}
OTHER = {"elmo": "lineage_albert", "lineage_albert": "lineage_xlnet", "lineage_xlnet": "elmo"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each family, with its base model."""
    paths = {family: tmp_path_factory.mktemp(family) for family in FAMILIES}
    for family, path in paths.items():
        AutoModel.from_config(tiny_config(family)).save_pretrained(path)
    return paths


@pytest.fixture
def copied(folders, tmp_path):
    """Copies a family's folder, to be damaged."""

    def copy(family: str) -> Path:
        return Path(shutil.copytree(folders[family], tmp_path / family))

    return copy


@pytest.fixture
def warned(monkeypatch):
    """The warnings of a test, none kept back because another test has seen it."""
    said = []
    logger = logging.get_logger(hf_lineage.ElmoConfig.__module__)
    for method in ("warning", "warning_once"):
        monkeypatch.setattr(type(logger), method, lambda self, text, *args: said.append(text))
    return said


def edited(folder: Path, **fields) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))
    return folder


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("damage", ["truncated", "empty", "a page of HTML", "a header too long", "a tensor cut off"])
def test_damaged_weights_are_named(family, damage, copied):
    file = copied(family) / "model.safetensors"
    good = file.read_bytes()
    bad = {
        "truncated": good[:100],
        "empty": b"",
        "a page of HTML": b"<html>not found</html>",
        "a header too long": b"\xff" * 8 + good[8:],
        "a tensor cut off": good[:-4],
    }[damage]
    file.write_bytes(bad)
    with pytest.raises(ValueError, match="damaged or no safetensors file") as error:
        AutoModel.from_pretrained(file.parent)
    assert str(file) in str(error.value)
    assert f"({len(bad):,} bytes)" in str(error.value)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_damaged_shard_is_named(family, folders, tmp_path):
    AutoModel.from_pretrained(folders[family]).save_pretrained(tmp_path, max_shard_size="2KB")
    shard = sorted(tmp_path.glob("*.safetensors"))[-1]
    assert shard.name != "model.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(ValueError, match=shard.name):
        AutoModel.from_pretrained(tmp_path)


def test_a_damaged_file_in_a_subfolder_is_named(copied):
    folder = copied("elmo")
    inner = folder / "inner"
    inner.mkdir()
    for file in folder.glob("*.*"):
        shutil.move(file, inner)
    (inner / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match=r"inner.model\.safetensors \(0 bytes\)"):
        hf_lineage.ElmoModel.from_pretrained(folder, subfolder="inner")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pointer_of_git_lfs_says_how_to_fetch_the_weights(family, copied):
    file = copied(family) / "model.safetensors"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(ValueError, match="git lfs pull"):
        AutoModel.from_pretrained(file.parent)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("auto_class", [AutoModel, AutoModelForSequenceClassification])
def test_weights_of_another_architecture_are_refused(family, auto_class, copied, folders):
    folder = copied(family)
    shutil.copy(folders[OTHER[family]] / "model.safetensors", folder)
    with pytest.raises(ValueError, match="another architecture than its config") as error:
        auto_class.from_pretrained(folder)
    assert BASE_CLASSES[family].__name__.removesuffix("Model") in str(error.value)
    _, info = auto_class.from_pretrained(folder, output_loading_info=True)  # who asks is told, as by transformers
    assert info["unexpected_keys"]


def test_weights_of_another_architecture_are_refused_beside_the_configuration_of_transformers(folders, tmp_path):
    sizes = {"vocab_size": 60, "d_model": 8, "n_head": 2, "d_inner": 12, "n_layer": 2}
    XLNetModel(XLNetConfig(**sizes)).save_pretrained(tmp_path)
    hf_lineage.LineageXLNetModel.from_pretrained(tmp_path)
    shutil.copy(folders["elmo"] / "model.safetensors", tmp_path)
    with pytest.raises(ValueError, match="another architecture"):
        hf_lineage.LineageXLNetModel.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="0 bytes"):
        hf_lineage.LineageXLNetModel.from_pretrained(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_head_on_known_weights_is_no_error_and_loading_can_be_inspected(family, folders):
    model, info = AutoModelForSequenceClassification.from_pretrained(folders[family], output_loading_info=True)
    assert info["missing_keys"]
    assert all(name.startswith(("classifier", "logits_proj", "sequence_summary")) for name in info["missing_keys"])
    same = AutoModelForSequenceClassification.from_pretrained(folders[family])
    assert type(same) is type(model)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_class_refuses_the_folder_of_another_architecture(family, folders, tmp_path):
    gpt2 = tmp_path / "gpt2"
    GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=1).save_pretrained(gpt2)
    sources = {"gpt2": gpt2, OTHER[family]: folders[OTHER[family]]}
    for model_type, source in sources.items():
        for load in (BASE_CLASSES[family].from_pretrained, CONFIG_CLASSES[family].from_pretrained):
            with pytest.raises(ValueError, match=f"of the type '{model_type}', not '{family}'") as error:
                load(source)
            assert str(source) in str(error.value)


def test_what_a_family_can_translate_is_not_refused(tmp_path):
    sizes = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(**sizes, intermediate_size=8)).save_pretrained(tmp_path)
    assert hf_lineage.LineageAlbertModel.from_pretrained(tmp_path).config.model_type == "lineage_albert"
    for name in ("ElmoModel", "LineageXLNetModel"):
        with pytest.raises(ValueError, match="type 'bert'"):
            getattr(hf_lineage, name).from_pretrained(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_class_of_a_users_own_reads_the_folders_of_its_family(family, folders):
    own = type("OwnConfig", (CONFIG_CLASSES[family],), {"model_type": "own"})
    assert own.from_pretrained(folders[family]).hidden_size == AutoConfig.from_pretrained(folders[family]).hidden_size


@pytest.mark.parametrize(
    ("family", "slip", "meant"),
    [
        ("elmo", "hiden_size", "hidden_size"),
        ("elmo", "lstm_hiddensize", "lstm_hidden_size"),
        ("lineage_albert", "share_params", "share_parameters"),
        ("lineage_albert", "num_hidden_group", "num_hidden_groups"),
        ("lineage_xlnet", "n_heads", "n_head"),
        ("lineage_xlnet", "num_attention_head", "num_attention_heads"),
    ],
)
def test_a_misspelt_field_is_a_warning_with_the_field_that_is_meant(family, slip, meant, copied, warned):
    config = AutoConfig.from_pretrained(edited(copied(family), **{slip: 4}))
    assert [text for text in warned if repr(slip) in text and repr(meant) in text], warned
    assert getattr(config, slip) == 4
    warned.clear()
    type(config)(**{slip: 4})
    assert len(warned) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_fields_of_transformers_and_of_users_pass_without_a_warning(family, copied, warned):
    folder = edited(
        copied(family), torch_dtype="float32", _name_or_path="x", num_labels=3, use_cache=True, max_length=20,
        task_specific_params={}, quantization_note="none", tokenizer_class="T", pooler_num_attention_heads=12,
        attn_implementation="eager", my_note="kept",
    )  # fmt: skip
    config = AutoConfig.from_pretrained(folder)
    assert (warned, config.my_note, config.num_labels) == ([], "kept", 3)
    config.save_pretrained(folder)
    assert AutoConfig.from_pretrained(folder).my_note == "kept"
    assert not warned


@pytest.mark.parametrize(
    ("family", "fields", "words"),
    [
        ("elmo", {"hidden_size": 17}, ["hidden_size", "even", "17"]),
        ("elmo", {"char_cnn_filters": [[60, 4]]}, ["60", "max_characters_per_token=50"]),
        ("elmo", {"num_hidden_layers": 3, "scalar_mix_parameters": [1.0]}, ["num_hidden_layers + 1 = 4"]),
        ("elmo", {"word_embedding_size": 4}, ["word_vocab_size", "at least 262"]),
        ("lineage_albert", {"hidden_size": 9}, ["hidden_size=9", "num_attention_heads=2"]),
        ("lineage_albert", {"num_hidden_groups": 9}, ["num_hidden_groups=9", "num_hidden_layers=4"]),
        ("lineage_albert", {"num_hidden_groups": 3, "share_parameters": "none"}, ["num_hidden_groups=3", "'none'"]),
        ("lineage_albert", {"attention_layer_blocks": [0, 1]}, ["attention_layer_blocks", "= 4 layers", "[0, 1]"]),
        ("lineage_albert", {"ffn_layer_blocks": [0, 0, 2, 2]}, ["ffn_layer_blocks", "not [1]"]),
        ("lineage_albert", {"share_parameters": "some"}, ["'all', 'attention', 'ffn', 'none'", "'some'"]),
        ("lineage_xlnet", {"d_model": 9}, ["d_model=9", "n_head=2"]),
        ("lineage_xlnet", {"n_head": 4, "d_head": 4}, ["d_head", "= 2", "4"]),
        ("lineage_xlnet", {"hidden_size": 16}, ["hidden_size=16", "d_model=8", "two names"]),
        ("lineage_xlnet", {"attn_type": "both"}, ["'bi', 'uni'", "'both'"]),
    ],
)
def test_contradictions_are_refused(family, fields, words, copied):
    folder = edited(copied(family), **fields)
    for load in (AutoConfig.from_pretrained, AutoModel.from_pretrained, BASE_CLASSES[family].from_pretrained):
        with pytest.raises(ValueError, match=r".") as error:
            load(folder)
        assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize("other", FAMILIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_tokenizer_of_another_family_is_refused(family, other, tmp_path):
    tiny_tokenizer(other).save_pretrained(tmp_path)
    if other == family:
        assert TOKENIZER_CLASSES[family].from_pretrained(tmp_path)("it was")["input_ids"]
        return
    name, wanted = TOKENIZER_CLASSES[other].__name__, TOKENIZER_CLASSES[family].__name__
    with pytest.raises(ValueError, match=f"is that of a {name}, whose files {wanted} would read wrongly: load it by"):
        TOKENIZER_CLASSES[family].from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "readers"),
    [
        ("AlbertTokenizer", {"lineage_albert"}),
        ("AlbertTokenizerFast", {"lineage_albert"}),
        ("XLNetTokenizer", {"lineage_xlnet"}),
        ("XLNetTokenizerFast", {"lineage_xlnet"}),
        ("T5Tokenizer", set()),
        ("BertTokenizerFast", set()),
        # of no model
        ("PreTrainedTokenizerFast", {"lineage_albert", "lineage_xlnet"}),
        ("TokenizerOfAUser", {"lineage_albert", "lineage_xlnet"}),
        ("logging", {"lineage_albert", "lineage_xlnet"}),  # a name of transformers, but of no class
        (None, {"lineage_albert", "lineage_xlnet"}),
    ],
)
@pytest.mark.parametrize("family", ["lineage_albert", "lineage_xlnet"])
def test_whose_files_a_tokenizer_reads(family, name, readers, tmp_path):
    tiny_tokenizer(family).save_pretrained(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "tokenizer_class": name}))
    if family in readers:
        assert TOKENIZER_CLASSES[family].from_pretrained(tmp_path)("it was")["input_ids"]
    else:
        with pytest.raises(ValueError, match=f"is that of a {name}, whose files"):
            TOKENIZER_CLASSES[family].from_pretrained(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("content", ["{", "[]", '{"model_type": []}', '{"model_type": "unheard_of"}'])
def test_a_tokenizer_does_not_need_the_configuration_beside_it(family, content, tmp_path, warned):
    tiny_tokenizer(family).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(content)
    assert TOKENIZER_CLASSES[family].from_pretrained(tmp_path)("it was")["input_ids"]
    assert not warned


@pytest.mark.parametrize("family", FAMILIES)
def test_tokenizers_of_users_read_what_they_derive_from(family, tmp_path, warned):
    """A class from the Hub is another than the package's, of the same name; both may be derived from."""
    tiny_tokenizer(family).save_pretrained(tmp_path)
    AutoModel.from_config(tiny_config(family)).save_pretrained(tmp_path)
    package_class = TOKENIZER_CLASSES[family]
    from_hub = type(package_class.__name__, (package_class.__base__,), {})
    for tokenizer_class in (type("Mine", (package_class,), {}), type("Mine", (from_hub,), {})):
        files = {"tokenizer_config_file": str(tmp_path / "tokenizer_config.json")}
        check_tokenizer_origin(tokenizer_class, files)
    assert not warned


@pytest.mark.parametrize("other", FAMILIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_tokenizer_beside_a_model_of_another_family_is_noticed(family, other, copied, warned):
    folder = copied(family)
    model = AutoModel.from_pretrained(folder).eval()
    tiny_tokenizer(other).save_pretrained(folder)
    warned.clear()
    inputs = AutoTokenizer.from_pretrained(folder)(["one two", "it was"], padding=True, return_tensors="pt")
    own, beside = TOKENIZER_CLASSES[family].__name__, TOKENIZER_CLASSES[other].__name__
    if other == family:
        assert not warned
        model(**inputs)
        return
    assert len(warned) == 1
    assert warned[0].startswith(f"{folder} holds a {family} model and a {beside}")
    assert warned[0].endswith(f"its tokenizer is a {own}")
    if (family, other) != ("lineage_xlnet", "lineage_albert"):  # whose ids a model of XLNet may have been trained with
        with pytest.raises(ValueError, match="is the tokenizer this model's"):
            model(**inputs)


@pytest.mark.parametrize("family", ["lineage_albert", "lineage_xlnet"])
@pytest.mark.parametrize("ids", [[[60]], [[-1]], [[1, 2, 1000]]])
def test_ids_that_the_table_has_no_rows_for_are_refused(family, ids, folders):
    model = AutoModel.from_pretrained(folders[family])
    with pytest.raises(ValueError, match=r"in \[0, vocab_size=60\).*is the tokenizer this model's"):
        model(input_ids=torch.tensor(ids))
    with pytest.raises(ValueError, match="int64 or int32"):
        model(input_ids=torch.ones(1, 2))


def test_every_family_has_the_same_checks():
    root = Path(hf_lineage.__file__).parent
    for kind in ("loading", "tokenizer_origin"):
        texts = {(root / name / f"{kind}_{name}.py").read_text() for name in ("elmo", "albert", "xlnet")}
        assert len(texts) == 1
