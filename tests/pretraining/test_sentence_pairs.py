import gzip
import pickle
from collections import Counter
from itertools import accumulate, chain, islice, pairwise

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from text_tokenizers import FIRST_WORD, byte_level, unigram, word_level, wordpiece
from torch.utils.data import DataLoader

from hf_lineage.pretraining import sentence_pairs
from hf_lineage.pretraining.corpus import Corpus
from hf_lineage.pretraining.sentence_pairs import LABELS, PairMaker, sentence_pair_dataset

CLS, SEP = 2, 3
WORDS = 4000
segment_lengths = st.lists(st.lists(st.integers(1, 25), min_size=1, max_size=12), min_size=2, max_size=12)


class Text:
    """Documents of words that occur once, so that a token tells where it is from."""

    def __init__(self, lengths: list[list[int]]):
        sizes = [length for document in lengths for length in document]
        bounds = list(accumulate(sizes, initial=0))
        self.tokenizer = word_level(bounds[-1] if bounds[-1] > WORDS else WORDS)
        segments = iter(" ".join(f"w{word}" for word in range(*bound)) for bound in pairwise(bounds))
        self.rows = ["\n".join(islice(segments, len(document))) for document in lengths]
        self.document = np.repeat(np.arange(len(lengths)), [sum(document) for document in lengths])
        self.segment_starts = set(bounds)

    @property
    def dataset(self) -> Dataset:
        return Dataset.from_dict({"text": self.rows})

    def parts(self, example: dict) -> list[list[int]]:
        """The numbers of the words in each part, after checking what stands around them."""
        input_ids = example["input_ids"]
        assert input_ids[0] == CLS
        assert input_ids[-1] == SEP
        ends = [place for place, token in enumerate(input_ids) if token == SEP]
        assert example["token_type_ids"] == [int(place > ends[0]) for place in range(len(input_ids))]
        starts = [1, *(end + 1 for end in ends[:-1])]
        parts = [
            [token - FIRST_WORD for token in input_ids[start:end]] for start, end in zip(starts, ends, strict=True)
        ]
        assert all(part and min(part) >= 0 for part in parts)
        return parts


def is_run(words: list[int]) -> bool:
    return words == list(range(words[0], words[0] + len(words)))


@settings(max_examples=120, deadline=None)
@given(
    lengths=segment_lengths,
    objective=st.sampled_from(list(LABELS)),
    max_length=st.integers(5, 40),
    seed=st.integers(0, 2**40),
    short=st.sampled_from([0.0, 0.1, 1.0]),
    block_size=st.sampled_from([1, 100, None]),
)
def test_examples_are_runs_of_their_documents(lengths, objective, max_length, seed, short, block_size):
    text = Text(lengths)
    examples = list(
        sentence_pair_dataset(
            text.dataset,
            text.tokenizer,
            objective=objective,
            max_length=max_length,
            seed=seed,
            short_sequence_probability=short,
            block_size=block_size,
        )
    )
    used: Counter = Counter()
    for example in examples:
        assert len(example["input_ids"]) <= max_length
        parts = text.parts(example)
        assert len(parts) == (1 if objective == "none" else 2)
        assert all(is_run(part) for part in parts)
        documents = [text.document[part[0]] for part in parts]
        assert documents == [text.document[part[-1]] for part in parts]
        if objective == "sop":
            first, second = parts[::-1] if example["sentence_order_label"] else parts
            assert first[-1] < second[0]
            assert documents[0] == documents[1]
        if objective == "nsp":
            assert (documents[0] == documents[1]) == (example["next_sentence_label"] == 0)
            assert documents[0] != documents[1] or parts[0][-1] < parts[1][0]
        used.update(parts[0] if objective == "nsp" else chain(*parts))
    assert max(used.values(), default=1) == 1
    long_enough = {number for number, document in enumerate(lengths) if sum(document) > (objective != "none")}
    assert {text.document[word] for word in used} == long_enough
    assert len({example["example_id"] for example in examples}) == len(examples)
    assert all(0 <= example["example_id"] < 2**63 for example in examples)
    if objective == "none":
        assert len(used) == len(text.document)


def random_text(documents=300, seed=0) -> Text:
    generator = np.random.default_rng(seed)
    lengths = [1 + generator.geometric(1 / 8, size=generator.integers(5, 40)) for _ in range(documents)]
    return Text([np.minimum(document, 50).tolist() for document in lengths])


@pytest.fixture(scope="module")
def text() -> Text:
    return random_text()


