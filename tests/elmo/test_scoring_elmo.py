import pytest
import torch

from hf_lineage import ElmoForPreTraining, ElmoTokenizer

WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "dog", "on", "mat", "."]
TEXTS = ["the cat sat .", "", "a dog", "the dog sat on the mat ."]


@pytest.fixture
def words(tmp_path) -> ElmoTokenizer:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{word}\n" for word in WORDS))
    return ElmoTokenizer(path)


@pytest.fixture
def model(tiny) -> ElmoForPreTraining:
    return ElmoForPreTraining(tiny(vocab_size=len(WORDS), lstm_dropout=0.3))


def test_scores_are_those_of_the_logits(model, words):
    scores = model.score(TEXTS, words, batch_size=3)
    assert model.training
    model.eval()
    for number, text in enumerate(TEXTS):
        output = model(words([text], return_tensors="pt").input_ids)
        ids = [0, *words.convert_tokens_to_word_ids(text.split()), 1]
        ahead, back = (logits[0].log_softmax(-1) for logits in (output.forward_logits, output.backward_logits))
        places = range(len(ids) - 1)
        torch.testing.assert_close(scores.forward[number], torch.stack([ahead[i, ids[i + 1]] for i in places]))
        torch.testing.assert_close(scores.backward[number], torch.stack([back[i, ids[i]] for i in places]))
        torch.testing.assert_close(scores.forward_sums[number], scores.forward[number].sum())
        both = torch.cat([scores.forward[number], scores.backward[number]])
        torch.testing.assert_close(scores.perplexities[number], (-both.mean()).exp())
    assert scores.words[2] == ["a", "dog"]
    assert scores.is_known[2].tolist() == [False, True]


def test_scores_do_not_depend_on_batches_nor_on_what_was_read_before(tiny, words):
    model = ElmoForPreTraining(tiny(vocab_size=len(WORDS), stateful=True)).eval()
    first = model.score(TEXTS, words)
    carried = model(words(["the mat"], return_tensors="pt").input_ids).final_states
    again = model.score(TEXTS, words, batch_size=1)
    for one, other in zip(first.forward + first.backward, again.forward + again.backward, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.equal(model.elmo._carried_states, carried)  # nor do they change it


def test_one_sentence_and_lists_of_words_are_scored_too(model, words):
    torch.testing.assert_close(
        model.score("the cat sat .", words).forward, model.score([["the", "cat", "sat", "."]], words).forward
    )


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_expected_words(model, words, direction):
    found = model.top_words("the cat sat .", 1, 7, tokenizer=words, direction=direction)
    model.eval()
    output = model(words(["the cat sat ."], return_tensors="pt").input_ids)
    ahead, back = output.forward_logits[0, 1].log_softmax(-1), output.backward_logits[0, 2].log_softmax(-1)
    scores = {"forward": ahead, "backward": back, "both": (ahead + back).log_softmax(-1)}[direction]
    expected = sorted(((WORDS[i], scores[i].item()) for i in range(3, 10)), key=lambda pair: -pair[1])
    assert [word for word, _ in found] == [word for word, _ in expected]
    assert [value for _, value in found] == pytest.approx([value for _, value in expected], abs=1e-5)


def test_the_word_itself_is_not_looked_at(model, words):
    one, other = (model.top_words(f"the {word} sat .", 1, 3, tokenizer=words) for word in ("cat", "unheard-of"))
    assert one == other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"position": 4}, "position must be from 0 to 3, the number of a word, got 4"),
        ({"position": -1}, "got -1"),
        ({"k": 8}, "k must be from 1 to 7, got 8"),
        ({"direction": "up"}, "direction must be 'forward', 'backward' or 'both', got 'up'"),
        ({"tokenizer": ElmoTokenizer()}, "the word vocabulary of the model, 10 words; ElmoTokenizer has 0"),
    ],
)
def test_words_that_cannot_be_expected(model, words, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.top_words("the cat sat .", **{"position": 1, "k": 1, "tokenizer": words, **arguments})


def test_nothing_can_be_expected_in_a_text_without_words(model, words):
    with pytest.raises(ValueError, match="the text must have a word, got none"):
        model.top_words(" ", 0, 1, tokenizer=words)


def test_texts_that_cannot_be_scored(model, words):
    with pytest.raises(ValueError, match="at least one sentence"):
        model.score([], words)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        model.score("the", words, batch_size=0)
    words.add_sentence_boundaries = True
    with pytest.raises(ValueError, match="either the model or the tokenizer must add sentence boundaries"):
        model.score("the", words)
