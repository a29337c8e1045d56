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
        return segment_dataset(corpus, tokenizer, max_length=LENGTH, reuse_len=REUSED, num_rows=4, num_shards=2)

    def make(output="out", mem_len=18, dropout=0.1, **arguments):
        torch.manual_seed(0)
        config = LineageXLNetConfig(
            vocab_size=65, d_model=16, n_layer=2, n_head=2, d_inner=24, mem_len=mem_len, reuse_len=REUSED,
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
    trainer = make_trainer()
    given, left = [], []
    forward = trainer.model.forward

    def spy(**inputs):
        outputs = forward(**inputs)
        given.append((torch.stack(inputs["mems"]), inputs["mems_mask"]))
        left.append((torch.stack(outputs.mems), outputs.mems_mask))
        return outputs

    monkeypatch.setattr(trainer.model, "forward", spy)
    trainer.train()
    assert len(given) == 8
    assert not given[0][1].any()
    went_on = 0
    for (mems, mask), (before, mask_before) in zip(given[1:], left, strict=False):
        for row in range(4):
            if mask[row].any():
                assert torch.equal(mems[:, row], before[:, row])
                assert torch.equal(mask[row], mask_before[row])
                went_on += 1
    assert went_on > 15


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
    for row, (memory, mask) in whole.memory.state_dict().items():
        assert torch.equal(kept[row][0], memory)
        assert torch.equal(kept[row][1], mask)


def test_workers_take_turns(make_trainer):
    """Rows of different workers have different numbers, and each keeps its memory."""
    trainer = make_trainer("workers", dataloader_num_workers=2)
    trainer.train()
    assert len(trainer.memory.state_dict()) == 8


def test_a_model_without_an_end_of_memory_is_refused(make_trainer):
    with pytest.raises(ValueError, match="mem_len must be at least 1"):
        make_trainer(mem_len=None)
