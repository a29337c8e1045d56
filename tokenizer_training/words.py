"""A vocabulary of whole words with a minimum count, trained by tokenizers."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from hf_lineage.files import atomic_folder

from .checks import check_filled, check_symbols, check_vocab_size
from .report import TokenizerReport, save_report
from .text import TextLines

SPECIAL_TOKENS = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "mask_token": "<mask>",
}
_UNLIMITED = 2**31 - 1


def train_word_tokenizer(
    text: TextLines,
    output: str | Path,
    vocab_size: int | None = None,
    min_count: int = 1,
    do_lower_case: bool = False,
    keep_accents: bool = True,
    extra_special_tokens: Sequence[str] = (),
    overwrite: bool = False,
) -> tuple[PreTrainedTokenizerFast, TokenizerReport]:
    """Counts the words of a text and saves a `PreTrainedTokenizerFast` of transformers that knows the most frequent.

    White space parts words, every punctuation mark and every Chinese character is a word of its own. Ids 0 to 4 are
    `<pad>`, `<unk>`, `<s>`, `</s>` and `<mask>`; the extra special tokens follow, then the words by their count, those
    of equal count by their characters. `<s>` and `</s>` stand around a text, and are the `cls_token` and `sep_token`
    too; a second text has segment 1. The same text gives the same files.

    Args:
        text: The text.
        output: Folder to write to.
        vocab_size: Number of words, special ones included; `None` for as many as the text has.
        min_count: How often a word must occur to be known.
        do_lower_case: Whether letters become small.
        keep_accents: Whether accents stay.
        extra_special_tokens: Further special tokens.
        overwrite: Whether a folder that exists may be replaced.

    Returns:
        The tokenizer, and what it makes of the lines that the text keeps out of training.

    Raises:
        ValueError: If an argument is out of range, the text cannot be read, or it has not so many words or none.
    """
    if min_count < 1:
        raise ValueError(f"min_count must be at least 1, got {min_count}")
    check_symbols("extra_special_tokens", extra_special_tokens, list(SPECIAL_TOKENS.values()))
    special = [*SPECIAL_TOKENS.values(), *extra_special_tokens]
    if vocab_size is not None:
        check_vocab_size(vocab_size, len(special) + 1, "the special tokens and a word")
    backend = Tokenizer(models.WordLevel(unk_token=SPECIAL_TOKENS["unk_token"]))
    backend.normalizer = normalizers.BertNormalizer(lowercase=do_lower_case, strip_accents=not keep_accents)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocab_size or _UNLIMITED, min_frequency=min_count, special_tokens=special, show_progress=False
    )
    with atomic_folder(output, overwrite) as folder:
        backend.train_from_iterator(text.read("count words"), trainer)
        found = backend.get_vocab_size()
        if found == len(special):
            raise ValueError(f"no word occurs min_count={min_count} times in {text}")
        check_filled(found, vocab_size or found)
        begin, end = SPECIAL_TOKENS["bos_token"], SPECIAL_TOKENS["eos_token"]
        backend.post_processor = processors.TemplateProcessing(
            single=f"{begin}:0 $A:0 {end}:0",
            pair=f"{begin}:0 $A:0 {end}:0 $B:1 {end}:1",
            special_tokens=[(token, backend.token_to_id(token)) for token in (begin, end)],
        )
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=backend,
            **SPECIAL_TOKENS,
            cls_token=begin,
            sep_token=end,
            extra_special_tokens=list(extra_special_tokens),
            model_max_length=512,
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        )
        tokenizer.save_pretrained(folder)
        report = save_report(tokenizer, text, folder)
    return tokenizer, report
