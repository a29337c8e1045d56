import copy
import json

import h5py
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import DataCollatorForMultipleChoice

import hf_lineage
from hf_lineage import (
    ElmoForMultipleChoice,
    ElmoForPreTraining,
    ElmoForQuestionAnswering,
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenizer,
    convert_elmo_checkpoint,
)

words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=12)
sentences = st.lists(words, min_size=1, max_size=7)
many = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def fixture_folder(shared):
    return shared / "fixtures/elmo/allennlp"


@pytest.fixture(scope="module")
def model(fixture_folder):
    return convert_elmo_checkpoint(fixture_folder / "options.json", fixture_folder / "lm_weights.hdf5")


def encode(tokenizer, batch, side="right", extra=0):
    length = max(map(len, batch)) + extra
    return tokenizer(
        batch,
        is_split_into_words=True,
        padding="max_length",
        max_length=length,
        padding_side=side,
        return_tensors="pt",
    )


@torch.no_grad()
def vectors(model, inputs):
    """Real tokens' vectors of each row, all layers."""
    output = model(**inputs, output_hidden_states=True)
    layers = torch.stack(output.hidden_states, 1)
    return [layers[row][:, mask.bool()] for row, mask in enumerate(inputs["attention_mask"])]


def test_fixture_with_carried_states(fixture_folder, model, tokenizer):
    rows = json.loads((fixture_folder / "sentences.json").read_text())
    expected = [h5py.File(fixture_folder / f"lm_embeddings_{row}.hdf5") for row in range(3)]
    stateful = copy.deepcopy(model)
    stateful.config.stateful = True
    states = None
    for number in range(10):
        inputs = tokenizer([sentences[number] for sentences in rows], padding=True, return_tensors="pt")
        found = vectors(stateful, inputs)
        with torch.no_grad():
            output = model(**inputs, initial_states=states, output_hidden_states=True)
        states = output.final_states
        for row in range(3):
            top = np.concatenate(list(expected[row][str(number)][...]), -1)
            np.testing.assert_allclose(found[row][-1].numpy(), top, atol=1e-6, rtol=1e-5)
            explicit = output.hidden_states[-1][row][inputs.attention_mask[row].bool()]
            np.testing.assert_allclose(explicit.numpy(), top, atol=1e-6, rtol=1e-5)


def test_fixture_without_states_matches_the_first_batch_only(fixture_folder, model, tokenizer):
    rows = json.loads((fixture_folder / "sentences.json").read_text())
    for row in range(3):
        file = h5py.File(fixture_folder / f"lm_embeddings_{row}.hdf5")
        for number in range(10):
            found = vectors(model, tokenizer(rows[row][number : number + 1], return_tensors="pt"))[0][-1].numpy()
            expected = np.concatenate(list(file[str(number)][...]), -1)
            assert np.allclose(found, expected, atol=1e-6, rtol=1e-5) == (number == 0)


def test_fixture_token_vectors(fixture_folder, model):
    tokens = (fixture_folder / "vocab_test.txt").read_text().split("\n")
    expected = h5py.File(fixture_folder / "elmo_token_embeddings.hdf5")["embedding"][...]
    ids = torch.tensor(ElmoTokenizer().convert_tokens_to_ids(tokens))
    with torch.no_grad():
        found = model.character_encoder(ids).numpy()
        plain = model.character_encoder.encode(ids).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6, rtol=1e-5)
    np.testing.assert_allclose(plain, expected, atol=1e-6, rtol=1e-5)


@many
@given(
    batch=st.lists(sentences, min_size=1, max_size=5),
    others=st.lists(sentences, max_size=4),
    side=st.sampled_from(["left", "right"]),
    extra=st.integers(0, 4),
    random=st.randoms(use_true_random=False),
)
def test_a_sentence_has_the_same_vectors_in_any_batch(model, tokenizer, batch, others, side, extra, random):
    alone = [vectors(model, encode(tokenizer, [sentence]))[0] for sentence in batch]
    again = [vectors(model, encode(tokenizer, [sentence]))[0] for sentence in batch]
    assert all(torch.equal(one, other) for one, other in zip(alone, again, strict=True))
    mixed = [*enumerate(batch), *((None, sentence) for sentence in others)]
    random.shuffle(mixed)
    together = vectors(model, encode(tokenizer, [sentence for _, sentence in mixed], side, extra))
    for (number, _), found in zip(mixed, together, strict=True):
        if number is not None:
            torch.testing.assert_close(found, alone[number], atol=1e-6, rtol=1e-6)


