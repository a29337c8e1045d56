"""A softmax that has the weights of the input's table of words, as bilm-tf's `share_embedding_softmax`."""

import pytest
import torch
from torch import nn

from hf_lineage import ElmoConfig, ElmoForPreTraining, ElmoForTokenClassification
from hf_lineage.elmo.softmax_elmo import ElmoTiedSoftmax, input_numbers, word_logits, word_losses
from hf_lineage.elmo.word_input_elmo import SMALLEST_TABLE, numbered, tokenizer_of_dictionaries

SIZES = {"char_embedding_size": 0, "word_embedding_size": 8, "hidden_size": 16, "lstm_hidden_size": 12}
BOUNDARIES = ["<S>", "</S>"]


def config(words: int, **fields) -> ElmoConfig:
    table = max(SMALLEST_TABLE, words + 6)
    given = {**SIZES, "vocab_size": words, "word_vocab_size": table, "tie_word_embeddings": True, **fields}
    return ElmoConfig(**given)


@pytest.mark.parametrize("count", [4, 255, 256, 257, 258, 400])
def test_words_have_the_numbers_that_the_tokenizer_gives_them(count):
    words = [*BOUNDARIES, "<UNK>", *(f"w{number}" for number in range(count - 3))]
    tokenizer = tokenizer_of_dictionaries(config(count), words=numbered(words))
    rows = tokenizer([words], is_split_into_words=True)["input_ids"][0]
    assert input_numbers(torch.arange(count)).tolist() == [row[-1] for row in rows]
    assert max(row[-1] for row in rows) < config(count).word_vocab_size


@pytest.mark.parametrize("count", [5, 256, 257, 400])
def test_logits_and_losses_are_those_of_a_layer_with_these_rows(count):
    softmax, plain = ElmoTiedSoftmax(config(count), count), nn.Linear(8, count)
    nn.init.normal_(softmax.weight)
    nn.init.normal_(softmax.word_bias)
    with torch.no_grad():
        plain.weight.copy_(softmax.weight[input_numbers(torch.arange(count))])
        plain.bias.copy_(softmax.word_bias)
    hidden_states, labels = torch.randn(20, 8), torch.randint(0, count, (20,))
    torch.testing.assert_close(word_logits(softmax, hidden_states), word_logits(plain, hidden_states))
    for num_samples in (0, 3):
        found = []
        for layer in (softmax, plain):
            torch.manual_seed(0)
            found.append(word_losses(layer, hidden_states, labels, num_samples))
        torch.testing.assert_close(*found)


def test_one_table_is_trained_from_both_sides_saved_once_and_loaded(tmp_path):
    model = ElmoForPreTraining(config(300))
    table = model.elmo.character_encoder.word_embedding.weight
    assert model.lm_head.weight is table
    assert model.lm_head(torch.zeros(1, 8)).shape == (1, 300)
    assert 0.3 < table[1:].std() < 0.4  # 1 / sqrt(8)
    assert not table[0].any()
    ids = torch.full((1, 4, 51), 261)
    ids[0, :, -1] = torch.tensor([3, 4, 5, 270])
    model(ids, labels=torch.tensor([[2, 3, 4, 264]])).loss.backward()
    assert table.grad[[3, 257, 258]].abs().sum(-1).all()  # read and predicted
    assert table.grad[[200, 290]].abs().sum(-1).all()  # predicted only, as wrong ones
    assert not table.grad[[0, 1, 2, 259, 260, 261]].any()
    model.save_pretrained(tmp_path)
    loaded = ElmoForPreTraining.from_pretrained(tmp_path)
    assert loaded.lm_head.weight is loaded.elmo.character_encoder.word_embedding.weight
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight), name
    tagger = ElmoForTokenClassification.from_pretrained(tmp_path)
    assert torch.equal(tagger.elmo.character_encoder.word_embedding.weight, table)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"char_embedding_size": 4}, "reads words and no characters"),
        ({"word_embedding_size": 6}, "hidden_size / 2 = 8"),
        ({"adaptive_softmax_cutoffs": [4]}, "an adaptive softmax has no weights to share"),
        ({"word_vocab_size": 305}, "word_vocab_size = vocab_size \\+ 6, at least 262, got word_vocab_size=305"),
    ],
)
def test_what_cannot_be_shared_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        config(300, **fields)
