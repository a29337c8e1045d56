import gzip
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from hf_lineage import ElmoTokenizer

SPACE_TO_PYTHON_ALONE = "\x1c\x1d\x1e\x1f"  # separators that str.isspace counts, and Unicode's White_Space does not
texts = st.text(st.characters(codec="utf-8", exclude_characters=SPACE_TO_PYTHON_ALONE), max_size=30)
language = st.text(st.sampled_from("aZéß'’-. ,nt0139_中日のक्षé\u0301\n\t<S>/pad👍"), max_size=30)
any_text = st.one_of(texts, language)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=12)
quick = settings(max_examples=60, deadline=None)

SPLITTERS = {split: ElmoTokenizer(text_split=split) for split in ("words", "whitespace")}


def padded_row(*head: int, length: int = 50) -> tuple[int, ...]:
    return head + (261,) * (length - len(head))


BEGIN, END, PADDING_ROW = padded_row(259, 257, 260), padded_row(259, 258, 260), (0,) * 50


@pytest.mark.parametrize(
    ("word", "row"),
    [
        ("A", padded_row(259, 66, 260)),
        (chr(256) + "t", padded_row(259, 197, 129, 117, 260)),
        ("中", padded_row(259, 229, 185, 174, 260)),
        ("\x00\x7f", padded_row(259, 1, 128, 260)),
        ("", padded_row(259, 260)),
        ("\ud800", padded_row(259, 260)),
        ("a\udfffb", padded_row(259, 98, 99, 260)),
        ("<S>", BEGIN),
        ("</S>", END),
        ("<s>", padded_row(259, 61, 116, 63, 260)),
        ("<pad>", padded_row(259, 61, 113, 98, 101, 63, 260)),
        ("<UNK>", padded_row(259, 61, 86, 79, 76, 63, 260)),
        ("a" * 47, (259, *[98] * 47, 260, 261)),
        ("a" * 48, (259, *[98] * 48, 260)),
        ("a" * 49, (259, *[98] * 48, 260)),
        ("a" * 500, (259, *[98] * 48, 260)),
        ("a" * 47 + "é", (259, *[98] * 47, 0xC3 + 1, 260)),
    ],
)
def test_rows_of_words(word, row):
    encoding = ElmoTokenizer()([word], is_split_into_words=True)
    assert encoding.input_ids == [row]
    assert encoding.tokens() == [word]
    assert encoding.attention_mask == [1]


@pytest.mark.parametrize("length", [3, 4, 11, 51, 90])
@given(word=words)
@quick
def test_rows_of_another_length(length, word):
    (row,) = ElmoTokenizer(max_characters_per_token=length)([word], is_split_into_words=True).input_ids
    body = [byte + 1 for byte in word.encode()[: length - 2]]
    assert row == padded_row(259, *body, 260, length=length)
    (begin,) = ElmoTokenizer(max_characters_per_token=length)("<S>").input_ids
    assert begin == padded_row(259, 257, 260, length=length)


@pytest.mark.parametrize("length", [2, 0, -1, 50.0, "50", None])
def test_an_impossible_row_length_is_refused(length):
    with pytest.raises(ValueError, match=r"max_characters_per_token must be an integer of at least 3, got "):
        ElmoTokenizer(max_characters_per_token=length)


def test_padding_s_name_is_a_word_of_a_text_and_padding_as_a_token():
    tokenizer = ElmoTokenizer()
    encoding = tokenizer(["a <pad> b", "a"], padding=True)
    assert encoding.tokens() == ["a", "<pad>", "b"]
    assert encoding.attention_mask == [[1, 1, 1], [1, 0, 0]]
    assert PADDING_ROW not in encoding.input_ids[0]
    assert encoding.input_ids[1][1:] == [PADDING_ROW] * 2
    assert tokenizer.convert_tokens_to_ids("<pad>") == PADDING_ROW


def test_padding_s_name_in_a_text_is_decoded():
    tokenizer = ElmoTokenizer()
    ids = tokenizer("a <pad> b").input_ids
    assert tokenizer.decode(ids) == "a <pad> b"
    assert tokenizer.decode(ids, skip_special_tokens=True) == "a <pad> b"


