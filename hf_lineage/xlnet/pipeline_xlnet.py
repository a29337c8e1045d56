"""The text generation pipeline, for models whose tokenizer puts its special tokens at the end."""

from typing import Any

from transformers.pipelines.text_generation import TextGenerationPipeline

from .tokenization_xlnet import LineageXLNetTokenizer


class LineageXLNetTextGenerationPipeline(TextGenerationPipeline):
    """transformers' text generation pipeline, which also continues texts of `LineageXLNetTokenizer`.

    That one ends every text with `<sep><cls>`, after which there is nothing to continue: they are left out unless
    `add_special_tokens=True` is given. With any other tokenizer it is the pipeline that it extends.
    """

    def preprocess(self, prompt_text: Any, *args: Any, add_special_tokens: bool | None = None, **kwargs: Any) -> Any:
        """Encodes a prompt or a chat."""
        if add_special_tokens is None and isinstance(self.tokenizer, LineageXLNetTokenizer):
            add_special_tokens = False
        return super().preprocess(prompt_text, *args, add_special_tokens=add_special_tokens, **kwargs)


__all__ = ["LineageXLNetTextGenerationPipeline"]
