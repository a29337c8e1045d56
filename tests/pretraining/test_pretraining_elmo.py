"""ELMo through the pretraining command: its original's test, kills, softmaxes, other models' weights, the export."""

import json
import math
import random
import signal
from pathlib import Path

import pytest
import torch
from pretraining_runs import (
    WORDS,
    assert_same_weights,
    prepare,
    results,
    run,
    run_and_kill,
    run_processes,
    weights,
)

from hf_lineage import (
    ElmoConfig,
    ElmoForPreTraining,
    ElmoModel,
    ElmoTokenizer,
    convert_elmo_checkpoint,
    export_elmo_checkpoint,
)
from hf_lineage.pretraining.elmo import ElmoArguments
from tokenizer_training.elmo import train_elmo_tokenizer
from tokenizer_training.text import TextLines

MODEL = {
    "char_embedding_size": 4,
    "char_cnn_filters": [[1, 4], [2, 8]],
    "num_highway_layers": 1,
    "hidden_size": 16,
    "lstm_hidden_size": 12,
}
SIZES = {"per_device_train_batch_size": 8, "per_device_eval_batch_size": 4, "unroll_steps": 10}
COMMON = {
    "family": "elmo",
    "model_config": json.dumps(MODEL),
    "optimizer": "adamw",
    "text_unit": "line",
    **SIZES,
}


def write_words(folder: Path, words: list[str], **options) -> Path:
    vocabulary = folder.parent / f"{folder.name}.txt"
    vocabulary.write_text("".join(f"{word}\n" for word in ("<S>", "</S>", "<UNK>", *words)))
    ElmoTokenizer(vocabulary, max_characters_per_token=8, **options).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = prepare(tmp_path_factory.mktemp("runs"))
    write_words(folder / "tokenizer", WORDS)
    return folder


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict:
    assert run(folder, "whole", **COMMON)
    return results(folder, "whole")


def held_out(run: dict, when: str = "last", reading: str = "streams") -> dict:
    return run["validation"][when]["validation"][reading]


def test_both_directions_learn(whole):
    first, last = held_out(whole, "first"), held_out(whole)
    for direction in ("forward", "backward"):
        assert last[f"{direction}_loss"] < first[f"{direction}_loss"] - 0.03
        assert last[f"{direction}_perplexity"] == pytest.approx(math.exp(last[f"{direction}_loss"]))
    assert last["perplexity"] == pytest.approx(math.sqrt(last["forward_perplexity"] * last["backward_perplexity"]))
    losses = [(r["loss"], r["forward_loss"], r["backward_loss"]) for r in whole["records"] if "loss" in r]
    assert all(loss == pytest.approx((ahead + back) / 2) for loss, ahead, back in losses)
    assert whole["model_config"]["lstm_dropout"] == 0.1


def test_what_is_held_out_is_counted_right(folder, whole):
    lines = [line.split() for line in (folder / "validation.txt").read_text().splitlines() if line]
    frequencies = [sum(line.count(word) for line in lines) for word in WORDS] + [len(lines)]
    count = sum(frequencies)
    last = held_out(whole)
    assert last["prediction_count"] == count
    entropy = -sum(number / count * math.log(number / count) for number in frequencies if number)
    assert last["unigram_perplexity"] == pytest.approx(math.exp(entropy))
    assert last["unknown_share"] == 0


