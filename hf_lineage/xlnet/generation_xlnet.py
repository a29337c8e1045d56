"""Text generation from left to right.

The next token is predicted by the query stream at the position after the last, from all tokens so far. A token's
content stream sees the token after it, so the last token of a step is computed again, with the new one, in the next.
The keys and values of all others are in the cache.
"""

from typing import Any

import torch
from transformers import GenerationMixin
from transformers.utils import ModelOutput

from .cache_xlnet import LineageXLNetCache


class LineageXLNetGenerationMixin(GenerationMixin):
    """`generate()` with the cache of this family."""

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    def prepare_inputs_for_generation(
        self,
        input_ids: torch.Tensor,
        mems: Any = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        use_cache: bool | None = True,
        next_sequence_length: int | None = None,
        is_first_iteration: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The tokens that are not in the cache yet, and the position after the last as the one to predict."""
        prompt = 0 if inputs_embeds is None else inputs_embeds.shape[1]
        total = prompt + input_ids.shape[1]
        past = mems.num_text_tokens if isinstance(mems, LineageXLNetCache) else 0
        new = total - past
        inputs: dict[str, Any] = {"mems": mems, "use_cache": bool(use_cache), **kwargs}
        if inputs_embeds is not None and prompt > past:
            embeds = [inputs_embeds[:, past:], self.get_input_embeddings()(input_ids)]
            inputs["inputs_embeds"] = torch.cat(embeds, 1)
        else:
            inputs["input_ids"] = input_ids[:, -new:]
        inputs["attention_mask"] = None if attention_mask is None else attention_mask[:, -new:]
        inputs["token_type_ids"] = None if token_type_ids is None else token_type_ids[:, -new:]
        inputs["target_mapping"] = torch.full((input_ids.shape[0], 1), new, device=input_ids.device)
        return inputs

    def _update_model_kwargs_for_generation(
        self, outputs: ModelOutput, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        model_kwargs = super()._update_model_kwargs_for_generation(outputs, model_kwargs, *args, **kwargs)
        model_kwargs.pop("past_key_values", None)  # where older releases put it
        if isinstance(outputs.get("mems"), LineageXLNetCache):
            model_kwargs["mems"] = outputs["mems"]
        return model_kwargs


__all__ = ["LineageXLNetGenerationMixin"]
