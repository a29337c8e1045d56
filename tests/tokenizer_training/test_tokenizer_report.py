from transformers import BertTokenizer

from tokenizer_training.report import measure_tokenizer


def test_counts():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "国"]
    tokenizer = BertTokenizer(vocab={word: number for number, word in enumerate(words)})
    report = measure_tokenizer(tokenizer, ["The cats", "the DOG dog", "国中", ""] * 600)
    assert report.vocab_size == 9
    assert report.lines == 2400
    assert report.words == 600 * 6
    assert report.characters == 600 * (7 + 9 + 2)
    assert report.tokens == 600 * (3 + 3 + 2)
    assert report.unknown == 600 * 3
    assert dict(report.most_unknown) == {"DOG": 600, "dog": 600, "中": 600}
    assert report.unknown_rate == 3 / 8
    assert report.tokens_per_word == 8 / 6
    assert report.characters_per_token == 18 / 8
    assert "37.5000% of 4,800 tokens unknown (most often 'DOG' x 600" in str(report)


def test_nothing():
    tokenizer = BertTokenizer(vocab={"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[PAD]": 3, "[MASK]": 4})
    report = measure_tokenizer(tokenizer, [])
    assert (report.unknown_rate, report.tokens_per_word, report.characters_per_token) == (0, 0, 0)
    assert "most often" not in str(report)
