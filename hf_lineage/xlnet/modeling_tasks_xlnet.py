"""XLNet-style models for tasks with labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers.modeling_outputs import (
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils import ModelOutput, can_return_tuple

from .configuration_xlnet import LineageXLNetConfig
from .heads_xlnet import (
    LineageXLNetAnswerClass,
    LineageXLNetEndLogits,
    LineageXLNetSequenceSummary,
    LineageXLNetStartLogits,
    last_tokens,
    rows_at,
    span_loss,
    token_loss,
)
from .masks_xlnet import check_shape, real_tokens
from .modeling_xlnet import LineageXLNetModel, LineageXLNetPreTrainedModel


@dataclass
class LineageXLNetForQuestionAnsweringOutput(ModelOutput):
    """Output of `LineageXLNetForQuestionAnswering`.

    Args:
        loss: Given with positions.
        start_top_log_probs: `(batch, start_n_top)`, probabilities (as in transformers, not their logarithms) of the
            likeliest first tokens; this and the following without positions.
        start_top_index: `(batch, start_n_top)` int64, these tokens.
        end_top_log_probs: `(batch, start_n_top * end_n_top)`, of the likeliest last tokens for each; as transformers
            has them, the ends of one rank for all starts are side by side.
        end_top_index: The same, int64.
        cls_logits: `(batch,)`, score of the question having no answer.
        hidden_states, attentions: As in `LineageXLNetModelOutput`.
    """

    loss: torch.Tensor | None = None
    start_top_log_probs: torch.Tensor | None = None
    start_top_index: torch.Tensor | None = None
    end_top_log_probs: torch.Tensor | None = None
    end_top_index: torch.Tensor | None = None
    cls_logits: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None


class LineageXLNetForSequenceClassification(LineageXLNetPreTrainedModel):
    """Classifier or regression on the vector of the sequence."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageXLNetConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.transformer = LineageXLNetModel(config)
        self.sequence_summary = LineageXLNetSequenceSummary(config)
        self.logits_proj = nn.Linear(config.d_model, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        mems: Sequence[torch.Tensor] | None = None,
        perm_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        input_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs,
    ) -> SequenceClassifierOutput:
        """Computes `(batch, num_labels)` logits; padding may be on either side.

        Args:
            input_ids, attention_mask, mems, perm_mask, token_type_ids, input_mask, inputs_embeds: As in
                `LineageXLNetModel`.
            labels: `(batch,)` int64 classes, `(batch,)` floats for regression, or `(batch, num_labels)` floats, by
                `config.problem_type`.
            **kwargs: The other arguments of `LineageXLNetModel`.
        """
        outputs = self.transformer(
            input_ids, attention_mask, mems, perm_mask, None, token_type_ids, input_mask, inputs_embeds,
            return_dict=True, **{"use_mems": False, **kwargs},
        )  # fmt: skip
        real = real_tokens(attention_mask, input_mask, outputs.last_hidden_state.shape[1])
        logits = self.logits_proj(self.sequence_summary(outputs.last_hidden_state, real))
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


