import pytest
import torch
from transformers.generation.streamers import BaseStreamer

from hf_lineage.xlnet import cache_xlnet

OPTIONS = {"max_new_tokens": 10, "eos_token_id": None, "pad_token_id": 5}
PROMPT = list(range(10, 17))


@pytest.fixture
def model(build):
    return build("LMHeadModel", std=0.6, talkative=True)


def ids(*rows):
    return torch.tensor([list(row) for row in rows])


def test_padding_on_the_left_changes_nothing(model):
    batch = ids([5, 5, 5, *PROMPT], range(20, 30))
    mask = ids([0] * 3 + [1] * 7, [1] * 10)
    found = model.generate(batch, attention_mask=mask, do_sample=False, **OPTIONS)
    for row, prompt in enumerate((PROMPT, range(20, 30))):
        alone = model.generate(ids(prompt), do_sample=False, **OPTIONS)
        assert torch.equal(found[row, 10:], alone[0, len(prompt) :])


@pytest.mark.parametrize("num_beams", [2, 4])
def test_beams_of_a_padded_batch_are_those_of_each_row(num_beams, model):
    options = {**OPTIONS, "num_beams": num_beams, "num_return_sequences": 2, "do_sample": False}
    batch = ids([5, 5, 5, *PROMPT], range(20, 30))
    mask = ids([0] * 3 + [1] * 7, [1] * 10)
    found = model.generate(batch, attention_mask=mask, **options)
    assert found.shape == (4, 20)
    alone = model.generate(ids(PROMPT), **options)
    assert torch.equal(found[:2, 10:], alone[:, 7:])
    assert not torch.equal(found[0], found[1])


def test_a_beam_is_likelier_than_the_greedy_text(model):
    def log_probability(sequence):
        total = 0.0
        for end in range(len(PROMPT), sequence.shape[1]):
            # the cache decides what a token's content saw, so that each step is taken as generation takes it
            step = model.generate(
                sequence[:, :end], do_sample=False, max_new_tokens=1, eos_token_id=None, pad_token_id=5,
                return_dict_in_generate=True, output_logits=True,
            )  # fmt: skip
            total += step.logits[0].log_softmax(-1)[0, sequence[0, end]].item()
        return total

    options = {**OPTIONS, "max_new_tokens": 1, "do_sample": False}
    greedy, beam = (model.generate(ids(PROMPT), num_beams=beams, **options) for beams in (1, 3))
    assert log_probability(beam) == pytest.approx(log_probability(greedy))


def test_sampling_follows_the_seed(model):
    def sample(seed):
        torch.manual_seed(seed)
        return model.generate(ids(PROMPT), do_sample=True, num_return_sequences=3, **OPTIONS)

    assert torch.equal(sample(1), sample(1))
    assert not torch.equal(sample(1), sample(2))
    assert sample(1).shape == (3, 17)


def test_embeddings_as_prompt(model):
    embeddings = model.get_input_embeddings()(ids(PROMPT))
    found = model.generate(inputs_embeds=embeddings, do_sample=False, **OPTIONS)
    assert torch.equal(found, model.generate(ids(PROMPT), do_sample=False, **OPTIONS)[:, 7:])


def test_segments_are_continued(model):
    types = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    found = model.generate(ids(PROMPT), token_type_ids=types, do_sample=False, **OPTIONS)
    assert not torch.equal(found, model.generate(ids(PROMPT), do_sample=False, **OPTIONS))


def test_memory_before_the_prompt(model):
    """A memory is read like text before the prompt, but for segment and what it has seen."""
    with torch.no_grad():
        memory = model(ids(range(30, 38)), use_mems=True).mems
    found = model.generate(ids(PROMPT), mems=memory, do_sample=False, **OPTIONS)
    assert found.shape == (1, 17)
    assert not torch.equal(found, model.generate(ids(PROMPT), do_sample=False, **OPTIONS))


def test_the_end_of_text_ends_a_row(model):
    plain = model.generate(ids(PROMPT), do_sample=False, **OPTIONS)[0, 7:].tolist()
    stop = plain[4]
    found = model.generate(ids(PROMPT), do_sample=False, **{**OPTIONS, "eos_token_id": stop})[0, 7:].tolist()
    assert found == plain[: plain.index(stop) + 1]


def test_a_streamer_gets_every_token(model):
    class Collector(BaseStreamer):
        def __init__(self):
            self.tokens = []

        def put(self, value):
            self.tokens += value.flatten().tolist()

        def end(self):
            self.tokens.append("end")

    collector = Collector()
    found = model.generate(ids(PROMPT), do_sample=False, streamer=collector, **OPTIONS)
    assert collector.tokens == [*found[0].tolist(), "end"]


def test_without_cache_the_whole_text_is_read_each_time(model):
    found = model.generate(ids(PROMPT), use_cache=False, do_sample=False, **OPTIONS)
    sequence = ids(PROMPT)
    with torch.no_grad():
        for _ in range(OPTIONS["max_new_tokens"]):
            after = torch.tensor([[sequence.shape[1]]])
            logits = model(sequence, target_mapping=after).logits[:, -1]
            sequence = torch.cat([sequence, logits.argmax(-1, keepdim=True)], 1)
    assert torch.equal(found, sequence)


@pytest.mark.parametrize("num_beams", [1, 2])
@pytest.mark.parametrize("room", [0, 3])
def test_how_often_the_cache_grows_changes_nothing(room, num_beams, model, monkeypatch):
    options = {**OPTIONS, "do_sample": False, "num_beams": num_beams}
    expected = model.generate(ids(PROMPT), **options)
    monkeypatch.setattr(cache_xlnet, "ROOM", room)
    assert torch.equal(model.generate(ids(PROMPT), **options), expected)


def test_a_cache_may_leave_inference_mode(model):
    def step(new, cache):
        return model(ids(new), mems=cache, use_cache=True)

    with torch.inference_mode():
        expected = step([17, 18], step([16, 17], step(PROMPT, None).mems).mems)
        cache = step([16, 17], step(PROMPT, None).mems).mems
    with torch.no_grad():
        assert torch.equal(step([17, 18], cache).logits, expected.logits)


def test_gradients_flow_through_a_cache(model):
    cache = model(ids(PROMPT), use_cache=True).mems
    output = model(ids([16, 17]), mems=cache, use_cache=True)
    output = model(ids([17, 18]), mems=output.mems, use_cache=True)
    output.logits.sum().backward()
    assert model.transformer.layer[0].rel_attn.k.weight.grad.isfinite().all()


def test_a_cache_holds_all_tokens_but_the_last(model):
    output = model.generate(ids(PROMPT), do_sample=False, return_dict_in_generate=True, **OPTIONS)
    assert output.sequences.shape == (1, 17)
    with torch.no_grad():
        cache = model(ids(PROMPT), use_cache=True).mems
    assert cache.get_seq_length() == len(PROMPT) - 1
    assert {tuple(key.shape) for key in cache.keys} == {(1, 4, len(PROMPT) - 1, 8)}
