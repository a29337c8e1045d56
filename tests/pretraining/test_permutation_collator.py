import numpy as np
import pytest
import torch
from test_segments import CLS, END, SEP, TOKENIZER, WORDS, make_block, make_tokenizer

from hf_lineage import LineageXLNetConfig, LineageXLNetForPreTraining
from hf_lineage.pretraining.permutation_collator import DataCollatorForPermutationLM
from hf_lineage.pretraining.permutation_lm import sample_targets
from hf_lineage.pretraining.segments import EMPTY, ContinuousSegments, TwoPartSegments

LENGTH, REUSED = 48, 24


def segments(number, bidirectional=True, lengths=((5, 9, 4, 7, 6, 8),) * 14):
    """Segments as a row stream gives them, of one block after the other."""
    found = []
    for seed in range(number):
        maker = TwoPartSegments(TOKENIZER, LENGTH, REUSED, 0, bidirectional)
        for example in maker(make_block(lengths), np.random.default_rng(seed)):
            found.append({**example, "row": len(found), "segment": 0, "epoch_seed": 0, "example_id": len(found)})
    return found[:number]


def collate(examples, **arguments):
    return DataCollatorForPermutationLM(TOKENIZER, LENGTH, REUSED, **arguments)(examples)


def build(std=0.3, **fields):
    torch.manual_seed(0)
    sizes = {"vocab_size": WORDS + 6, "d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 48, "dropout": 0.0}
    model = LineageXLNetForPreTraining(LineageXLNetConfig(**{**sizes, "mem_len": 36, "reuse_len": REUSED, **fields}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=std)
    return model.eval()


def test_every_id_stays_and_the_number_of_targets_is_exact():
    examples = segments(300)
    full = [each for each in examples if len(each["input_ids"]) == LENGTH]
    batch = collate(full)
    assert len(full) > 200
    assert (batch["labels"] != -100).sum(1).eq(LENGTH // 6).all()
    assert batch["input_ids"].tolist() == [each["input_ids"] for each in full]
    assert batch["token_type_ids"].tolist() == [each["token_type_ids"] for each in full]
    assert batch["attention_mask"].all()
    torch.testing.assert_close(batch["input_ids"].gather(1, batch["target_mapping"]), batch["labels"])
    in_first = (batch["target_mapping"] < REUSED).sum(1)
    assert in_first.eq(LENGTH // 6 // 2).all()
    assert not torch.isin(batch["labels"], torch.tensor([SEP, CLS, END])).any()
    assert batch["directions"].tolist() == [each["direction"] for each in full]


@pytest.mark.parametrize("objective", ["permutation", "masked"])
def test_short_segments_are_padded_in_each_part(objective):
    batch = collate([each for seed in range(4) for each in segments(1, lengths=[[3 + seed, 4]])], objective=objective)
    for row in range(4):
        real = batch["attention_mask"][row].bool()
        assert real.sum() == 7 + seed_length(row)
        if objective == "permutation":
            positions = batch["target_mapping"][row]
            assert real[positions[positions >= 0]].all()
            assert (positions >= 0).sum() == (batch["labels"][row] != -100).sum() >= 1


def seed_length(row):
    """Words and ends of the documents, and the three special tokens, less the seven that all have."""
    return 3 + row + 4 + 1 + 3 - 7


def test_an_empty_example_has_nothing():
    nothing = {**EMPTY, "row": 5, "segment": -1, "epoch_seed": 0}
    for objective in ("permutation", "masked", "causal"):
        batch = collate([nothing, nothing], objective=objective)
        assert not batch["attention_mask"].any()
        assert (batch["labels"] == -100).all()
    assert collate([nothing], next_sentence=True)["next_sentence_label"].tolist() == [-100]


def test_masks_are_the_permutations_of_each_part():
    batch = collate(segments(40))
    hidden = batch["perm_mask"]
    assert hidden[:, :REUSED, REUSED:].all()
    for row in range(40):
        targets = batch["target_mapping"][row]
        targets = targets[targets >= 0]
        assert hidden[row, targets, targets].all()
        first = targets[targets < REUSED]
        pairs = hidden[row][first][:, first]
        off_diagonal = ~torch.eye(len(first), dtype=torch.bool)
        assert (pairs ^ pairs.T)[off_diagonal].all()  # of two targets, one sees the other


def test_no_target_leaks_into_its_own_prediction():
    """End to end: what the stream and the collator make, through a model of three layers."""
    model, examples = build(), segments(12)
    batch = collate(examples)
    inputs = {name: batch[name] for name in ("attention_mask", "token_type_ids", "perm_mask", "target_mapping")}
    inputs["directions"] = batch["directions"]
    moved = 0
    with torch.no_grad():
        before = model(batch["input_ids"], **inputs).logits
        for place in range(batch["target_mapping"].shape[1]):
            positions = batch["target_mapping"][:, place]
            rows = torch.arange(len(positions))[positions >= 0]
            changed = batch["input_ids"].clone()
            changed[rows, positions[rows]] = 6 + (changed[rows, positions[rows]] + 1) % WORDS
            difference = (model(changed, **inputs).logits - before).abs().amax(-1)
            assert (difference[rows, place] == 0.0).all()
            moved += int((difference > 0).sum())
    assert moved > 50


@pytest.mark.parametrize("objective", ["permutation", "masked"])
def test_what_is_remembered_knows_nothing_of_the_second_part(objective):
    model = build()
    batch = collate(segments(8), objective=objective)
    inputs = {name: batch[name] for name in ("attention_mask", "token_type_ids", "perm_mask", "directions")}
    changed = batch["input_ids"].clone()
    changed[:, REUSED:] = 10
    with torch.no_grad():
        mems = [model(ids, **inputs, use_mems=True).mems for ids in (batch["input_ids"], changed)]
    for one, other in zip(*mems, strict=True):
        assert torch.equal(one, other)


def test_epochs_and_seeds_draw_anew_and_batches_do_not_matter():
    examples = segments(20)
    batch = collate(examples)
    again = collate(examples[::-1])
    for name in ("target_mapping", "perm_mask", "labels"):
        assert torch.equal(again[name].flip(0), batch[name])
    later = [{**each, "epoch_seed": 77} for each in examples]
    for other in (collate(later), collate(examples, seed=1)):
        assert not torch.equal(other["target_mapping"], batch["target_mapping"])
        assert not torch.equal(other["perm_mask"], batch["perm_mask"])


def test_masked_hides_the_same_targets():
    examples = segments(400)
    permuted, batch = collate(examples), collate(examples, objective="masked")
    targets = torch.zeros_like(batch["labels"], dtype=torch.bool)
    real = permuted["target_mapping"] >= 0
    targets[real.nonzero()[:, 0], permuted["target_mapping"][real]] = True
    assert torch.equal(batch["labels"] != -100, targets)
    assert torch.equal(batch["labels"][targets], permuted["input_ids"][targets])
    assert torch.equal(batch["input_ids"][~targets], permuted["input_ids"][~targets])
    masked = (batch["input_ids"][targets] == TOKENIZER.mask_token_id).float()
    assert abs(masked.mean() - 0.8) < 3 * (0.16 / len(masked)) ** 0.5
    kept = (batch["input_ids"][targets] == batch["labels"][targets]).float()
    assert abs(kept.mean() - 0.1 - 0.1 / WORDS) < 3 * (0.09 / len(kept)) ** 0.5


def test_causal_predicts_each_token_from_those_before():
    maker = ContinuousSegments(TOKENIZER, LENGTH, True)
    examples = [
        {**each, "row": 0, "segment": 0, "epoch_seed": 0}
        for each in maker(make_block([[9] * 40]), np.random.default_rng(0))
    ]
    batch = DataCollatorForPermutationLM(TOKENIZER, LENGTH, objective="causal")(examples)
    text = [token for each in examples for token in each["input_ids"][:-1]] + examples[-1]["input_ids"][-1:]
    real = batch["attention_mask"].bool()
    assert batch["input_ids"][real].tolist() == text[:-1]
    assert batch["labels"][real].tolist() == text[1:]
    assert (batch["labels"][~real] == -100).all()
    assert "perm_mask" not in batch


def test_reversed_text_is_sampled_as_it_was_before(monkeypatch):
    """A word begins where it does in reading order: the sampler sees the text the right way round."""
    seen = []

    def spy(starts, can_be_target, *arguments):
        seen.append(can_be_target.copy())
        return sample_targets(starts, can_be_target, *arguments)

    monkeypatch.setattr("hf_lineage.pretraining.permutation_collator.sample_targets", spy)
    example = next(each for each in segments(60) if each["direction"] == -1 and len(each["input_ids"]) == LENGTH)
    batch = collate([example])
    special = torch.isin(batch["input_ids"][0], torch.tensor([SEP, CLS, END])).numpy()
    assert (seen[0] == ~special[:REUSED][::-1]).all()
    assert (seen[1] == ~special[REUSED:][::-1]).all()


def test_single_tokens_in_place_of_spans():
    examples = segments(300)
    apart = {}
    for max_ngram in (0, 5):
        batch = collate(examples, max_ngram=max_ngram)
        assert (batch["labels"] != -100).sum(1).max() == LENGTH // 6
        positions = batch["target_mapping"]
        neighbours = (positions[:, 1:] - positions[:, :-1] == 1) & (positions[:, 1:] >= 0)
        apart[max_ngram] = float(neighbours.float().mean())
    assert apart[0] < 0.25 < 0.35 < apart[5]


def test_windows_have_the_same_order():
    batch = collate(segments(60), perm_size=8)
    pairs = 0
    for row in range(60):
        targets = batch["target_mapping"][row]
        for one in targets[(targets >= 0) & (targets < REUSED)].tolist():
            for other in targets[(targets > one) & (targets < REUSED)].tolist():
                if one % 8 == other % 8:  # of equal rank, neither sees the other
                    assert batch["perm_mask"][row, one, other]
                    assert batch["perm_mask"][row, other, one]
                    pairs += 1
    assert pairs > 10
    with pytest.raises(ValueError, match="perm_size must divide both parts"):
        collate(segments(1), perm_size=7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "reversed"}, "objective must be"),
        ({"num_predict": 0}, "num_predict must be from 1 to max_length = 48, got 0"),
        ({"max_ngram": -1}, "max_ngram must be at least 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"objective": "causal", "next_sentence": True}, "next_sentence=True"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        collate([], **arguments)


def test_a_tokenizer_without_a_mask_will_do_unless_tokens_are_masked():
    tokenizer = make_tokenizer()
    tokenizer.mask_token = None
    DataCollatorForPermutationLM(tokenizer, LENGTH, REUSED)
    with pytest.raises(ValueError, match="must have a mask_token"):
        DataCollatorForPermutationLM(tokenizer, LENGTH, REUSED, objective="masked")


def test_examples_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="at most 16 reused tokens and 48 in all"):
        DataCollatorForPermutationLM(TOKENIZER, LENGTH, 16)(segments(2))
