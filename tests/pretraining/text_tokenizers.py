"""Small tokenizers of each kind, built without a network."""

from functools import cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AlbertTokenizer, PreTrainedTokenizerFast

ENGLISH = [
    "the quick brown fox jumps over the lazy dog and re-enters the house, doesn't it?",
    "unbelievably many sentences were written in 1984 (or 2013) about mice and men.",
    "a naïve café owner sells tea; the owner of the other café sells nothing but coffee!",
]
SPECIAL = {
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


@cache
def unigram() -> AlbertTokenizer:
    words = [
        "▁the",
        "▁quick",
        "▁brown",
        "▁fox",
        "▁un",
        "believ",
        "ably",
        "▁re",
        "enter",
        "▁don",
        "ß",
        "tra",
        "▁s",
        "e",
    ]
    symbols = ["▁", *"abcdefghijklmnopqrstuvwxyz0123456789.,-'()?!", "中", "国", "人", "ไทย", "▁19", "84", "'s"]
    pieces = [*words, *(symbol for symbol in symbols if symbol not in words)]
    vocabulary = [("<pad>", 0.0), ("<unk>", -20.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0)]
    return AlbertTokenizer(vocab=vocabulary + [(piece, -2.0 - len(piece) % 3) for piece in pieces])


@cache
def wordpiece() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=list(SPECIAL.values()), show_progress=False)
    tokenizer.train_from_iterator([*ENGLISH, "中国人"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


@cache
def byte_level() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(ENGLISH, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


@cache
def word_level(size: int) -> PreTrainedTokenizerFast:
    """The words w0, w1, ... with the ids 5, 6, ..."""
    tokens = [*SPECIAL.values(), *(f"w{number}" for number in range(size))]
    tokenizer = Tokenizer(models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


FIRST_WORD = len(SPECIAL)