@given(st.lists(words.filter(lambda word: len(word.encode()) <= 48 and word not in ("<pad>", "<S>", "</S>"))))
@quick
def test_decoding_gives_words_back(sentence):
    tokenizer = ElmoTokenizer()
    ids = tokenizer(sentence, is_split_into_words=True).input_ids
    assert tokenizer.convert_ids_to_tokens(ids) == sentence
    assert tokenizer.decode(ids) == " ".join(sentence)
    assert tokenizer.decode(ids) == tokenizer.decode(ids, skip_special_tokens=True)
    assert [tokenizer.convert_tokens_to_ids(word) for word in sentence] == ids
    assert tokenizer.convert_tokens_to_ids(sentence) == ids


def test_decoding_shapes_and_special_tokens():
    tokenizer = ElmoTokenizer(add_sentence_boundaries=True)
    batch = tokenizer(["a b", "c"], padding=True, return_tensors="pt").input_ids
    assert tokenizer.decode(batch) == ["<S> a b </S>", "<S> c </S>"]
    assert tokenizer.batch_decode(batch, skip_special_tokens=True) == ["a b", "c"]
    assert tokenizer.decode(batch[1].numpy()) == "<S> c </S>"
    assert tokenizer.decode(batch[0, 1].tolist()) == "a"
    assert tokenizer.convert_ids_to_tokens(batch[1]) == ["<S>", "c", "</S>", "<pad>"]
    assert tokenizer.convert_ids_to_tokens(batch[1], skip_special_tokens=True) == ["c"]
    assert tokenizer.convert_ids_to_tokens(batch[0, 1]) == "a"
    assert tokenizer.decode([]) == ""


def test_a_cut_character_is_dropped_in_decoding():
    tokenizer = ElmoTokenizer(max_characters_per_token=5)
    ids = tokenizer(["ab中", "a中", "中文"], is_split_into_words=True).input_ids
    assert tokenizer.convert_ids_to_tokens(ids) == ["ab", "a", "中"]
    assert tokenizer.decode(ids) == "ab a 中"


@pytest.mark.parametrize("split", SPLITTERS)
@given(text=any_text)
@quick
def test_every_character_but_space_is_in_one_word(split, text):
    encoding = SPLITTERS[split](text, return_offsets_mapping=True)
    spans = encoding["offset_mapping"]
    assert [text[start:end] for start, end in spans] == encoding.tokens()
    bounds = [place for span in spans for place in span]
    assert bounds == sorted(bounds)
    assert all(start < end for start, end in spans)
    covered = {place for start, end in spans for place in range(start, end)}
    assert covered == {place for place, character in enumerate(text) if not character.isspace()}
    assert SPLITTERS[split].tokenize(text) == encoding.tokens()
    assert encoding.word_ids() == list(range(len(spans)))


@given(any_text)
@quick
def test_splitting_at_white_space_only(text):
    assert SPLITTERS["whitespace"].tokenize(text) == text.split()


@given(st.lists(st.sampled_from("It is n't over . , John 's 3.14 U.S. well-known 中 e.g. -- ...".split()), max_size=8))
@quick
def test_a_tokenized_text_is_left_as_it_is(tokens):
    assert SPLITTERS["words"].tokenize(" ".join(tokens)) == tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It isn't over.", "It is n't over ."),
        ("Don’t, can't, won't!", "Do n’t , ca n't , wo n't !"),
        ("They'll say I'd've; we're, I'm, it's", "They 'll say I 'd 've ; we 're , I 'm , it 's"),
        ("JOHN'S MUSN'T", "JOHN 'S MUS N'T"),
        ("O'Neill's o'clock rock'n'roll l'homme", "O'Neill 's o'clock rock'n'roll l'homme"),
        ("the 1990's dogs' tails", "the 1990 's dogs ' tails"),
        ("a well-known state-of-the-art e-mail", "a well-known state-of-the-art e-mail"),
        ("no -- yes... -5 a- -b", "no -- yes ... - 5 a - - b"),
        ("The U.S. and e.g. the U.K., Mr. X.", "The U.S. and e.g. the U.K. , Mr . X ."),
        ("3.14 1,000,000 10:30 5% $2 7.", "3.14 1,000,000 10:30 5 % $ 2 7 ."),
        ('("quoted")', '( " quoted " )'),
        ("snake_case x=y", "snake_case x = y"),
        ("我爱北京。3天", "我 爱 北 京 。 3 天"),
        ("日本のテスト", "日 本 のテスト"),
        ("मेरा नाम क्या है।", "मेरा नाम क्या है ।"),
        ("naïve Ünïcödé cafe\u0301", "naïve Ünïcödé cafe\u0301"),
        ("Привет, мир!", "Привет , мир !"),
        ("a\u00a0b\u2003c\u3000d", "a b c d"),
        ("<S> a </S>x<UNK>", "<S> a </S> x <UNK>"),
        ("", ""),
        (" \n\t ", ""),
    ],
)
def test_words_of_a_text(text, expected):
    assert ElmoTokenizer().tokenize(text) == expected.split(" " if expected else None)