@many
@given(sentence=sentences, holes=st.lists(st.integers(0, 7), max_size=4))
def test_padding_inside_a_row_changes_nothing(model, tokenizer, sentence, holes):
    inputs = encode(tokenizer, [sentence])
    ids, mask = inputs.input_ids, inputs.attention_mask
    for hole in holes:
        hole = min(hole, ids.shape[1])
        ids = torch.cat([ids[:, :hole], torch.full_like(ids[:, :1], 5), ids[:, hole:]], 1)
        mask = torch.cat([mask[:, :hole], torch.zeros_like(mask[:, :1]), mask[:, hole:]], 1)
    found = vectors(model, {"input_ids": ids, "attention_mask": mask})[0]
    torch.testing.assert_close(found, vectors(model, inputs)[0], atol=1e-6, rtol=1e-6)


def test_padding_is_zero_and_an_empty_row_too(model, tokenizer):
    inputs = tokenizer(["a b c", "", "d"], padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**inputs, output_hidden_states=True)
    for layer in (output.last_hidden_state, *output.hidden_states):
        assert torch.all(layer[inputs.attention_mask == 0] == 0)
        assert torch.all(layer[inputs.attention_mask == 1].abs().sum(-1) > 0)
    assert output.final_states[1].abs().sum() > 0  # its boundaries were read, as in the originals


def test_states_of_smaller_and_larger_batches(model, tokenizer):
    """A smaller batch uses and updates the first rows, new rows of a larger one start from zero."""
    stateful = copy.deepcopy(model)
    stateful.config.stateful = True
    first, second, third = (
        tokenizer(text, padding=True, return_tensors="pt") for text in (["a b", "c d e"], ["f"], ["g", "h i", "j"])
    )
    vectors(stateful, first)
    after_first = stateful._carried_states.clone()
    vectors(stateful, second)
    assert torch.equal(stateful._carried_states[1], after_first[1])
    assert not torch.equal(stateful._carried_states[0], after_first[0])
    carried = stateful._carried_states.clone()
    found = vectors(stateful, third)
    alone = vectors(model, {name: value[2:] for name, value in third.items()})[0]
    torch.testing.assert_close(found[2], alone, atol=1e-6, rtol=1e-5)
    with torch.no_grad():
        start = torch.cat([carried, torch.zeros_like(carried[:1])])
        expected = model(**third, initial_states=start).final_states
    torch.testing.assert_close(stateful._carried_states, expected)
    stateful.reset_states()
    torch.testing.assert_close(vectors(stateful, first)[1], vectors(model, first)[1])
    assert not any("carried" in name for name in stateful.state_dict())


def test_distinct_words_are_encoded_like_all_words(tiny):
    encoder = ElmoModel(tiny(char_cnn_filters=[[1, 3], [5, 4], [7, 2]])).character_encoder.double()
    tokens = ["a", "", "long" * 11, "longer" * 20, "a", "和平", "word"]
    ids = torch.tensor(ElmoTokenizer().convert_tokens_to_ids(tokens)).view(1, -1, 50).repeat(2, 1, 1)
    ids[1, 2:] = ids[1, :1]
    for selection in (ids, ids[1:], ids[:, :2]):
        gradients = []
        for function in (encoder.forward, encoder.encode):
            encoder.zero_grad()
            output = function(selection)
            (output**2).sum().backward()
            gradients.append([output, *(parameter.grad.clone() for parameter in encoder.parameters())])
        torch.testing.assert_close(gradients[0], gradients[1])


