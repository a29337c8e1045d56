"""The byte-level BPE vocabulary of a GPT-2-style language model, trained by tokenizers."""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import GPT2Tokenizer

from hf_lineage.files import atomic_folder

from .checks import check_filled, check_symbols, check_vocab_size
from .report import TokenizerReport, save_report
from .text import TextLines

END_OF_TEXT, PADDING = "<|endoftext|>", "<|pad|>"

_MIN_FREQUENCY = 2  # a token that joins others must be worth it more than once


def train_gpt_tokenizer(
    text: TextLines,
    output: str | Path,
    vocab_size: int = 50_257,
    extra_special_tokens: Sequence[str] = (),
    overwrite: bool = False,
) -> tuple[GPT2Tokenizer, TokenizerReport]:
    """Trains the merges of a text's bytes and saves a `GPT2Tokenizer` of transformers.

    Ids 0 and 1 are `<|endoftext|>`, which begins and ends texts, and `<|pad|>`. Padding has a token of its own, as
    collators hide padding from the loss, and a model whose padding is the end of text would never learn to end one.
    The extra special tokens follow, then the 256 bytes, so no text is unknown. The same text gives the same files.

    Args:
        text: The text.
        output: Folder to write to.
        vocab_size: Number of tokens, special ones included.
        extra_special_tokens: Further special tokens, such as those of a chat's turns.
        overwrite: Whether a folder that exists may be replaced.

    Returns:
        The tokenizer, and what it makes of the lines that the text keeps out of training.

    Raises:
        ValueError: If an argument is out of range, the text cannot be read, or it cannot fill so large a vocabulary.
    """
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    check_symbols("extra_special_tokens", extra_special_tokens, (END_OF_TEXT, PADDING), alphabet)
    special = [END_OF_TEXT, PADDING, *extra_special_tokens]
    check_vocab_size(vocab_size, len(special) + len(alphabet), "the special tokens and every byte")
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=_MIN_FREQUENCY,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    with atomic_folder(output, overwrite) as folder:
        backend.train_from_iterator(text.read("count words"), trainer)
        model = json.loads(backend.to_str())["model"]
        check_filled(len(model["vocab"]), vocab_size)
        tokenizer = GPT2Tokenizer(
            vocab=model["vocab"],
            merges=[tuple(merge) for merge in model["merges"]],
            unk_token=None,
            bos_token=END_OF_TEXT,
            eos_token=END_OF_TEXT,
            pad_token=PADDING,
            extra_special_tokens=list(extra_special_tokens),
            model_max_length=1024,
        )
        tokenizer.save_pretrained(folder)
        report = save_report(tokenizer, text, folder)
    return tokenizer, report
