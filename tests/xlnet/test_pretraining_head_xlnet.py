"""`LineageXLNetForPreTraining`: its two losses."""

import math

import pytest
import torch
import torch.nn.functional as F

from hf_lineage import LineageXLNetForPreTraining


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(60, (4, 12), generator=generator)
    positions = torch.tensor([[3, 7, -1]] * 4)
    return {
        "input_ids": ids,
        "attention_mask": (torch.arange(12) < torch.tensor([12, 12, 10, 9])[:, None]).long(),
        "perm_mask": torch.rand(4, 12, 12, generator=generator) < 0.5,
        "target_mapping": positions,
        "labels": torch.where(positions < 0, -100, ids.gather(1, positions.clamp(min=0))),
    }


def test_without_a_head_for_the_next_sentence(build, batch):
    model = build("ForPreTraining")
    assert not [name for name, _ in model.named_parameters() if "next_sentence" in name]
    outputs = model(**batch)
    assert outputs.next_sentence_logits is None
    assert outputs.next_sentence_loss is None
    assert outputs.loss == outputs.prediction_loss
    with pytest.raises(ValueError, match=r"needs a model with config.next_sentence=True"):
        model(**batch, next_sentence_label=torch.tensor([0, 1, 0, 1]))


def test_both_losses(build, batch):
    model = build("ForPreTraining", next_sentence=True)
    labels = torch.tensor([0, 1, -100, 1])
    outputs = model(**batch, next_sentence_label=labels)
    kept = labels >= 0
    expected = F.cross_entropy(outputs.next_sentence_logits[kept], labels[kept])
    torch.testing.assert_close(outputs.next_sentence_loss, expected)
    torch.testing.assert_close(outputs.loss, outputs.prediction_loss + expected)
    assert outputs.hidden_states is None
    empty = model(**batch, next_sentence_label=torch.full((4,), -100))
    assert empty.next_sentence_loss == 0


def test_the_next_sentence_is_told_from_the_last_real_token_of_the_content_stream(build, batch):
    model = build("ForPreTraining", next_sentence=True)
    found = model(**batch).next_sentence_logits
    inputs = {name: value for name, value in batch.items() if name not in ("labels", "target_mapping")}
    content = model.transformer(**inputs).last_hidden_state
    last = content[torch.arange(4), torch.tensor([11, 11, 9, 8])]
    summary = model.next_sentence.sequence_summary
    expected = model.next_sentence.classifier(torch.tanh(summary.summary(last)))
    torch.testing.assert_close(found, expected)
    plain = {name: value for name, value in batch.items() if name not in ("labels", "target_mapping", "perm_mask")}
    assert model(**plain).next_sentence_logits.shape == (4, 2)


def test_predictions_do_not_depend_on_the_head(build, batch):
    with_head, without = build("ForPreTraining", next_sentence=True), build("ForPreTraining")
    without.load_state_dict(with_head.state_dict(), strict=False)
    torch.testing.assert_close(with_head(**batch).logits, without(**batch).logits)


def test_accumulated_batches_share_both_losses(build, batch):
    """The loss of a whole batch is the sum of those of its halves, each told how much there is in all."""
    model = build("ForPreTraining", next_sentence=True)
    batch["next_sentence_label"] = torch.tensor([0, 1, 1, 0])
    whole = model(**batch).loss
    number = int((batch["labels"] != -100).sum())
    halves = [{name: value[part] for name, value in batch.items()} for part in (slice(0, 2), slice(2, 4))]
    parts = [model(**half, num_items_in_batch=number).loss for half in halves]
    torch.testing.assert_close(sum(parts), whole)


def test_transformers_model_is_the_same_without_the_head(build, batch, tmp_path):
    model = build("ForPreTraining", next_sentence=True)
    peer = model.to_transformers()
    peer.save_pretrained(tmp_path)
    again = LineageXLNetForPreTraining.from_pretrained(tmp_path)
    assert again.next_sentence is None
    torch.testing.assert_close(again(**batch).logits, model(**batch).logits)
    renewed = LineageXLNetForPreTraining.from_pretrained(tmp_path, next_sentence=True)
    loss = renewed(**batch, next_sentence_label=torch.tensor([0, 1, 1, 0])).next_sentence_loss
    assert abs(float(loss.detach()) - math.log(2)) < 0.2
