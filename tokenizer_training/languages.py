"""What a language asks of a vocabulary of pieces, where that differs from English."""

from typing import Any, NamedTuple


class LanguageDefaults(NamedTuple):
    """Defaults of training options.

    Args:
        character_coverage: Share of the text's characters that the vocabulary knows.
        keep_accents: Whether combining marks stay.
    """

    character_coverage: float = 0.99995
    keep_accents: bool = False


# A coverage of 0.9995 is what SentencePiece advises for scripts with thousands of characters (its README, "Train
# SentencePiece Model"). The published Chinese models drop accents, as the English ones do; in Japanese that would take
# the marks of voiced sounds, in Korean leave syllables in parts, and in the others take vowels.
LANGUAGES = {
    "zh": LanguageDefaults(character_coverage=0.9995),
    "ja": LanguageDefaults(character_coverage=0.9995, keep_accents=True),
    **dict.fromkeys(("ko", "hi", "bn", "ta", "te", "th", "km", "my"), LanguageDefaults(keep_accents=True)),
}


def language_options(
    language: str | None, keep_accents: bool | None = None, character_coverage: float | None = None
) -> dict[str, Any]:
    """Options of training for a language.

    Args:
        language: ISO 639-1 code of one in the table, or `None` for any other.
        keep_accents: In place of the language's default, if given.
        character_coverage: In place of the language's default, if given.

    Raises:
        ValueError: If the language is not in the table.
    """
    if language is not None and language not in LANGUAGES:
        raise ValueError(
            f"language must be one of {', '.join(LANGUAGES)}, got {language!r}; others need no special settings"
        )
    defaults = LanguageDefaults() if language is None else LANGUAGES[language]
    return {
        "keep_accents": defaults.keep_accents if keep_accents is None else keep_accents,
        "character_coverage": defaults.character_coverage if character_coverage is None else character_coverage,
    }
