from types import SimpleNamespace

import pytest
import torch

from hf_lineage import LineageXLNetConfig, LineageXLNetForPreTraining
from hf_lineage.pretraining.row_memory import RowMemory

SIZES = {"vocab_size": 40, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24, "dropout": 0.0}


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = LineageXLNetForPreTraining(LineageXLNetConfig(**SIZES, mem_len=10, reuse_len=4)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def step(model, memory, rows, ids, segment_numbers):
    rows = torch.tensor(rows)
    numbers = torch.as_tensor(segment_numbers).expand(len(rows))
    with torch.no_grad():
        outputs = model(ids, **memory.inputs(rows, numbers, model.lm_loss.weight))
    memory.update(rows, numbers, outputs)
    return outputs.logits


def ids(*shape, seed=0):
    return torch.randint(40, shape, generator=torch.Generator().manual_seed(seed))


def test_rows_remember_whatever_batch_they_come_in(model):
    texts = ids(4, 5, 6)  # steps, rows, tokens
    together, apart = RowMemory(model.config), RowMemory(model.config)
    for number in range(4):
        expected = step(model, together, list(range(5)), texts[number], number)
        order = [[0, 3], [4, 1, 2]] if number % 2 else [[2], [1, 0], [3, 4]]
        for rows in order:
            found = step(model, apart, rows, texts[number, rows], number)
            torch.testing.assert_close(found, expected[rows], atol=1e-5, rtol=0)


def test_it_is_the_memory_that_the_model_returns(model):
    texts = ids(3, 2, 6)
    memory = RowMemory(model.config)
    mems = None
    for number, text in enumerate(texts):
        found = step(model, memory, [7, 9], text, number)
        with torch.no_grad():
            outputs = model(text, mems=mems, use_mems=True)
        mems = outputs.mems
        torch.testing.assert_close(found, outputs.logits, atol=1e-5, rtol=0)


def test_a_new_text_forgets(model):
    texts = ids(2, 2, 6)
    memory, fresh = RowMemory(model.config), RowMemory(model.config)
    step(model, memory, [0, 1], texts[0], 3)
    found = step(model, memory, [0, 1], texts[1], [0, 4])
    expected = step(model, fresh, [0, 1], texts[1], 0)
    torch.testing.assert_close(found[0], expected[0], atol=1e-6, rtol=0)
    assert (found[1] - expected[1]).abs().max() > 1e-3


def test_it_is_saved_and_loaded(model, tmp_path):
    texts = ids(2, 2, 6)
    memory = RowMemory(model.config)
    step(model, memory, [0, 1], texts[0], 0)
    torch.save(memory.state_dict(), tmp_path / "memory.pt")
    loaded = RowMemory(model.config)
    loaded.load_state_dict(torch.load(tmp_path / "memory.pt", weights_only=True))
    assert torch.equal(step(model, loaded, [0, 1], texts[1], 1), step(model, memory, [0, 1], texts[1], 1))
    other = RowMemory(SimpleNamespace(mem_len=3, n_layer=2, d_model=16))
    with pytest.raises(ValueError, match=r"memory of shape \(2, 10, 16\), the model \(2, 3, 16\)"):
        other.load_state_dict(memory.state_dict())


def test_a_row_is_in_a_batch_once(model):
    with pytest.raises(ValueError, match="rows of a batch must differ"):
        step(model, RowMemory(model.config), [1, 1], ids(2, 6), 0)


def test_a_row_that_does_not_go_on_is_refused(model):
    """As when batches of one row go to one process and then to another."""
    memory = RowMemory(model.config)
    step(model, memory, [0, 1], ids(2, 6), 0)
    with pytest.raises(ValueError, match="row 1 goes on with segment 2 after segment 0"):
        step(model, memory, [0, 1], ids(2, 6), [1, 2])


def test_an_empty_row_leaves_nothing(model):
    memory = RowMemory(model.config)
    step(model, memory, [0, 1], ids(2, 6), 0)
    step(model, memory, [0, 1], ids(2, 6), [1, -1])
    assert {*memory.state_dict()} == {0}


@pytest.mark.parametrize("mem_len", [0, None])
def test_a_memory_without_end_is_refused(mem_len):
    with pytest.raises(ValueError, match="mem_len must be at least 1"):
        RowMemory(LineageXLNetConfig(**SIZES, mem_len=mem_len))
