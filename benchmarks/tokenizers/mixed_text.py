"""Lines of many kinds, in which the ways that tokenizers prepare text would differ if they did."""

import random
import sysconfig
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tokenizer_training.text import LineSample, TextLines

_SHARES = {"english": 0.35, "chinese": 0.3, "code": 0.2, "spliced": 0.15}
_PACKAGES = ("asyncio", "email", "encodings", "json", "unittest", "xml")  # of the standard library
_EMOJI = "😀 👍🏽 👨‍👩‍👧 🇨🇳 ❤️ 🎉 1️⃣ ☃".split()
_CONTROL = "\x00 \x01 \x07 \x08 \x0b \x0c \x1b \x1c \x1f \x7f \x85 \x9f \u200b \u200d \u2028 \ufeff \ufffd".split(" ")


def mixed_lines(english: Sequence[Path], chinese: Sequence[Path], number: int, seed: int = 0) -> list[str]:
    """Draws lines of English and Chinese text, code, and text with digits, URLs, emoji and control characters.

    Args:
        english: Files or folders of English text.
        chinese: Files or folders of Chinese text.
        number: How many lines.
        seed: Start of the draws.
    """
    counts = {kind: round(share * number) for kind, share in _SHARES.items()}
    counts["english"] += number - sum(counts.values())
    generator = random.Random(seed)
    prose = [
        list(TextLines(inputs, sample_limit=number, seed=seed, held_out=0).read(name))
        for name, inputs in (("English", english), ("Chinese", chinese))
    ]
    lines = [
        *generator.sample(prose[0], min(counts["english"], len(prose[0]))),
        *generator.sample(prose[1], min(counts["chinese"], len(prose[1]))),
        *LineSample(counts["code"], seed).with_lines(_code()).lines,
    ]
    # with what is spliced into it, a line may be drawn twice
    lines += islice(_spliced(prose[0] + prose[1], generator), number - len(lines))
    generator.shuffle(lines)
    return lines


def _code() -> Iterator[str]:
    library = Path(sysconfig.get_paths()["stdlib"])
    for package in _PACKAGES:
        for file in sorted((library / package).glob("*.py")):
            yield from filter(str.strip, file.read_text(encoding="utf-8", errors="replace").split("\n"))


def _spliced(lines: Sequence[str], generator: random.Random) -> Iterator[str]:
    while True:
        words = generator.choice(lines).split(" ")
        for _ in range(generator.randint(1, 2)):
            place = generator.randrange(len(words) + 1)
            words.insert(place, _insertion(generator))
        yield generator.choice((" ", " ", "\t", "\u3000", "")).join(words)


def _insertion(generator: random.Random) -> str:
    digits = str(generator.randrange(10 ** generator.randint(1, 9)))
    kind = generator.randrange(4)
    if kind == 0:
        return generator.choice(
            (
                digits,
                f"{digits},",
                f"{digits},{generator.randrange(1000):03}",
                f"${digits}.50",
                f"({digits})",
                f"{digits}%",
            )
        )
    if kind == 1:
        return f"https://www.example.org/{digits}/a-b_c.html?q={digits}&p=%20#top"
    return generator.choice(_EMOJI if kind == 2 else _CONTROL)