@torch.no_grad()
def test_initial_weights_are_those_of_the_original(tiny):
    model = ElmoForPreTraining(tiny(hidden_size=64, lstm_hidden_size=128, char_embedding_size=16, vocab_size=500))
    encoder, lstm = model.elmo.character_encoder, model.elmo.encoder.backward_layers[1]
    table = encoder.embedding.weight
    assert torch.all(table[0] == 0)
    assert table[1:].abs().max() <= 1
    assert table[1:].std() == pytest.approx(3**-0.5, rel=0.05)
    assert 0.045 < encoder.convolutions[2].weight.abs().max() <= 0.05
    assert torch.all(encoder.highways[0].gate.bias == -2)
    assert torch.all(encoder.highways[0].transform.bias == 0)
    assert encoder.projection.weight.std() == pytest.approx(18**-0.5, rel=0.1)
    limit = (6 / (32 + 4 * 128)) ** 0.5
    assert limit * 0.9 < lstm.recurrent_linear.weight.abs().max() <= limit
    assert model.lm_head.weight.std() == pytest.approx(32**-0.5, rel=0.05)
    tanh = ElmoModel(tiny(char_cnn_activation="tanh", char_cnn_filters=[[4, 500]], char_embedding_size=25))
    assert tanh.character_encoder.convolutions[0].weight.std() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("convention", ["allennlp", "bilm"])
def test_scalar_mixes_against_the_formula(convention, tiny, tokenizer):
    model = ElmoModel(tiny(num_scalar_mixes=2, scalar_mix_layer_norm=convention, keep_sentence_boundaries=True)).eval()
    # the two mixes of bilm-tf's own test
    for mix, weights, gamma in zip(model.scalar_mixes, ([0.1, 0.3, 0.5], [0.2, 0.4, 0.6]), (1.1, 0.88), strict=True):
        mix.weights.data = torch.tensor(weights)
        mix.gamma.data.fill_(gamma)
    inputs = tokenizer(["a b c", "d"], padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**inputs, output_hidden_states=True)
    mask = output.attention_mask.bool()
    assert mask.sum(1).tolist() == [5, 3]
    counted = mask.clone()
    if convention == "bilm":
        counted[0, [0, 4]] = counted[1, [0, 2]] = False
    normed = [(layer - layer[counted].mean()) / layer[counted].std(correction=0) for layer in output.hidden_states]
    for number, (weights, gamma) in enumerate((([0.1, 0.3, 0.5], 1.1), ([0.2, 0.4, 0.6], 0.88))):
        share = np.exp(weights) / np.exp(weights).sum()
        expected = gamma * sum(float(weight) * layer for weight, layer in zip(share, normed, strict=True))
        torch.testing.assert_close(output.scalar_mixes[:, number][mask], expected[mask], atol=1e-5, rtol=1e-4)
    assert torch.equal(output.last_hidden_state, output.scalar_mixes[:, 0])


def test_fixed_mix(tiny, tokenizer, tmp_path):
    model = ElmoModel(tiny(scalar_mix_parameters=[-9e10, 1.0, -9e10])).eval()
    inputs = tokenizer("a b", return_tensors="pt")
    with torch.no_grad():
        output = model(**inputs, output_hidden_states=True)
    assert torch.equal(output.last_hidden_state, output.hidden_states[1])
    assert not list(model.scalar_mixes.parameters())
    model.save_pretrained(tmp_path)
    again = ElmoModel.from_pretrained(tmp_path)
    assert torch.equal(again.scalar_mixes[0].weights, torch.tensor([-9e10, 1.0, -9e10]))
    assert not list(again.scalar_mixes.parameters())


def test_kept_boundaries_and_boundaries_of_the_tokenizer(tiny):
    model = ElmoModel(tiny()).eval()
    kept = ElmoModel(tiny(keep_sentence_boundaries=True)).eval()
    given = ElmoModel(tiny(add_sentence_boundaries=False)).eval()
    for other in (kept, given):
        other.load_state_dict(model.state_dict())
    text = ["a b c", "d"]
    plain = ElmoTokenizer()(text, padding=True, return_tensors="pt")
    bounded = ElmoTokenizer(add_sentence_boundaries=True)(text, padding=True, return_tensors="pt")
    inside, around, complete = vectors(model, plain), kept(**plain), vectors(given, bounded)
    for row in range(2):
        torch.testing.assert_close(complete[row][:, 1:-1], inside[row])
        mask = around.attention_mask[row].bool()
        assert torch.equal(mask.long(), bounded.attention_mask[row])
        mixed = complete[row].mean(0)
        torch.testing.assert_close(around.last_hidden_state[row][mask], mixed, atol=1e-6, rtol=1e-5)


