"""Token ids of documents, segment by segment."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from .corpus import Document

TokenizedDocument = tuple[Document, list[list[int]]]


def tokenize_documents(tokenizer: PreTrainedTokenizerBase, documents: Sequence[Document]) -> list[TokenizedDocument]:
    """Cuts the segments of documents into tokens, in one call of the tokenizer.

    Args:
        tokenizer: Adds no special tokens, and reads their names in the text as text.
        documents: The documents.

    Returns:
        Each document with the ids of its segments, without those that have no token.
    """
    lines = [segment for document in documents for segment in document.segments]
    if not lines:
        return []
    input_ids = tokenizer(
        lines,
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        split_special_tokens=True,
        verbose=False,
    )["input_ids"]
    remaining = iter(input_ids)
    tokenized = []
    for document in documents:
        segments = [next(remaining) for _ in document.segments]
        tokenized.append((document, [segment for segment in segments if segment]))
    return tokenized


__all__ = ["TokenizedDocument", "tokenize_documents"]
