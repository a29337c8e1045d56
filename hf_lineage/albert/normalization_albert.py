"""How the ALBERT-style tokenizer prepares a text before it cuts it."""

from tokenizers import Regex, normalizers

# white space for Python, on which the original splits, but not for the pre-tokenizer or the table of the pieces
_OTHER_SPACES = Regex(r"[\x{0B}\x{1C}-\x{1F}]")
_CONTROL_CHARACTERS = (*range(0x01, 0x20), *range(0x7F, 0xA0))


def text_normalizer(
    do_lower_case: bool, keep_accents: bool, remove_space: bool = True, charsmap: bytes = b""
) -> normalizers.Sequence:
    """The steps of the tokenizer's normalizer.

    Args:
        do_lower_case: As in the tokenizer.
        keep_accents: As in the tokenizer.
        remove_space: As in the tokenizer.
        charsmap: The table of a `spiece.model`, empty for none.
    """
    steps: list[normalizers.Normalizer] = []
    if remove_space:
        steps.append(normalizers.Replace(_OTHER_SPACES, " "))
    steps += [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not keep_accents:
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if do_lower_case:
        steps.append(normalizers.Lowercase())
    if charsmap:
        table = normalizers.Precompiled(charsmap)
        # of those that it drops at the beginning of a text the backend loses count, and all offsets are wrong
        dropped = [code for code in _CONTROL_CHARACTERS if table.normalize_str(f"a{chr(code)}b") == "ab"]
        if dropped:
            codes = "".join(f"\\x{{{code:02X}}}" for code in dropped)
            steps.append(normalizers.Replace(Regex(rf"\A[{codes}]+"), ""))
        steps.append(table)
    return normalizers.Sequence(steps)


__all__ = ["text_normalizer"]