def test_as_the_original_tests_its_training(shared, tmp_path):
    """bilm-tf's `tests/test_training.py`, characters and both directions: a perplexity below 20 on its own text."""
    fixture = shared / "fixtures" / "elmo" / "bilm_tf" / "train"
    tokenizer = ElmoTokenizer(fixture / "vocab.txt", max_characters_per_token=10, text_split="whitespace")
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    model = {
        "char_embedding_size": 4,
        "char_cnn_filters": [[1, 8], [2, 8], [3, 16], [4, 32], [5, 64]],
        "char_cnn_activation": "tanh",
        "num_highway_layers": 1,
        "hidden_size": 16,
        "lstm_hidden_size": 16,
        "use_skip_connections": False,
        "cell_clip": None,
        "proj_clip": None,
    }
    original = {
        "unroll_steps": 10,
        "per_device_train_batch_size": 2,
        "per_device_eval_batch_size": 1,
        "softmax": "sampled",
        "num_negative_samples": 16,
        "max_steps": 300,  # 50 times over the text
        "optimizer": "adagrad",
        "learning_rate": 0.2,
        "lr_scheduler_type": "constant",
        "warmup_ratio": 0,
        "weight_decay": 0,
        # its loss is multiplied by the steps of a window, its gradient then cut to a norm of 1
        "max_grad_norm": 0.1,
        "adagrad_accumulator": 0.01,
    }
    data = {"train_files": fixture / "data.txt", "validation_files": fixture / "data.txt", "save_steps": 300}
    assert run(tmp_path, **{**COMMON, **original, **data, "model_config": json.dumps(model)})
    last = held_out(results(tmp_path))
    assert last["prediction_count"] == 134 + 5
    assert max(last["forward_perplexity"], last["backward_perplexity"]) < 20


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"softmax": "sampled", "num_negative_samples": 8, "optimizer": "adagrad", "state_reset_probability": 0.2},
        {"reading": "sentences", "unroll_steps": None, "softmax": "adaptive", "adaptive_cutoffs": [10]},
    ],
    ids=["full", "sampled", "adaptive"],
)
def test_a_killed_run_ends_with_the_same_weights_bit_for_bit(folder, whole, options):
    name = options.get("softmax", "whole")
    settings = {**COMMON, **options}
    if options:
        assert run(folder, name, **settings)
    output = f"{name}-killed"
    for step in sorted(random.sample(range(4, 17), 2)):
        assert run_and_kill(folder, step, output=output, **settings) in (-signal.SIGKILL, 0)
    assert run(folder, output, **settings)
    assert_same_weights(weights(folder, output), weights(folder, name))
    one, other = (results(folder, each) for each in (output, name))
    assert held_out(one, reading=settings.get("reading", "streams")) == held_out(
        other, reading=settings.get("reading", "streams")
    )
    assert one["tokens"] == other["tokens"]


def test_the_states_in_a_checkpoint_are_what_the_next_batch_begins_with(folder, whole):
    (path,) = (folder / "whole" / "checkpoints").glob("step-00000020")
    state = torch.load(path / "training_state.pt", weights_only=True)
    (carried,) = state["training"]["processes"][0]["carried"]
    assert carried.shape == (8, 2, 2, 8 + 12)
    assert carried.abs().sum() > 0


def test_with_workers_and_in_two_processes(folder):
    assert run(folder, "workers", **COMMON, dataloader_num_workers=2, max_steps=6)
    assert run_processes(folder, 2, output="two", **COMMON, max_steps=6) == [0, 0]
    assert (
        held_out(results(folder, "two"))["prediction_count"]
        == held_out(results(folder, "workers"))["prediction_count"]
    )


def test_held_out_text_is_read_both_ways(folder):
    assert run(folder, "both", **COMMON, max_steps=2, validation_readings=["streams", "sentences"])
    found = results(folder, "both")
    streams, sentences = (held_out(found, reading=reading) for reading in ("streams", "sentences"))
    for name in ("prediction_count", "unigram_perplexity", "unknown_share"):
        assert streams[name] == pytest.approx(sentences[name])
    # the model of the run says the same of sentences
    model = ElmoForPreTraining.from_pretrained(folder / "both" / "model")
    tokenizer = ElmoTokenizer.from_pretrained(folder / "both" / "model")
    lines = [line for line in (folder / "validation.txt").read_text().splitlines() if line]
    scores = model.score(lines, tokenizer)
    assert -float(scores.forward_sums.sum()) / sentences["prediction_count"] == pytest.approx(
        sentences["forward_loss"], rel=1e-4
    )
    assert -float(scores.backward_sums.sum()) / sentences["prediction_count"] == pytest.approx(
        sentences["backward_loss"], rel=1e-4
    )