def test_pairs_read_separately_are_two_sentences(tiny, tokenizer):
    model = ElmoModel(tiny(pair_encoding="separate")).eval()
    pairs = tokenizer(["a b", "c d e f"], ["g h i", "j"], padding=True, return_tensors="pt", padding_side="left")
    found = vectors(model, pairs)
    for row, (first, second) in enumerate((("a b", "g h i"), ("c d e f", "j"))):
        apart = [vectors(model, tokenizer(text, return_tensors="pt"))[0] for text in (first, second)]
        torch.testing.assert_close(found[row], torch.cat(apart, 1), atol=1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match="states cannot be carried"):
        model(**pairs, initial_states=torch.zeros(2, 2, 2, 20))


def test_pairs_read_jointly_are_one_stream_with_boundaries_between(tiny, tokenizer):
    model = ElmoModel(tiny()).eval()
    pairs = tokenizer(["a b", "c d e f"], ["g h i", "j"], padding=True, return_tensors="pt")
    found = vectors(model, pairs)
    for row, joined in enumerate(("a b </S> <S> g h i", "c d e f </S> <S> j")):
        stream = vectors(model, tokenizer(joined, return_tensors="pt"))[0]
        boundaries = joined.split().index("</S>")
        expected = torch.cat([stream[:, :boundaries], stream[:, boundaries + 2 :]], 1)
        torch.testing.assert_close(found[row], expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("pair_encoding", ["joint", "separate"])
@pytest.mark.parametrize("pooling", ["max", "mean", "last"])
def test_pair_classifiers_train(pair_encoding, pooling, tiny, tokenizer):
    """Whether the first word stands before the second in the alphabet: neither tells alone."""
    model = ElmoForSequenceClassification(
        tiny(pair_encoding=pair_encoding, classifier_pooling=pooling, lstm_hidden_size=32, classifier_hidden_size=32)
    ).train()
    letters = "a b c d".split()
    firsts, seconds = zip(*[(one, two) for one in letters for two in letters if one != two], strict=True)
    inputs = tokenizer(list(firsts), list(seconds), return_tensors="pt")
    labels = torch.tensor([int(one < two) for one, two in zip(firsts, seconds, strict=True)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(400):
        optimizer.zero_grad()
        loss = model(**inputs, labels=labels).loss
        loss.backward()
        optimizer.step()
        if loss < 0.02:
            break
    model.eval()
    assert torch.equal(model(**inputs).logits.argmax(-1), labels)
    # one sentence instead of a pair is fine too
    assert model(**tokenizer("a b", return_tensors="pt")).logits.shape == (1, 2)


def test_pooling_sees_real_tokens_only(tiny, tokenizer):
    for pooling in ("max", "mean", "last"):
        for pair_encoding in ("joint", "separate"):
            model = ElmoForSequenceClassification(tiny(classifier_pooling=pooling, pair_encoding=pair_encoding)).eval()
            texts = (["a b", "c"], ["d", "e f g"])
            with torch.no_grad():
                alone = torch.cat(
                    [model(**tokenizer(*pair, return_tensors="pt")).logits for pair in zip(*texts, strict=True)]
                )
                for side in ("left", "right"):
                    inputs = tokenizer(
                        *texts, padding="max_length", max_length=9, padding_side=side, return_tensors="pt"
                    )
                    torch.testing.assert_close(model(**inputs).logits, alone, atol=1e-6, rtol=1e-5)


def test_pretraining_losses_by_hand(tiny, tokenizer):
    model = ElmoForPreTraining(tiny(vocab_size=7)).eval()
    inputs = tokenizer(["a b c", "d"], padding=True, padding_side="left", return_tensors="pt")
    labels = torch.tensor([[3, 4, 5], [-100, -100, 6]])
    output = model(**{name: inputs[name] for name in ("input_ids", "attention_mask")}, labels=labels)
    ahead, back = output.forward_logits.log_softmax(-1), output.backward_logits.log_softmax(-1)
    # <S> 3 4 5 </S> and <S> 6 </S>, with <S> = 0 and </S> = 1
    forward_terms = [ahead[0, 0, 3], ahead[0, 1, 4], ahead[0, 2, 5], ahead[0, 3, 1], ahead[1, 0, 6], ahead[1, 1, 1]]
    backward_terms = [back[0, 0, 0], back[0, 1, 3], back[0, 2, 4], back[0, 3, 5], back[1, 0, 0], back[1, 1, 6]]
    torch.testing.assert_close(output.forward_loss, -torch.stack(forward_terms).mean())
    torch.testing.assert_close(output.backward_loss, -torch.stack(backward_terms).mean())
    torch.testing.assert_close(output.loss, (output.forward_loss + output.backward_loss) / 2)


def test_pretraining_labels_of_pairs(tiny, tokenizer):
    pairs = tokenizer(["a b", "c"], ["d", "e f g"], padding=True, return_tensors="pt")
    labels = torch.tensor([[3, 4, 5, -100], [6, 7, 8, 9]])
    # the boundaries between the sentences are symbols like any other
    streams = {
        "joint": [[0, 3, 4, 1, 0, 5, 1], [0, 6, 1, 0, 7, 8, 9, 1]],
        "separate": [[0, 3, 4, 1], [0, 5, 1], [0, 6, 1], [0, 7, 8, 9, 1]],
    }
    for pair_encoding, expected in streams.items():
        model = ElmoForPreTraining(tiny(vocab_size=10, pair_encoding=pair_encoding)).eval()
        output = model(**pairs, labels=labels)
        ahead, back = output.forward_logits.log_softmax(-1), output.backward_logits.log_softmax(-1)
        forward_terms = [
            ahead[row, i, word] for row, stream in enumerate(expected) for i, word in enumerate(stream[1:])
        ]
        backward_terms = [
            back[row, i, word] for row, stream in enumerate(expected) for i, word in enumerate(stream[:-1])
        ]
        torch.testing.assert_close(output.forward_loss, -torch.stack(forward_terms).mean())
        torch.testing.assert_close(output.backward_loss, -torch.stack(backward_terms).mean())


def test_the_language_model_does_not_see_what_it_predicts(tiny, tokenizer):
    model = ElmoForPreTraining(tiny(vocab_size=7)).eval()
    one, other = (tokenizer(f"a b {word} d e", return_tensors="pt").input_ids for word in "xy")
    with torch.no_grad():
        first, second = model(one), model(other)
    # forward_logits[i] predicts symbol i + 1 and backward_logits[i] symbol i; the changed word is symbol 3
    assert torch.equal(first.forward_logits[0, :3], second.forward_logits[0, :3])
    assert not torch.equal(first.forward_logits[0, 3], second.forward_logits[0, 3])
    assert torch.equal(first.backward_logits[0, 3:], second.backward_logits[0, 3:])
    assert not torch.equal(first.backward_logits[0, 2], second.backward_logits[0, 2])


def test_pretraining_learns_a_sentence(tiny, tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("<S>\n</S>\n<UNK>\nthe\ncat\nsat\n")
    tokenizer = ElmoTokenizer(str(vocabulary))
    model = ElmoForPreTraining(tiny(vocab_size=6, lstm_dropout=0.1)).train()
    text = ["the cat sat", "the dog sat"]
    inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
    labels = torch.tensor([tokenizer.convert_tokens_to_word_ids(sentence.split()) for sentence in text])
    assert labels.tolist() == [[3, 4, 5], [3, 2, 5]]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(120):
        optimizer.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
    model.eval()
    # only the middle word cannot be known, in one of four predictions a direction
    assert model(**inputs, labels=labels).loss < 0.25 * np.log(2) + 0.1


@pytest.mark.parametrize(
    "name",
    [
        "ElmoModel",
        "ElmoForPreTraining",
        "ElmoForSequenceClassification",
        "ElmoForTokenClassification",
        "ElmoForQuestionAnswering",
        "ElmoForMultipleChoice",
    ],
)
def test_saving_and_loading_is_bit_equal(name, tiny, tokenizer, tmp_path):
    model_class = getattr(hf_lineage, name)
    model = model_class(tiny(vocab_size=9)).eval()
    model.save_pretrained(tmp_path)
    again = model_class.from_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    ids = tokenizer(["a b", "c"], padding=True, return_tensors="pt").input_ids
    ids = ids[:, None].repeat(1, 2, 1, 1) if name == "ElmoForMultipleChoice" else ids
    with torch.no_grad():
        for one, other in zip(model(ids).to_tuple(), again(ids).to_tuple(), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradient_checkpointing_gives_the_same_gradients(use_reentrant, tiny, tokenizer):
    model = ElmoForTokenClassification(tiny()).train()
    inputs = tokenizer(["a b c d", "e"], padding=True, return_tensors="pt")
    labels = torch.tensor([[0, 1, 1, 0], [1, -100, -100, -100]])
    gradients = []
    for checkpointing in (False, True):
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
        model.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("convention", ["allennlp", "bilm"])
def test_layer_norm_in_half_precision_counts_large_batches(convention, tiny, tokenizer):
    model = ElmoModel(tiny(scalar_mix_layer_norm=convention)).eval()
    inputs = tokenizer([" ".join("abcdefgh" * 5)] * 120, return_tensors="pt")  # 76,800 numbers a layer
    with torch.no_grad():
        full, half = model(**inputs).last_hidden_state, model.half()(**inputs).last_hidden_state
    torch.testing.assert_close(half.float(), full, atol=0.05, rtol=0.05)


def test_bfloat16(tiny, tokenizer):
    model = ElmoModel(tiny(scalar_mix_layer_norm="bilm", num_scalar_mixes=2)).eval()
    inputs = tokenizer(["a b c", "d"], padding=True, return_tensors="pt")
    with torch.no_grad():
        full, half = model(**inputs).last_hidden_state, model.bfloat16()(**inputs).last_hidden_state
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), full, atol=0.1, rtol=0.1)


@pytest.mark.parametrize(
    "model_class", [ElmoModel, ElmoForSequenceClassification, ElmoForTokenClassification, ElmoForQuestionAnswering]
)
def test_arguments_that_elmo_has_no_use_for_must_ask_for_nothing(model_class, tiny, tokenizer):
    model = model_class(tiny()).eval()
    inputs = tokenizer(["a b"], return_tensors="pt")
    found = model(**inputs, inputs_embeds=None, output_attentions=False)[0]
    assert torch.equal(found, model(**inputs)[0])
    with pytest.raises(ValueError, match="there are no inputs_embeds"):
        model(inputs_embeds=torch.zeros(1, 2, 16))
    with pytest.raises(ValueError, match="output_attentions must be None or False"):
        model(**inputs, output_attentions=True)


@pytest.mark.skipif(not hasattr(torch.compiler, "is_exporting"), reason="torch 2.6 cannot tell that it exports")
def test_export_takes_any_batch_and_length(tiny, tokenizer):
    model = ElmoForSequenceClassification(tiny(num_hidden_layers=1)).eval()
    example = tokenizer(["a b c d", "e"], padding=True, return_tensors="pt")
    batch, tokens = torch.export.Dim("batch"), torch.export.Dim("tokens", min=2, max=512)
    with torch.no_grad():
        program = torch.export.export(
            model,
            (example.input_ids, example.attention_mask),
            dynamic_shapes={name: {0: batch, 1: tokens} for name in ("input_ids", "attention_mask")},
        )
        for texts in (["a b c d", "e"], ["f g h i j k l", "", "m"]):
            inputs = tokenizer(texts, padding=True, return_tensors="pt")
            found = program.module()(inputs.input_ids, inputs.attention_mask).logits
            expected = model(inputs.input_ids, inputs.attention_mask).logits
            torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_question_answering_and_multiple_choice_losses(tiny, tokenizer):
    inputs = tokenizer(["q r"] * 2, ["a b c", "d"], padding=True, return_tensors="pt")
    model = ElmoForQuestionAnswering(tiny()).eval()
    # the second row's answer was cut off
    output = model(**inputs, start_positions=torch.tensor([2, 9]), end_positions=torch.tensor([4, 9]))
    start, end = output.start_logits[0].log_softmax(-1)[2], output.end_logits[0].log_softmax(-1)[4]
    torch.testing.assert_close(output.loss, -(start + end) / 2)

    choices = {name: value.view(1, 2, *value.shape[1:]) for name, value in inputs.items()}
    for pair_encoding in ("joint", "separate"):
        model = ElmoForMultipleChoice(tiny(pair_encoding=pair_encoding)).eval()
        output = model(**choices, labels=torch.tensor([1]))
        torch.testing.assert_close(output.loss, -output.logits.log_softmax(-1)[0, 1])


def test_multiple_choice_with_the_standard_collator(tiny, tokenizer):
    questions = [(["q", "q"], ["a b c", "d"]), (["r s", "r s"], ["e", "f g"])]
    features = [{**tokenizer(*question), "label": number} for number, question in enumerate(questions)]
    batch = DataCollatorForMultipleChoice(tokenizer)(features)
    model = ElmoForMultipleChoice(tiny()).eval()
    with torch.no_grad():
        found = model(**batch)
        for row, question in enumerate(questions):
            alone = {
                name: value[None] for name, value in tokenizer(*question, padding=True, return_tensors="pt").items()
            }
            torch.testing.assert_close(found.logits[row], model(**alone).logits[0], atol=1e-6, rtol=1e-5)
    assert batch["labels"].tolist() == [0, 1]
    assert found.loss.isfinite()


def test_regression_and_multi_label(tiny, tokenizer):
    inputs = tokenizer(["a", "b c"], padding=True, return_tensors="pt")
    model = ElmoForSequenceClassification(tiny(num_labels=1)).eval()
    output = model(**inputs, labels=torch.tensor([0.5, 3.0]))
    torch.testing.assert_close(output.loss, ((output.logits[:, 0] - torch.tensor([0.5, 3.0])) ** 2).mean())
    model = ElmoForSequenceClassification(tiny(num_labels=3, problem_type="multi_label_classification")).eval()
    assert model(**inputs, labels=torch.ones(2, 3)).loss.isfinite()


BAD_CALLS = {
    "two dimensions": (lambda ids: {"input_ids": ids[0]}, "3 dimensions"),
    "floats": (lambda ids: {"input_ids": ids.float()}, "int64"),
    "other word length": (lambda ids: {"input_ids": ids[..., :20]}, "max_characters_per_token=50.*20"),
    "negative": (lambda ids: {"input_ids": ids - 400}, r"\[0, char_vocab_size=262\)"),
    "outside the table": (lambda ids: {"input_ids": ids + 1}, r"\[0, char_vocab_size=262\)"),
    "no tokens": (lambda ids: {"input_ids": ids[:, :0]}, "at least one token"),
    "no rows": (lambda ids: {"input_ids": ids[:0]}, "at least one row"),
    "mask of another length": (lambda ids: {"input_ids": ids, "attention_mask": torch.ones(2, 5)}, "attention_mask"),
    "types of another length": (lambda ids: {"input_ids": ids, "token_type_ids": torch.ones(2, 5)}, "token_type_ids"),
    "a list for a mask": (lambda ids: {"input_ids": ids, "attention_mask": [[1, 1], [1, 0]]}, "attention_mask.*list"),
    "a third sentence": (
        lambda ids: {"input_ids": ids, "token_type_ids": 2 * torch.ones(2, 2).long()},
        "token_type_ids must be 0 or 1, got 2",
    ),
    "a list for states": (lambda ids: {"input_ids": ids, "initial_states": [1]}, "initial_states.*list"),
    "integer states": (
        lambda ids: {"input_ids": ids, "initial_states": torch.zeros(2, 2, 2, 20).long()},
        "initial_states must be floating point",
    ),
    "states of another shape": (lambda ids: {"input_ids": ids, "initial_states": torch.zeros(2, 3)}, "initial_states"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_arguments_are_refused(case, tiny, tokenizer):
    make, message = BAD_CALLS[case]
    ids = tokenizer(["a b", "c"], padding=True, return_tensors="pt").input_ids
    with pytest.raises(ValueError, match=message):
        ElmoModel(tiny())(**make(ids))


@pytest.mark.parametrize(
    ("model_class", "labels"),
    [
        (ElmoForSequenceClassification, [0, 2]),
        (ElmoForSequenceClassification, [-1, 0]),
        (ElmoForTokenClassification, [[0, 5], [0, 0]]),
        (ElmoForTokenClassification, [[0, -1], [0, 0]]),
        (ElmoForPreTraining, [[0, 9], [0, 0]]),
        (ElmoForTokenClassification, [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_labels_out_of_range_are_refused(model_class, labels, tiny, tokenizer):
    ids = tokenizer(["a b", "c"], padding=True, return_tensors="pt").input_ids
    with pytest.raises(ValueError, match="labels must"):
        model_class(tiny(vocab_size=9))(ids, labels=torch.tensor(labels))


MULTI_LABEL = {"problem_type": "multi_label_classification"}
BAD_LABELS = {
    "classes of another batch": (ElmoForSequenceClassification, {}, {"labels": torch.zeros(3).long()}, "labels.*(2,)"),
    "floats for classes": (ElmoForSequenceClassification, {}, {"labels": torch.zeros(2)}, "labels.*(2, 2)"),
    "a list of classes": (ElmoForSequenceClassification, {}, {"labels": [0, 1]}, "labels must be a tensor, got list"),
    "integers for a regression": (
        ElmoForSequenceClassification,
        {"num_labels": 1},
        {"labels": torch.zeros(2).long()},
        "labels must be floating point",
    ),
    "integers for several labels": (
        ElmoForSequenceClassification,
        MULTI_LABEL,
        {"labels": torch.zeros(2, 2).long()},
        "labels must be floating point",
    ),
    "float positions": (
        ElmoForQuestionAnswering,
        {},
        {"start_positions": torch.zeros(2), "end_positions": torch.zeros(2).long()},
        "start_positions must be integers",
    ),
    "positions of another batch": (
        ElmoForQuestionAnswering,
        {},
        {"start_positions": torch.zeros(2).long(), "end_positions": torch.zeros(3).long()},
        "end_positions.*(2,)",
    ),
    "a negative position": (
        ElmoForQuestionAnswering,
        {},
        {"start_positions": torch.zeros(2).long() - 1, "end_positions": torch.zeros(2).long()},
        "start_positions must be 0 or more, got -1",
    ),
    "one position": (ElmoForQuestionAnswering, {}, {"start_positions": torch.zeros(2).long()}, "given together"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_labels_of_the_wrong_form_are_refused(case, tiny, tokenizer):
    model_class, fields, labels, message = BAD_LABELS[case]
    ids = tokenizer(["a b", "c"], padding=True, return_tensors="pt").input_ids
    with pytest.raises(ValueError, match=message):
        model_class(tiny(**fields))(ids, **labels)


def test_choices_of_another_batch_are_refused(tiny):
    with pytest.raises(ValueError, match="one choice a row"):
        ElmoForMultipleChoice(tiny())(torch.full((1, 2, 3, 50), 5), labels=torch.zeros(2).long())


def test_states_of_a_head_can_be_reset(tiny, tokenizer):
    model = ElmoForSequenceClassification(tiny(stateful=True)).eval()
    inputs = tokenizer("a b", return_tensors="pt")
    with torch.no_grad():
        first, second = model(**inputs).logits, model(**inputs).logits
        model.reset_states()
        assert torch.equal(model(**inputs).logits, first)
    assert not torch.equal(second, first)


def test_heads_refuse_what_they_cannot_do(tiny):
    with pytest.raises(ValueError, match="keep_sentence_boundaries"):
        ElmoForTokenClassification(tiny(keep_sentence_boundaries=True))
    with pytest.raises(ValueError, match="vocab_size"):
        ElmoForPreTraining(tiny())
