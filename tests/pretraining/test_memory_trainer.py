import pytest
import torch
from pretraining_runs import write_corpus, write_tokenizer
from transformers import AutoTokenizer, TrainingArguments

from hf_lineage import LineageXLNetConfig, LineageXLNetForPreTraining
from hf_lineage.pretraining.corpus import Corpus
from hf_lineage.pretraining.memory_trainer import MemoryTrainer
from hf_lineage.pretraining.permutation_collator import DataCollatorForPermutationLM
from hf_lineage.pretraining.segments import segment_dataset

LENGTH, REUSED = 24, 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "text").mkdir()
    (folder / "held_out").mkdir()
    write_corpus(folder / "text" / "train.txt", 120, seed=1)
    write_corpus(folder / "held_out" / "train.txt", 20, seed=2)
    write_tokenizer(folder / "tokenizer")
    return folder


@pytest.fixture
def make_trainer(folder, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")

    def dataset(name):
        corpus = Corpus(folder / name, block_size=600)
        return segment_dataset(
            corpus, tokenizer, max_length=LENGTH, reuse_len=REUSED, mem_len=18, num_rows=4, num_shards=2
        )

    def make(output="out", mem_len=18, reuse_len=REUSED, dropout=0.1, **arguments):
        torch.manual_seed(0)
        config = LineageXLNetConfig(
            vocab_size=65, d_model=16, n_layer=2, n_head=2, d_inner=24, mem_len=mem_len, reuse_len=reuse_len,
            initializer_range=0.3, dropout=dropout,
        )  # fmt: skip
        arguments = {"max_steps": 8, "save_steps": 3, "learning_rate": 0.01, **arguments}
        return MemoryTrainer(
            model=LineageXLNetForPreTraining(config),
            args=TrainingArguments(
                tmp_path / output, per_device_train_batch_size=4, per_device_eval_batch_size=4, report_to="none",
                use_cpu=True, logging_steps=1, seed=1, **arguments,
            ),
            train_dataset=dataset("text"),
            eval_dataset=dataset("held_out"),
            data_collator=DataCollatorForPermutationLM(tokenizer, LENGTH, REUSED),
        )  # fmt: skip

    return make


def weights(trainer):
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def assert_equal(one, other):
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


def test_each_row_is_given_what_it_left(make_trainer, monkeypatch):
    """Unless it begins a text, and whatever worker made its batch."""
    trainer = make_trainer(dataloader_num_workers=2, max_steps=16)
    places, given, left = [], [], []
    inputs_of, forward = trainer.memory.inputs, trainer.model.forward

    def spy_inputs(rows, segment_numbers, like):
        places.append(list(zip(rows.tolist(), segment_numbers.tolist(), strict=True)))
        return inputs_of(rows, segment_numbers, like)

    def spy_forward(**inputs):
        outputs = forward(**inputs)
        given.append((torch.stack(inputs["mems"], 1), inputs["mems_mask"]))
        left.append((torch.stack(outputs.mems, 1), outputs.mems_mask))
        return outputs

    monkeypatch.setattr(trainer.memory, "inputs", spy_inputs)
    monkeypatch.setattr(trainer.model, "forward", spy_forward)
    trainer.train()
    assert len(given) == len(places) == 16
    known, went_on = {}, 0
    for step, batch in enumerate(places):
        for place, (row, segment) in enumerate(batch):
            mems, mask = (values[place] for values in given[step])
            if segment > 0:
                assert torch.equal(mems, known[row][0])
                assert torch.equal(mask, known[row][1])
                assert mask.any()
                went_on += 1
            else:
                assert not mask.any()
            known[row] = tuple(values[place] for values in left[step])
    assert len(known) == 8  # four rows of each worker
    assert went_on > 20


def test_evaluation_has_a_memory_of_its_own(make_trainer):
    plain = make_trainer("plain", dropout=0.0)
    evaluated = make_trainer("evaluated", dropout=0.0, eval_strategy="steps", eval_steps=2)
    plain.train()
    evaluated.train()
    assert_equal(weights(plain), weights(evaluated))
    first, second = (evaluated.evaluate()["eval_loss"] for _ in range(2))
    assert first == second
    assert evaluated.memory.state_dict()


def test_a_checkpoint_goes_on_with_the_same_memory(make_trainer, tmp_path):
    whole = make_trainer("whole")
    whole.train()
    resumed = make_trainer("resumed")
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))
    assert_equal(weights(whole), weights(resumed))
    kept = resumed.memory.state_dict()
    for row, (segment, memory, mask) in whole.memory.state_dict().items():
        assert kept[row][0] == segment
        assert torch.equal(kept[row][1], memory)
        assert torch.equal(kept[row][2], mask)


def test_accumulated_batches_are_remembered_too(make_trainer):
    trainer = make_trainer(gradient_accumulation_steps=2, max_steps=4)
    trainer.train()
    segments = [segment for segment, _, _ in trainer.memory.state_dict().values()]
    assert len(segments) == 4
    assert max(segments) > 0


def test_checkpoints_beyond_the_first_pass_are_refused(make_trainer, tmp_path):
    trainer = make_trainer("long", max_steps=80, save_steps=78)
    trainer.train()
    with pytest.raises(ValueError, match="checkpoint-78 is of pass 2 over the text"):
        make_trainer("again", max_steps=80).train(resume_from_checkpoint=str(tmp_path / "long" / "checkpoint-78"))


def test_a_checkpoint_without_a_memory_is_refused(make_trainer, tmp_path):
    make_trainer("whole").train()
    (tmp_path / "whole" / "checkpoint-3" / "memory_0.pt").unlink()
    with pytest.raises(ValueError, match=r"memory_0\.pt is missing"):
        make_trainer("again").train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))


def test_model_and_segments_must_agree_on_what_is_remembered(make_trainer):
    with pytest.raises(ValueError, match=r"remembers reuse_len=None tokens of a segment, but the collator .* 12 are"):
        make_trainer(reuse_len=None)


def test_a_model_without_an_end_of_memory_is_refused(make_trainer):
    with pytest.raises(ValueError, match="mem_len must be at least 1"):
        make_trainer(mem_len=None)