def test_a_trained_model_goes_out_in_the_original_format_and_comes_back(folder, whole, tmp_path):
    model = ElmoForPreTraining.from_pretrained(folder / "whole" / "model")
    files = tmp_path / "options.json", tmp_path / "weights.hdf5"
    export_elmo_checkpoint(model, *files, with_softmax=True)
    back = convert_elmo_checkpoint(*files, with_softmax=True)
    assert isinstance(back, ElmoForPreTraining)
    assert_same_weights(back.state_dict(), model.state_dict())
    assert type(convert_elmo_checkpoint(*files)) is ElmoModel
    export_elmo_checkpoint(model, *files)
    with pytest.raises(ValueError, match="no dataset softmax/W"):
        convert_elmo_checkpoint(*files, with_softmax=True)
    with pytest.raises(ValueError, match="ElmoModel has none"):
        export_elmo_checkpoint(model.elmo, *files, with_softmax=True)


@pytest.fixture
def converted(folder, whole, tmp_path) -> Path:
    """The run's model as it comes from the original format: without a softmax."""
    files = tmp_path / "options.json", tmp_path / "weights.hdf5"
    export_elmo_checkpoint(ElmoForPreTraining.from_pretrained(folder / "whole" / "model"), *files)
    convert_elmo_checkpoint(*files).save_pretrained(tmp_path / "converted")
    return tmp_path / "converted"


def test_a_converted_model_is_tuned_on_other_text(folder, whole, converted, caplog):
    settings = {**COMMON, "model_config": None, "model_name_or_path": converted, "max_steps": 12}
    assert run(folder, "tuned", **settings, overwrite_output_dir=True)
    assert "it begins with a new one" in caplog.text
    tuned, before = weights(folder, "tuned"), weights(folder, "whole")
    assert tuned.keys() == before.keys()
    start = folder / "whole" / "model"
    settings["model_name_or_path"] = start
    assert run(folder, "more", **settings, overwrite_output_dir=True)
    assert held_out(results(folder, "more"), "first") == held_out(whole)
    assert held_out(results(folder, "more"))["perplexity"] < held_out(whole)["perplexity"]