def facts(text: Text, examples, objective) -> np.ndarray:
    """Of each pair: label, lengths, and whether words are missing at either end of each part."""
    rows = []
    for example in examples:
        parts = text.parts(example)
        cut = [(part[0] not in text.segment_starts, part[-1] + 1 not in text.segment_starts) for part in parts]
        rows.append((example[LABELS[objective]], *map(len, parts), *cut[0], *cut[1]))
    return np.array(rows, dtype=int)


def leaks(table: np.ndarray) -> dict[str, float]:
    """P-values for: lengths, truncation and where the shorter part is do not depend on the label."""
    label, first, second = table[:, :3].T
    compared = {"first": first, "second": second, "difference": first - second, "total": first + second}
    values = {name: stats.ks_2samp(value[label == 0], value[label == 1]).pvalue for name, value in compared.items()}
    kinds = {
        "truncation": table[:, 3:] @ [8, 4, 2, 1],
        "truncated": table[:, 3:].any(axis=1),
        "shorter": np.sign(first - second),
    }
    for name, kind in kinds.items():
        counts = np.array([np.bincount(np.unique(kind, return_inverse=True)[1][label == value]) for value in (0, 1)])
        values[name] = stats.chi2_contingency(counts).pvalue
    return values


def several_epochs(text: Text, objective: str, max_length: int, epochs: int = 5) -> np.ndarray:
    dataset = sentence_pair_dataset(text.dataset, text.tokenizer, objective=objective, max_length=max_length, seed=5)
    tables = []
    for epoch in range(epochs):
        dataset.set_epoch(epoch)
        tables.append(facts(text, dataset, objective))
    return np.concatenate(tables)


@pytest.mark.parametrize("max_length", [64, 128])
@pytest.mark.parametrize("objective", ["sop", "nsp"])
def test_lengths_and_truncation_do_not_tell_the_label(text, objective, max_length):
    table = several_epochs(text, objective, max_length)
    values = leaks(table)
    assert min(values.values()) > 1e-3, values
    label = table[:, 0]
    assert abs(label.mean() - 0.5) < 3 * np.sqrt(2) * 0.5 / np.sqrt(len(label))  # nsp labels come in pairs


class FrontFirst(np.random.Generator):
    """Never fills chunks from the end of the document."""

    def integers(self, low, high=None, size=None, **options):
        return 0 if (low, high, size) == (2, None, None) else super().integers(low, high, size=size, **options)


def test_the_leak_of_the_original_order_would_be_seen(text, monkeypatch):
    pairs = PairMaker._pairs
    monkeypatch.setattr(
        PairMaker, "_pairs", lambda self, *given: pairs(self, *given[:2], FrontFirst(given[2].bit_generator))
    )
    values = leaks(several_epochs(text, "sop", 64))
    assert values["difference"] < 1e-6
    assert values["shorter"] < 1e-6


def test_the_leak_of_unmatched_lengths_would_be_seen(text, monkeypatch):
    def exchange(self, pairs, documents, block, generator):
        others = [pairs[place].second for place in generator.permutation(len(pairs))]
        for pair, other in zip(pairs, others, strict=True):
            pair.label = int(generator.integers(2))
            pair.second = other if pair.label else pair.second

    monkeypatch.setattr(PairMaker, "_exchange", exchange)
    assert leaks(several_epochs(text, "nsp", 64))["total"] < 1e-6


def test_the_leak_of_truncation_at_the_end_of_the_text_would_be_seen(text, monkeypatch):
    def truncated(first, second, longest, generator):
        first = first[: longest - 1]
        return first, second[: longest - len(first)]

    monkeypatch.setattr(sentence_pairs, "_truncated", truncated)
    assert leaks(several_epochs(text, "sop", 64))["truncation"] < 1e-6


def test_lengths_follow_the_target():
    text = random_text(100)
    for objective in LABELS:
        dataset = sentence_pair_dataset(text.dataset, text.tokenizer, objective=objective, max_length=64)
        lengths = np.array([len(example["input_ids"]) for example in dataset])
        assert 0.6 < (lengths > 55).mean() < 0.95
        without = sentence_pair_dataset(
            text.dataset, text.tokenizer, objective=objective, max_length=64, short_sequence_probability=0
        )
        assert sum(1 for _ in without) < len(lengths)


def test_cuts_are_even_over_boundaries():
    text = Text([[1] * 12] * 300)
    dataset = sentence_pair_dataset(
        text.dataset, text.tokenizer, objective="sop", max_length=15, short_sequence_probability=0
    )
    table = facts(text, dataset, "sop")
    assert len(table) == 300
    assert stats.chisquare(np.bincount(table[:, 1])[1:]).pvalue > 1e-3