def test_joiners_inside_a_word_do_not_cut_it():
    # Unicode's word boundaries (UAX 29, rule 4): Persian compounds and Indic conjuncts are written with joiners
    assert ElmoTokenizer().tokenize("می\u200cخواهم क्\u200dष") == ["می\u200cخواهم", "क्\u200dष"]


def test_long_texts_are_split_in_linear_time():
    tokenizer = ElmoTokenizer()
    assert len(tokenizer.tokenize("a" * 20_000)) == 1
    assert len(tokenizer.tokenize("a-" * 20_000)) == 2
    assert len(tokenizer.tokenize("1," * 20_000)) == 2
    assert len(tokenizer.tokenize("n't" * 7_000)) == 1
    assert len(tokenizer.tokenize("a." * 20_000)) == 1


def test_text_split_is_checked():
    with pytest.raises(ValueError, match="text_split must be 'words' or 'whitespace', got 'bytes'"):
        ElmoTokenizer(text_split="bytes")


@pytest.mark.parametrize(
    ("arguments", "options", "given_value"),
    [
        ((5,), {}, "int"),
        ((b"bytes",), {}, "bytes"),
        (([1, 2],), {}, "int"),
        ((["a", None],), {}, "NoneType"),
        (([["a", "b", "c"]],), {}, "list"),
        (("a", ["b"]), {}, "list"),
        ((["a", "b"], ["c"]), {}, "2"),
        ((["a", "b"], "c d"), {}, "2"),
        (("a b",), {"is_split_into_words": True}, "'a b'"),
        ((["a", 3],), {"is_split_into_words": True}, "3"),
        ((["a", None],), {"is_split_into_words": True}, "None"),
        (([["a"], [4]],), {"is_split_into_words": True}, "4"),
        (([["a"], "b"],), {"is_split_into_words": True}, "'b'"),
        (([["a"], None],), {"is_split_into_words": True}, "None"),
        ((5,), {"is_split_into_words": True}, "5"),
        ((["a"], 5), {"is_split_into_words": True}, "5"),
    ],
)
def test_what_is_no_text_is_refused(arguments, options, given_value):
    with pytest.raises(ValueError, match=rf"text.*{given_value}|list of strings.*{given_value}"):
        ElmoTokenizer()(*arguments, **options)


def test_no_text_is_refused():
    with pytest.raises(ValueError, match="text"):
        ElmoTokenizer()(None)


def write_vocabulary(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_word_ids_of_the_softmax(tmp_path):
    tokenizer = ElmoTokenizer(vocab_file=write_vocabulary(tmp_path / "v.txt", "<S>", "</S>", "<UNK>", "the", "\u00a0"))
    assert tokenizer.convert_tokens_to_word_ids(["the", "<S>", "</S>", "absent", "<UNK>", "\u00a0"]) == [
        *(3, 0, 1, 2, 2, 4)
    ]
    with pytest.raises(ValueError, match="no word vocabulary"):
        ElmoTokenizer().convert_tokens_to_word_ids(["the"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["the", "<S>", "</S>"], "must begin with the lines <S>, </S>, <UNK>, it begins with the, <S>, </S>"),
        (["<S>", "</S>"], "must begin with the lines"),
        (["</S>", "<S>", "<UNK>"], "must begin with the lines"),
        ([], "must begin with the lines"),
        (["<S>", "</S>", "<UNK>", "a", "b", "a"], "'a' more than once"),
        (["<S>", "</S>", "<UNK>", "</S>"], "'</S>' more than once"),
    ],
)
def test_wrong_vocabularies_are_refused(lines, message, tmp_path):
    path = write_vocabulary(tmp_path / "words.txt", *lines)
    with pytest.raises(ValueError, match=message) as error:
        ElmoTokenizer(vocab_file=path)
    assert path in str(error.value)