def test_another_vocabulary_needs_a_new_softmax(folder, whole):
    write_words(folder / "fewer", WORDS[:30])
    settings = {
        **COMMON,
        "model_config": None,
        "model_name_or_path": folder / "whole" / "model",
        "tokenizer_name_or_path": folder / "fewer",
        "max_steps": 2,
    }
    with pytest.raises(ValueError, match="has 63 words, the tokenizer 33; give the model's own tokenizer, or --new_s"):
        run(folder, "other", **settings)
    assert run(folder, "other", **settings, new_softmax=True)
    assert weights(folder, "other")["lm_head.weight"].shape == (33, 8)
    assert held_out(results(folder, "other"))["unknown_share"] > 0.2


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_model_that_reads_words(folder, tmp_path, is_shared):
    (tmp_path / "text.txt").write_text("\n".join(" ".join(WORDS) for _ in range(3)))
    train_elmo_tokenizer(
        TextLines([tmp_path / "text.txt"], held_out=0), tmp_path / "words", text_split="whitespace", word_input=True
    )
    model = {**MODEL, "char_embedding_size": 0, "word_embedding_size": 8, "tie_word_embeddings": is_shared}
    settings = {**COMMON, "model_config": json.dumps(model), "tokenizer_name_or_path": tmp_path / "words"}
    name = f"words-{is_shared}"
    assert run(folder, name, **settings)
    found = results(folder, name)
    assert held_out(found)["perplexity"] < 0.95 * held_out(found, "first")["perplexity"]
    assert ("lm_head.weight" in weights(folder, name)) is not is_shared
    loaded = ElmoForPreTraining.from_pretrained(folder / name / "model")
    assert (loaded.lm_head.weight is loaded.elmo.character_encoder.word_embedding.weight) is is_shared
    tokenizer = ElmoTokenizer.from_pretrained(folder / name / "model")
    assert loaded.score([WORDS[0]], tokenizer).perplexities.isfinite().all()
    if is_shared:
        write_words(tmp_path / "others", WORDS, word_vocab_file=folder / name / "model" / "word_vocab.json")
        with pytest.raises(ValueError, match="has not the same words in its input and its word vocabulary"):
            run(folder, "bad", **{**settings, "tokenizer_name_or_path": tmp_path / "others"})
        tuning = {**settings, "model_config": None, "model_name_or_path": folder / name / "model"}
        with pytest.raises(ValueError, match="is its input's, so --new_softmax must be false"):
            run(folder, "bad", **tuning, new_softmax=True)
        assert run(folder, f"{name}-tuned", **tuning, max_steps=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reading": "words"}, "--reading must be streams or sentences, got 'words'"),
        ({"softmax": "half"}, "--softmax must be full, sampled or adaptive, got 'half'"),
        ({"unroll_steps": 0}, "--unroll_steps must be at least 1, got 0"),
        ({"reading": "sentences", "unroll_steps": 20}, "--unroll_steps goes with streams"),
        ({"num_negative_samples": 5}, "--num_negative_samples goes with --softmax sampled, got --softmax full"),
        ({"adaptive_cutoffs": [5], "softmax": "sampled"}, "--adaptive_cutoffs goes with --softmax adaptive"),
        ({"validation_readings": ["pages"]}, "--validation_readings must be different ones of streams and sentences"),
        ({"state_reset_probability": 2.0}, "--state_reset_probability must be between 0 and 1, got 2.0"),
        ({"lstm_dropout": 1.0}, "--lstm_dropout must be at least 0 and below 1, got 1.0"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        ElmoArguments(**settings)


def test_tokenizers_and_models_that_do_not_fit(folder, tmp_path):
    settings = {**COMMON, "max_steps": 1}
    ElmoTokenizer(max_characters_per_token=8).save_pretrained(tmp_path / "wordless")
    with pytest.raises(ValueError, match="wordless has no word vocabulary; python -m tokenizer_training elmo"):
        run(folder, "bad", **settings, tokenizer_name_or_path=tmp_path / "wordless")
    write_words(tmp_path / "bounded", WORDS, add_sentence_boundaries=True)
    with pytest.raises(ValueError, match="adds sentence boundaries"):
        run(folder, "bad", **settings, tokenizer_name_or_path=tmp_path / "bounded")
    with pytest.raises(ValueError, match="num_negative_samples must be below vocab_size=63, got 8192"):
        run(folder, "bad", **settings, softmax="sampled")
    ElmoModel(ElmoConfig(**MODEL)).save_pretrained(tmp_path / "longer")
    settings["model_config"] = None
    with pytest.raises(ValueError, match="reads 50 characters a token, the tokenizer gives 8"):
        run(folder, "bad", **settings, model_name_or_path=tmp_path / "longer")
    with_words = {**MODEL, "max_characters_per_token": 8, "word_vocab_size": 262, "word_embedding_size": 4}
    ElmoModel(ElmoConfig(**with_words)).save_pretrained(tmp_path / "words")
    with pytest.raises(ValueError, match="has 262 words in its input, the tokenizer 0; give the model's own"):
        run(folder, "bad", **settings, model_name_or_path=tmp_path / "words")
    with pytest.raises(ValueError, match="cannot load a model from"):
        run(folder, "bad", **settings, model_name_or_path=tmp_path / "nowhere")
