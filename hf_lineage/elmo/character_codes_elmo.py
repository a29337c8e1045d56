"""Numbers of the characters that are no bytes of a word, the same in every published model."""

BEGIN_OF_SENTENCE = 257
END_OF_SENTENCE = 258
BEGIN_OF_WORD = 259
END_OF_WORD = 260
PADDING = 261

__all__ = ["BEGIN_OF_SENTENCE", "BEGIN_OF_WORD", "END_OF_SENTENCE", "END_OF_WORD", "PADDING"]