class LineageXLNetForTokenClassification(LineageXLNetPreTrainedModel):
    """Classifier on each token."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageXLNetConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.transformer = LineageXLNetModel(config)
        self.classifier = nn.Linear(config.d_model, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        mems: Sequence[torch.Tensor] | None = None,
        perm_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        input_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs,
    ) -> TokenClassifierOutput:
        """Computes `(batch, tokens, num_labels)` logits.

        Args:
            input_ids, attention_mask, mems, perm_mask, token_type_ids, input_mask, inputs_embeds: As in
                `LineageXLNetModel`.
            labels: `(batch, tokens)` int64 classes, -100 where there is none.
            **kwargs: The other arguments of `LineageXLNetModel`.
        """
        outputs = self.transformer(
            input_ids, attention_mask, mems, perm_mask, None, token_type_ids, input_mask, inputs_embeds,
            return_dict=True, **{"use_mems": False, **kwargs},
        )  # fmt: skip
        logits = self.classifier(outputs.last_hidden_state)
        loss = None
        if labels is not None:
            check_shape("labels", labels, [tuple(logits.shape[:2])])
            loss = token_loss(logits, labels)
        return TokenClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


class LineageXLNetForMultipleChoice(LineageXLNetPreTrainedModel):
    """Score of each choice, from the vector of its sequence."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageXLNetConfig):
        super().__init__(config)
        self.transformer = LineageXLNetModel(config)
        self.sequence_summary = LineageXLNetSequenceSummary(config)
        self.logits_proj = nn.Linear(config.d_model, 1)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        input_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs,
    ) -> MultipleChoiceModelOutput:
        """Computes `(batch, choices)` logits.

        Args:
            input_ids, attention_mask, token_type_ids, input_mask, inputs_embeds: As in `LineageXLNetModel`, with
                choices as the second dimension: `(batch, choices, tokens)`.
            labels: `(batch,)` int64, the right choice.
            **kwargs: `output_attentions` and `output_hidden_states`.
        """
        given = input_ids if inputs_embeds is None else inputs_embeds
        if given is None or given.dim() != (3 if inputs_embeds is None else 4):
            shape = None if given is None else tuple(given.shape)
            raise ValueError(f"inputs must be (batch, choices, tokens), got {shape}")
        batch_size, num_choices = given.shape[:2]
        flat = {
            name: None if values is None else values.flatten(0, 1)
            for name, values in {
                "input_ids": input_ids,
                "attention_mask": attention_mask,
                "token_type_ids": token_type_ids,
                "input_mask": input_mask,
                "inputs_embeds": inputs_embeds,
            }.items()
        }
        outputs = self.transformer(**flat, use_mems=False, return_dict=True, **kwargs)
        real = real_tokens(flat["attention_mask"], flat["input_mask"], outputs.last_hidden_state.shape[1])
        logits = self.logits_proj(self.sequence_summary(outputs.last_hidden_state, real))
        logits = logits.view(batch_size, num_choices)
        loss = None
        if labels is not None:
            check_shape("labels", labels, [(batch_size,)])
            loss = token_loss(logits, labels)
        return MultipleChoiceModelOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


