import json
import zipfile

import numpy as np
import pytest
import reference_manylangs as reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

from hf_lineage import ElmoModel, ElmoTokenizer, export_elmo_checkpoint
from hf_lineage.elmo.convert_elmo import MANYLANGS, convert_elmo_source
from hf_lineage.elmo.manylangs_elmo import read_dictionary, read_state_dict
from hf_lineage.elmo.sources_elmo import opened_source

SENTENCES = [
    ["今天", "天气", "真", "好", "啊", "。"],
    ["Ünïcödé", "is", "", "a" * 30, "abcdefghij", "abcdefghijKLM", "\u3000", "𠮷野家"],
    ["<bos>", "<eos>", "<pad>", "<oov>", "<bow>", "ein Wort"],
    ["好"],
]
# "abcdefghij" is a word as it is and as what is left of longer ones
WORDS = ["今天", "天气", "。", "is", "abcdefghij", "ein Wort", "\u3000", *(f"w{number}" for number in range(300))]
CHARACTERS = [*"今天气真好啊。abcdefghijinortsüW", "\u3000", "吉", "𠮷", *map(chr, range(0x4E00, 0x4E00 + 300))]


def make(tmp_path, legacy=True, characters=CHARACTERS, words=WORDS, **token_embedder):
    """Writes a folder; gives it and its vectors by the equations."""
    configuration = reference.configuration(**token_embedder)
    chars, words = reference.dictionaries(dict.fromkeys(characters), words)
    embedder, encoder = reference.random_weights(configuration, chars, words)
    folder = tmp_path / "zh.model"
    part = configuration["token_embedder"]
    written = (chars if part["char_dim"] else None, words if part["word_dim"] else None)
    reference.write_folder(folder, configuration, *written, embedder, encoder, legacy)
    return folder, [
        reference.layers(embedder, encoder, configuration, chars, words, sentence) for sentence in SENTENCES
    ]


@torch.no_grad()
def layers_of(model, tokenizer, sentences=SENTENCES):
    inputs = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
    outputs = model(**inputs, output_hidden_states=True)
    stacked = torch.stack(outputs.hidden_states, 1).numpy()
    return [layers[:, : len(sentence)] for layers, sentence in zip(stacked, sentences, strict=True)], outputs


VARIATIONS = {
    "as published": {},
    "characters only": {"word_dim": 0},
    "words only": {"char_dim": 0},
    "tanh": {"activation": "tanh"},
    "no highway": {"n_highway": 0},
    "new pickles": {"legacy": False},
    "few characters": {"characters": "天气is"},
}


@pytest.mark.parametrize("changes", VARIATIONS.values(), ids=VARIATIONS.keys())
def test_layers_follow_the_equations(changes, tmp_path):
    folder, expected = make(tmp_path, **changes)
    converted = convert_elmo_source(folder)
    assert converted.format == MANYLANGS
    converted.model.save_pretrained(tmp_path / "model")
    converted.tokenizer.save_pretrained(tmp_path / "model")
    model, tokenizer = AutoModel.from_pretrained(tmp_path / "model"), AutoTokenizer.from_pretrained(tmp_path / "model")
    assert type(model) is ElmoModel
    assert type(tokenizer) is ElmoTokenizer
    found, outputs = layers_of(model, tokenizer)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=0, err_msg=f"sentence {number}")
        # the original's default output is the mean of the layers
        mean = outputs.last_hidden_state[number, : other.shape[1]].numpy()
        np.testing.assert_allclose(mean, other.mean(0), atol=1e-5, rtol=0)


def test_the_swapped_word_boundaries_matter(tmp_path):
    """Vectors by the names' meaning, which the published code does not follow, are others."""
    folder, expected = make(tmp_path)
    chars = read_dictionary(folder / "char.dic")
    chars["<bow>"], chars["<eow>"] = chars["<eow>"], chars["<bow>"]
    (folder / "char.dic").write_text("".join(f"{entry}\t{number}\n" for entry, number in chars.items()), "utf-8")
    converted = convert_elmo_source(folder)
    found, _ = layers_of(converted.model, converted.tokenizer)
    assert np.abs(found[0] - expected[0]).max() > 1e-3


