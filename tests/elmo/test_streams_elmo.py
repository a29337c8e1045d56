"""Each direction on a stream of its own, window by window."""

import pytest
import torch

from hf_lineage import ElmoForPreTraining

LENGTH = 12


@pytest.fixture
def model(tiny) -> ElmoForPreTraining:
    return ElmoForPreTraining(tiny(vocab_size=30)).eval()


def ids(words: str, tokenizer) -> torch.Tensor:
    return tokenizer(words, return_tensors="pt").input_ids


def streams(tokenizer, rows: int = 3) -> dict[str, torch.Tensor]:
    def text(start: int) -> torch.Tensor:
        return torch.cat(
            [ids(" ".join(f"w{(start + row) * i % 17}" for i in range(LENGTH)), tokenizer) for row in range(rows)]
        )

    return {
        "input_ids": text(1),
        "labels": torch.randint(0, 30, (rows, LENGTH)),
        "backward_input_ids": text(5),
        "backward_targets": torch.randint(0, 30, (rows, LENGTH)),
    }


@pytest.mark.parametrize("window", [1, 3, 5, 12])
def test_carried_states_make_windows_equal_to_one_long_window(model, tokenizer, window):
    whole = streams(tokenizer)
    expected = model(**whole)
    states, logits, losses = None, [], []
    for start in range(0, LENGTH, window):
        part = {name: value[:, start : start + window] for name, value in whole.items()}
        output = model(**part, initial_states=states)
        states = output.final_states.detach()
        logits.append((output.forward_logits, output.backward_logits))
        losses.append(output.loss * part["labels"].shape[1])
    torch.testing.assert_close(torch.cat([ahead for ahead, _ in logits], 1), expected.forward_logits)
    torch.testing.assert_close(torch.cat([back for _, back in logits], 1), expected.backward_logits)
    torch.testing.assert_close(sum(losses) / LENGTH, expected.loss)
    torch.testing.assert_close(states, expected.final_states)


def test_gradients_end_at_the_edge_of_a_window(model, tokenizer):
    whole = streams(tokenizer)
    first, second = ({name: value[:, part] for name, value in whole.items()} for part in (slice(6), slice(6, None)))
    states = model(**first).final_states.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(model(**second, initial_states=states).loss, states)
    assert gradient.abs().sum() > 0  # what would go on into the window before


def test_streams_of_one_sentence_are_the_sentence(model, tokenizer):
    """The forward stream <S> a b c and the backward stream </S> c b a are what the sentence itself is read as."""
    sentence = {"input_ids": ids("a b c", tokenizer), "labels": torch.tensor([[3, 4, 5]])}
    expected = model(**sentence)
    output = model(
        input_ids=ids("<S> a b c", tokenizer),
        labels=torch.tensor([[3, 4, 5, 1]]),
        backward_input_ids=ids("</S> c b a", tokenizer),
        backward_targets=torch.tensor([[5, 4, 3, 0]]),
    )
    torch.testing.assert_close(output.forward_logits, expected.forward_logits)
    torch.testing.assert_close(output.backward_logits.flip(1), expected.backward_logits)
    torch.testing.assert_close(output.forward_loss, expected.forward_loss)
    torch.testing.assert_close(output.backward_loss, expected.backward_loss)


def test_padded_and_empty_rows_keep_the_state_of_their_last_token(model, tokenizer):
    whole = streams(tokenizer)
    short = {name: value.clone() for name, value in whole.items()}
    for names, padding in ((("input_ids", "backward_input_ids"), 0), (("labels", "backward_targets"), -100)):
        for name in names:
            short[name][1, 4:] = padding
            short[name][2] = padding
    before = torch.randn(3, 2, 2, 8 + 12)
    output = model(**short, initial_states=before)
    alone = model(**{name: value[1:2, :4] for name, value in whole.items()}, initial_states=before[1:2])
    torch.testing.assert_close(output.final_states[1:2], alone.final_states)
    assert torch.equal(output.final_states[2], before[2])
    full = model(**{name: value[:1] for name, value in whole.items()}, initial_states=before[:1])
    torch.testing.assert_close(output.forward_loss * 16, full.forward_loss * 12 + alone.forward_loss * 4)


def test_losses_without_logits_are_the_same(model, tokenizer):
    whole = streams(tokenizer)
    lean = model(**whole, return_logits=False)
    torch.testing.assert_close(lean.loss, model(**whole).loss)
    assert lean.forward_logits is lean.backward_logits is None


def test_wrong_streams_are_refused(model, tokenizer):
    whole = streams(tokenizer)
    with pytest.raises(ValueError, match="the same number of rows, got 3 and 2"):
        model(whole["input_ids"], backward_input_ids=whole["backward_input_ids"][:2])
    with pytest.raises(ValueError, match="labels and backward_targets must be given together"):
        model(whole["input_ids"], backward_input_ids=whole["backward_input_ids"], labels=whole["labels"])
    with pytest.raises(ValueError, match="backward_targets need backward_input_ids"):
        model(whole["input_ids"], backward_targets=whole["labels"])
    with pytest.raises(ValueError, match="attention_mask cannot be given with backward_input_ids"):
        model(**whole, attention_mask=torch.ones(3, LENGTH))