def test_truncation_takes_from_the_longer_part_at_both_ends():
    generator = np.random.default_rng(0)
    fronts = []
    for first, second, kept in [(30, 10, (20, 10)), (30, 29, (15, 15)), (4, 40, (4, 26)), (15, 15, (15, 15))]:
        one, two = list(range(first)), list(range(100, 100 + second))
        for _ in range(200):
            parts = sentence_pairs._truncated(one, two, 30, generator)
            assert tuple(map(len, parts)) == kept
            if len(parts[0]) < first:
                fronts.append(parts[0][0] / (first - len(parts[0])))
    assert 0.45 < np.mean(fronts) < 0.55
    odd = Counter(tuple(map(len, sentence_pairs._truncated(one, two, 29, generator))) for _ in range(200))
    assert set(odd) == {(14, 15), (15, 14)}


def test_exchanged_parts_have_the_same_length_and_are_used_once():
    text = random_text(60, seed=1)
    dataset = sentence_pair_dataset(text.dataset, text.tokenizer, objective="nsp", max_length=64, block_size=2**18)
    seconds = Counter(word for example in dataset for word in text.parts(example)[1])
    assert max(seconds.values()) <= 2  # of an odd number of pairs one borrows
    assert sum(count > 1 for count in seconds.values()) < 64


@pytest.mark.parametrize("block_size", [1, 200, 2**18])
def test_nsp_finds_other_documents_where_a_block_has_few(block_size):
    text = Text([[6] * 60, [6] * 2, [6] * 50, [3, 4]])
    dataset = sentence_pair_dataset(
        text.dataset, text.tokenizer, objective="nsp", max_length=32, block_size=block_size
    )
    labels = Counter()
    for epoch in range(10):
        dataset.set_epoch(epoch)
        for example in dataset:
            labels[text.document[text.parts(example)[0][0]], example["next_sentence_label"]] += 1
    assert {document for document, _ in labels} == set(range(4))
    for document in (0, 2):
        counts = labels[document, 0], labels[document, 1]
        assert stats.binomtest(counts[0], sum(counts)).pvalue > 1e-3
    alone = Text([[6] * 60])
    with pytest.raises(ValueError, match="at least two documents"):
        list(sentence_pair_dataset(alone.dataset, alone.tokenizer, objective="nsp", max_length=32))


def test_long_segments_are_cut_at_words_and_lose_little():
    tokenizer = unigram()
    paragraph = "the quick brown fox unbelievably reenter don " * 40
    dataset = sentence_pair_dataset(
        Dataset.from_dict({"text": [paragraph, paragraph]}),
        tokenizer,
        objective="sop",
        max_length=64,
        short_sequence_probability=0,
    )
    examples = list(dataset)
    total = 2 * len(tokenizer(paragraph, add_special_tokens=False)["input_ids"])
    assert sum(len(example["input_ids"]) - 3 for example in examples) > 0.7 * total
    whole = [example for example in examples if len(example["input_ids"]) < 64]
    assert whole
    for example in whole:  # not truncated
        pieces = tokenizer.convert_ids_to_tokens(example["input_ids"])
        assert pieces[1].startswith("▁")
        assert pieces[pieces.index("[SEP]") + 1].startswith("▁")


def test_a_single_segment_is_cut_at_a_word():
    tokenizer = unigram()
    texts = ["the unbelievably quick fox", "unbelievably"] * 50
    examples = list(sentence_pair_dataset(Dataset.from_dict({"text": texts}), tokenizer, max_length=64))
    assert len(examples) == 50  # one word makes no pair
    cuts = Counter()
    for example in examples:
        parts = tokenizer.decode(example["input_ids"]).removeprefix("[CLS]").split("[SEP]")[:2]
        first, second = parts[::-1] if example["sentence_order_label"] else parts
        assert f"{first.strip()} {second.strip()}" == texts[0]
        cuts[len(first.split())] += 1
    assert set(cuts) == {1, 2, 3}


@pytest.mark.parametrize(
    ("lengths", "chunks"),
    [
        ([4, 4, 4, 3], [range(0, 8), range(8, 15)]),  # the third segment fills the first chunk, and is given away
        ([6, 6, 6], [range(18)]),  # nothing to give away: one chunk, truncated
        ([5, 5, 5, 5], [range(10), range(10, 20)]),
    ],
)
def test_a_last_segment_is_not_alone(lengths, chunks):
    text = Text([lengths])
    for seed in range(5):
        dataset = sentence_pair_dataset(
            text.dataset, text.tokenizer, max_length=13, short_sequence_probability=0, seed=seed
        )
        found = sorted(sorted(chain(*text.parts(example))) for example in dataset)
        assert len(found) == len(chunks)
        for words, chunk in zip(found, chunks, strict=True):
            assert set(words) <= set(chunk)
            assert len(words) == min(10, len(chunk))