@given(
    st.lists(
        st.lists(st.text(st.sampled_from("今天气好abis \u3000Ωé𠮷"), max_size=15), max_size=5), min_size=1, max_size=3
    )
)
@settings(max_examples=25, deadline=None)
def test_any_sentences_follow_the_equations(prepared, sentences):
    parts, model, tokenizer = prepared
    found, _ = layers_of(model, tokenizer, sentences)
    for one, sentence in zip(found, sentences, strict=True):
        if sentence:
            np.testing.assert_allclose(one, reference.layers(*parts, sentence), atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    configuration = reference.configuration()
    chars, words = reference.dictionaries(dict.fromkeys(CHARACTERS), WORDS)
    embedder, encoder = reference.random_weights(configuration, chars, words)
    folder = tmp_path_factory.mktemp("any") / "model"
    reference.write_folder(folder, configuration, chars, words, embedder, encoder)
    converted = convert_elmo_source(folder)
    return (embedder, encoder, configuration, chars, words), converted.model, converted.tokenizer


def test_tokens_come_back(tmp_path):
    folder, _ = make(tmp_path)
    tokenizer = convert_elmo_source(folder).tokenizer
    ids = tokenizer([["今天", "Ωis", "abcdefghijKLM", "<bos>"]], is_split_into_words=True).input_ids[0]
    assert {len(row) for row in ids} == {13}
    assert tokenizer.convert_ids_to_tokens(ids) == ["今天", "\ufffdis", "abcdefghij", "<bos>"]
    assert tokenizer.vocab_size == max(tokenizer.input_characters.values()) + 1
    assert tokenizer.tokenize("今天 ein Wort") == ["今天", "ein", "Wort"]


def test_a_dictionary_is_read_as_the_original_reads_it(tmp_path):
    path = tmp_path / "char.dic"
    path.write_bytes("<oov>\t0\r\n\u3000\t1\n a \t2\nein Wort\t3\n\u2028x\t4\n".encode())
    assert read_dictionary(path) == {"<oov>": 0, "\u3000": 1, "a ": 2, "ein Wort": 3, "x": 4}
    for content in ("a\tb\n", "a\t1\t2\n", "\n", "a\t-1\n", "a\t²\n"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=r"char.dic, line 1: must be an entry, a tab and its number"):
            read_dictionary(path)


class Harmful:
    def __reduce__(self):
        return (open, ("harm-was-done", "w"))


@pytest.mark.parametrize("legacy", [True, False])
def test_a_pickle_that_runs_code_is_refused_and_does_not_run(legacy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, _ = make(tmp_path)
    torch.save({"projection.weight": Harmful()}, folder / "encoder.pkl", _use_new_zipfile_serialization=not legacy)
    with pytest.raises(ValueError, match=r"encoder.pkl is damaged or holds more than weights, which is not run"):
        convert_elmo_source(folder)
    assert not (tmp_path / "harm-was-done").exists()


def test_pickles_of_other_things_are_refused(tmp_path):
    torch.save([torch.zeros(2)], tmp_path / "list.pkl")
    with pytest.raises(ValueError, match="must hold named tensors, it holds a list"):
        read_state_dict(tmp_path / "list.pkl")


def rewritten(folder, name, change):
    weights = torch.load(folder / name, weights_only=True)
    change(weights)
    torch.save(weights, folder / name)


FAULTS = {
    "weights left out": (
        lambda folder: rewritten(folder, "encoder.pkl", lambda w: w.pop("backward_layer_1.state_linearity.bias")),
        "has no weights backward_layer_1.state_linearity.bias",
    ),
    "weights of another shape": (
        lambda folder: rewritten(folder, "token_embedder.pkl", lambda w: w.update({"projection.bias": torch.ones(5)})),
        r"projection.bias has shape \(5,\), by the configuration it must be \(6\)",
    ),
    "one layer too many": (
        lambda folder: rewritten(
            folder, "encoder.pkl", lambda w: w.update({"forward_layer_2.state_linearity.bias": torch.ones(5)})
        ),
        "does not have: forward_layer_2",
    ),
    "a table too short": (
        lambda folder: rewritten(
            folder, "token_embedder.pkl", lambda w: w.update({"char_emb_layer.embedding.weight": torch.ones(9, 5)})
        ),
        "char.dic has numbers up to .* has 9 vectors",
    ),
    "damaged weights": (
        lambda folder: (folder / "encoder.pkl").write_bytes((folder / "encoder.pkl").read_bytes()[:700]),
        "encoder.pkl is damaged",
    ),
    "no encoder": (lambda folder: (folder / "encoder.pkl").unlink(), "no file with an encoder.*token_embedder.pkl"),
    "no characters": (lambda folder: (folder / "char.dic").unlink(), r"'char_dim': 5, but there is no dictionary"),
    "no words": (lambda folder: (folder / "word.dic").unlink(), r"'word_dim': 7, but there is no dictionary"),
    "no <eow>": (
        lambda folder: (folder / "char.dic").write_text(
            (folder / "char.dic").read_text("utf-8").replace("<eow>", "<eox>"), "utf-8"
        ),
        "dictionary of words several times|no entry <eow>|no dictionary",
    ),
    "an LSTM for the characters": (
        lambda folder: configured(folder, "token_embedder", name="lstm"),
        "'token_embedder.name': 'lstm'; only 'cnn' is supported",
    ),
    "no projection": (lambda folder: configured(folder, "encoder", dim=6), "as wide as their projection"),
    "a number that is none": (lambda folder: configured(folder, "encoder", n_layers="2"), "num_hidden_layers"),
    "two configurations": (
        lambda folder: (
            (folder / "a.json").write_text(json.dumps(reference.configuration())),
            (folder / "cnn_50_100_512_4096_sample.json").rename(folder / "b.json"),
        ),
        r"configuration of ELMoForManyLangs several times \(a.json, b.json\)",
    ),
}


def configured(folder, part, **changes):
    path = folder / "cnn_50_100_512_4096_sample.json"
    content = json.loads(path.read_text())
    content[part].update(changes)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_folders_are_refused(fault, tmp_path):
    folder, _ = make(tmp_path)
    break_it, message = FAULTS[fault]
    break_it(folder)
    with pytest.raises(ValueError, match=message):
        convert_elmo_source(folder)


@pytest.mark.parametrize("how", ["renamed", "zip", "zip in a folder"])
def test_names_of_files_do_not_matter(how, tmp_path):
    folder, expected = make(tmp_path)
    source = folder
    if how == "renamed":
        for number, file in enumerate(sorted(folder.iterdir())):
            file.rename(folder / f"file{number}")
    else:
        source = tmp_path / "161.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for file in folder.iterdir():
                archive.write(file, f"../zh.model/{file.name}" if how == "zip in a folder" else file.name)
            archive.writestr("meta.json", json.dumps({"id": 161, "corpus": [{"language": "zho"}]}))
    converted = convert_elmo_source(source)
    found, _ = layers_of(converted.model, converted.tokenizer)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5, rtol=0)
    assert converted.languages == ([] if how == "renamed" else ["zho"])


def test_the_published_configuration_stands_in(tmp_path):
    folder, _ = make(tmp_path)
    (folder / "cnn_50_100_512_4096_sample.json").unlink()
    with opened_source(folder) as source:
        assert source.configuration["encoder"]["dim"] == 4096
        assert "cnn_50_100_512_4096_sample.json is not there" in source.notes[0]
    with pytest.raises(ValueError, match="by the configuration it must be"):
        convert_elmo_source(folder)


def test_a_model_with_dictionaries_is_not_exported_as_bytes(tmp_path):
    folder, _ = make(tmp_path, characters="ab", word_dim=0)
    with pytest.raises(ValueError, match="dictionary of characters"):
        export_elmo_checkpoint(convert_elmo_source(folder).model, tmp_path / "o.json", tmp_path / "w.hdf5")