def test_a_vocabulary_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "words.txt.gz"
    path.write_bytes(gzip.compress(b"<S>\n</S>\n<UNK>\n"))
    with pytest.raises(ValueError, match=r"words\.txt\.gz"):
        ElmoTokenizer(vocab_file=str(path))


CHANGED = {
    "max_characters_per_token": 20,
    "text_split": "whitespace",
    "add_sentence_boundaries": True,
    "padding_side": "left",
    "truncation_side": "left",
    "model_max_length": 9,
}


@pytest.mark.parametrize("fields", [{}, CHANGED], ids=["defaults", "changed"])
@pytest.mark.parametrize("has_vocabulary", [False, True])
def test_saving_and_loading(fields, has_vocabulary, tmp_path):
    lines = ("<S>", "</S>", "<UNK>", "the", "crème", "x\u2028y") if has_vocabulary else ()
    vocab_file = write_vocabulary(tmp_path / "words.txt", *lines) if has_vocabulary else None
    tokenizer = ElmoTokenizer(vocab_file=vocab_file, **fields)
    tokenizer.save_pretrained(tmp_path / "saved")
    assert (tmp_path / "saved/vocab.txt").exists() == has_vocabulary
    assert str(tmp_path) not in (tmp_path / "saved/tokenizer_config.json").read_text()
    for loaded in (
        AutoTokenizer.from_pretrained(tmp_path / "saved"),
        ElmoTokenizer.from_pretrained(tmp_path / "saved"),
    ):
        assert type(loaded) is ElmoTokenizer
        assert {name: getattr(loaded, name) for name in CHANGED} == {
            name: getattr(tokenizer, name) for name in CHANGED
        }
        assert list(loaded.word_vocabulary) == list(lines)
        batch = ["Isn't it the crème ?", "<S> a"]
        assert loaded(batch, padding=True).data == tokenizer(batch, padding=True).data
        loaded.save_pretrained(tmp_path / "again")
        saved, again = (read_fields(tmp_path / folder / "tokenizer_config.json") for folder in ("saved", "again"))
        assert {name: again[name] for name in saved} == saved


def read_fields(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_added_tokens_are_one_word(tmp_path):
    tokenizer = ElmoTokenizer()
    tokenizer.add_tokens(["New York"])
    tokenizer.save_pretrained(tmp_path)
    for each in (tokenizer, AutoTokenizer.from_pretrained(tmp_path)):
        assert each.tokenize("in New York now") == ["in", "New York", "now"]
        assert each("New York").input_ids == [padded_row(259, *(b + 1 for b in b"New York"), 260)]


def test_other_names_of_the_boundaries(tmp_path):
    tokenizer = ElmoTokenizer(bos_token="<s>", eos_token="</s>", add_sentence_boundaries=True)
    tokenizer.save_pretrained(tmp_path)
    for each in (tokenizer, AutoTokenizer.from_pretrained(tmp_path)):
        word = padded_row(259, 61, 84, 63, 260)
        assert each(["<S>"], is_split_into_words=True).input_ids == [BEGIN, word, END]
        assert each.tokenize("<s> a </s>") == ["<s>", "a", "</s>"]
        assert each("<s>").input_ids[1] == BEGIN


def test_pickling_keeps_the_tokenizer_and_what_an_encoding_knows_of_its_words():
    tokenizer = ElmoTokenizer(text_split="whitespace", add_sentence_boundaries=True)
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy("a isn't <S>").data == tokenizer("a isn't <S>").data
    encoding = tokenizer("a b", "c")
    again = pickle.loads(pickle.dumps(encoding))
    assert again.data == encoding.data
    assert again.word_ids() == encoding.word_ids() == [None, 0, 1, None, None, 0, None]
    assert again.sequence_ids() == encoding.sequence_ids() == [None, 0, 0, None, None, 1, None]