def test_names_of_special_tokens_in_the_text_are_text():
    for tokenizer in (unigram(), wordpiece(), byte_level()):
        rows = [
            f"the fox {tokenizer.sep_token} the dog\nit {tokenizer.mask_token} sells {tokenizer.cls_token} tea"
        ] * 4
        for example in sentence_pair_dataset(Dataset.from_dict({"text": rows}), tokenizer, max_length=128):
            assert example["input_ids"].count(tokenizer.sep_token_id) == 2
            assert example["input_ids"].count(tokenizer.cls_token_id) == 1
            assert tokenizer.mask_token_id not in example["input_ids"]


@pytest.fixture(params=["plain", "gzip"])
def folder(request, tmp_path):
    text = random_text(80, seed=2)
    for number in range(4):
        content = "\n\n".join(text.rows[number::4]).encode()
        if request.param == "gzip":
            (tmp_path / f"{number}.txt.gz").write_bytes(gzip.compress(content))
        else:
            (tmp_path / f"{number}.txt").write_bytes(content)
    return tmp_path


def hashable(example: dict) -> tuple:
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in sorted(example.items()))


@pytest.mark.parametrize("objective", ["sop", "nsp"])
def test_examples_are_the_same_for_any_number_of_workers(folder, objective):
    def dataset():
        return sentence_pair_dataset(
            folder, word_level(20_000), objective=objective, max_length=64, seed=3, block_size=1500
        )

    expected = Counter(map(hashable, dataset()))
    assert max(expected.values()) == 1
    for workers in (1, 2):
        loader = DataLoader(dataset(), batch_size=8, collate_fn=list, num_workers=workers)
        assert Counter(hashable(example) for batch in loader for example in batch) == expected


def test_resuming_in_the_middle_gives_the_rest(folder):
    def dataset():
        return sentence_pair_dataset(
            folder, word_level(20_000), objective="sop", max_length=64, seed=3, block_size=1500
        )

    first = dataset()
    first.set_epoch(1)
    whole = list(first)
    taken = list(islice(first, len(whole) // 2))
    state = pickle.loads(pickle.dumps(first.state_dict()))
    second = dataset()
    second.set_epoch(1)
    second.load_state_dict(state)
    assert taken + list(second) == whole


def test_an_epoch_draws_anew_and_ids_stay(folder):
    dataset = sentence_pair_dataset(
        Corpus(folder), word_level(20_000), max_length=64, short_sequence_probability=0, seed=3
    )
    epochs = []
    for epoch in (0, 1):
        dataset.set_epoch(epoch)
        epochs.append({example["example_id"]: example for example in dataset})
    shared = epochs[0].keys() & epochs[1].keys()
    assert len(shared) > 0.8 * len(epochs[0])
    assert sum(epochs[0][key]["input_ids"] != epochs[1][key]["input_ids"] for key in shared) > 0.8 * len(shared)


def test_columns(text):
    for objective, label in LABELS.items():
        dataset = sentence_pair_dataset(text.dataset, text.tokenizer, objective=objective)
        names = ["input_ids", "token_type_ids", *([label] if label else []), "example_id", "epoch_seed"]
        assert dataset.column_names == names
        assert list(next(iter(dataset))) == names
        formatted = next(iter(dataset.with_format("torch")))
        assert formatted["input_ids"].tolist() == next(iter(dataset))["input_ids"]


def test_wrong_arguments(text):
    for options, message in [
        ({"objective": "mlm"}, "objective must be 'sop', 'nsp' or 'none', got 'mlm'"),
        ({"max_length": 4}, "max_length must be at least 5"),
        ({"objective": "none", "max_length": 2}, "max_length must be at least 3"),
        ({"short_sequence_probability": 1.5}, "short_sequence_probability"),
        ({"seed": -1}, "seed"),
        ({"num_shards": 0}, "num_shards"),
        ({"block_size": 0}, "block_size"),
        ({"text_column": "body"}, "text_column"),
    ]:
        with pytest.raises(ValueError, match=message):
            sentence_pair_dataset(text.dataset, text.tokenizer, **options)
    tokenizer = pickle.loads(pickle.dumps(wordpiece()))
    tokenizer.sep_token = None
    with pytest.raises(ValueError, match="sep_token"):
        sentence_pair_dataset(text.dataset, tokenizer)