class LineageXLNetForQuestionAnsweringSimple(LineageXLNetPreTrainedModel):
    """First and last token of an answer, each by itself."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageXLNetConfig):
        super().__init__(config)
        self.transformer = LineageXLNetModel(config)
        self.qa_outputs = nn.Linear(config.d_model, 2)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        mems: Sequence[torch.Tensor] | None = None,
        perm_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        input_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        **kwargs,
    ) -> QuestionAnsweringModelOutput:
        """Computes `(batch, tokens)` logits of the first and of the last token.

        Args:
            input_ids, attention_mask, mems, perm_mask, token_type_ids, input_mask, inputs_embeds: As in
                `LineageXLNetModel`.
            start_positions, end_positions: `(batch,)` int64; one behind the last token, of an answer that was cut
                off, is not counted in the loss.
            **kwargs: The other arguments of `LineageXLNetModel`.
        """
        outputs = self.transformer(
            input_ids, attention_mask, mems, perm_mask, None, token_type_ids, input_mask, inputs_embeds,
            return_dict=True, **{"use_mems": False, **kwargs},
        )  # fmt: skip
        start_logits, end_logits = (logits.contiguous() for logits in self.qa_outputs(outputs[0]).unbind(-1))
        loss = None
        if start_positions is not None and end_positions is not None:
            starts, ends = span_loss(start_logits, start_positions), span_loss(end_logits, end_positions)
            loss = (starts + ends) / 2
        return QuestionAnsweringModelOutput(
            loss=loss,
            start_logits=start_logits,
            end_logits=end_logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class LineageXLNetForQuestionAnswering(LineageXLNetPreTrainedModel):
    """First token of an answer, the last for each of the likeliest first ones, and whether there is an answer."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageXLNetConfig):
        super().__init__(config)
        self.transformer = LineageXLNetModel(config)
        self.start_logits = LineageXLNetStartLogits(config)
        self.end_logits = LineageXLNetEndLogits(config)
        self.answer_class = LineageXLNetAnswerClass(config)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        mems: Sequence[torch.Tensor] | None = None,
        perm_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        input_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        is_impossible: torch.Tensor | None = None,
        cls_index: torch.Tensor | None = None,
        p_mask: torch.Tensor | None = None,
        **kwargs,
    ) -> LineageXLNetForQuestionAnsweringOutput:
        """Computes the loss, if positions are given, else the likeliest answers.

        Args:
            input_ids, attention_mask, mems, perm_mask, token_type_ids, input_mask, inputs_embeds: As in
                `LineageXLNetModel`.
            start_positions, end_positions: `(batch,)` int64.
            is_impossible: `(batch,)`, 1 if the text has no answer.
            cls_index: `(batch,)` int64, where `<cls>` is; `None` takes the last real token.
            p_mask: `(batch, tokens)`, 1 where an answer cannot start or end.
            **kwargs: The other arguments of `LineageXLNetModel`.
        """
        outputs = self.transformer(
            input_ids, attention_mask, mems, perm_mask, None, token_type_ids, input_mask, inputs_embeds,
            return_dict=True, **{"use_mems": False, **kwargs},
        )  # fmt: skip
        hidden_states = outputs.last_hidden_state
        if cls_index is None:
            real = real_tokens(attention_mask, input_mask, hidden_states.shape[1])
            last = hidden_states.shape[1] - 1
            cls_index = torch.full((len(hidden_states),), last, device=hidden_states.device)
            cls_index = cls_index if real is None else last_tokens(real)
        cls_states = rows_at(hidden_states, cls_index.flatten())
        start_logits = self.start_logits(hidden_states, p_mask)
        if start_positions is None or end_positions is None:
            found = self._beams(hidden_states, start_logits, cls_states, p_mask)
        else:
            starts, ends = start_positions.flatten(), end_positions.flatten()
            found = {"loss": self._loss(hidden_states, start_logits, cls_states, p_mask, starts, ends, is_impossible)}
        return LineageXLNetForQuestionAnsweringOutput(
            **found, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )

    def _loss(
        self,
        hidden_states: torch.Tensor,
        start_logits: torch.Tensor,
        cls_states: torch.Tensor,
        p_mask: torch.Tensor | None,
        starts: torch.Tensor,
        ends: torch.Tensor,
        is_impossible: torch.Tensor | None,
    ) -> torch.Tensor:
        start_states = rows_at(hidden_states, starts.clamp(max=hidden_states.shape[1] - 1))
        end_logits = self.end_logits(hidden_states, start_states[:, None].expand_as(hidden_states), p_mask)
        loss = (span_loss(start_logits, starts) + span_loss(end_logits, ends)) / 2
        if is_impossible is None:
            return loss
        cls_logits = self.answer_class(start_states, cls_states)
        # half the weight, as the original has it
        target = is_impossible.flatten().to(cls_logits.dtype)
        return loss + 0.5 * nn.functional.binary_cross_entropy_with_logits(cls_logits, target)

    def _beams(
        self,
        hidden_states: torch.Tensor,
        start_logits: torch.Tensor,
        cls_states: torch.Tensor,
        p_mask: torch.Tensor | None,
    ) -> dict[str, torch.Tensor]:
        tokens = hidden_states.shape[1]
        start_probabilities = start_logits.softmax(-1)
        start_top, start_index = start_probabilities.topk(min(self.config.start_n_top, tokens), -1)
        start_states = rows_at(hidden_states, start_index)[:, None].expand(-1, tokens, -1, -1)
        end_logits = self.end_logits(
            hidden_states[:, :, None].expand_as(start_states),
            start_states,
            None if p_mask is None else p_mask[..., None],
        )
        end_top, end_index = end_logits.softmax(1).topk(min(self.config.end_n_top, tokens), 1)
        mean_start = (start_probabilities[..., None] * hidden_states).sum(1)
        return {
            "start_top_log_probs": start_top,
            "start_top_index": start_index,
            "end_top_log_probs": end_top.flatten(1),
            "end_top_index": end_index.flatten(1),
            "cls_logits": self.answer_class(mean_start, cls_states),
        }


__all__ = [
    "LineageXLNetForMultipleChoice",
    "LineageXLNetForQuestionAnswering",
    "LineageXLNetForQuestionAnsweringOutput",
    "LineageXLNetForQuestionAnsweringSimple",
    "LineageXLNetForSequenceClassification",
    "LineageXLNetForTokenClassification",
]
