"""ALBERT-style models for tasks with labels."""

import torch
from torch import nn
from transformers.modeling_outputs import (
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils import can_return_tuple

from .checks_albert import check_labels, check_positions, check_same_shape
from .configuration_albert import LineageAlbertConfig
from .heads_albert import prediction_loss, span_loss
from .modeling_albert import LineageAlbertModel, LineageAlbertPreTrainedModel


class LineageAlbertForSequenceClassification(LineageAlbertPreTrainedModel):
    """Classifier or regression on the pooled vector."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageAlbertConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.albert = LineageAlbertModel(config)
        self.dropout = nn.Dropout(_classifier_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs,
    ) -> SequenceClassifierOutput:
        """Computes `(batch or packed sequences, num_labels)` logits.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds: As in `LineageAlbertModel`.
            labels: `(batch,)` int64 classes, `(batch,)` floats for regression, or `(batch, num_labels)` floats, by
                `config.problem_type`.
            **kwargs: The other arguments of `LineageAlbertModel`.
        """
        outputs = self.albert(
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, return_dict=True, **kwargs
        )
        logits = self.classifier(self.dropout(outputs.pooler_output))
        loss = None
        if labels is not None:
            labels = self._checked_labels(labels, len(logits))
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )

    def _checked_labels(self, labels: torch.Tensor, number: int) -> torch.Tensor:
        is_float = isinstance(labels, torch.Tensor) and labels.is_floating_point()
        if self.num_labels > 1 and not is_float:
            check_labels("labels", labels, (number,), self.num_labels, "one class a row")
            return labels.long()
        if self.num_labels > 1:
            check_same_shape("labels", labels, (number, self.num_labels), "floats, one value a row and label")
        else:
            check_same_shape("labels", labels, (number,), "one value a row")
        return labels


class LineageAlbertForTokenClassification(LineageAlbertPreTrainedModel):
    """Classifier on each token."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageAlbertConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.albert = LineageAlbertModel(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(_classifier_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs,
    ) -> TokenClassifierOutput:
        """Computes `(batch, tokens, num_labels)` logits.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds: As in `LineageAlbertModel`.
            labels: `(batch, tokens)` int64 classes, -100 where there is none.
            **kwargs: The other arguments of `LineageAlbertModel`.
        """
        outputs = self.albert(
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, return_dict=True, **kwargs
        )
        logits = self.classifier(self.dropout(outputs.last_hidden_state))
        loss = None
        if labels is not None:
            check_labels("labels", labels, logits.shape[:2], self.num_labels, "one class a token")
            loss = prediction_loss(logits, labels)
        return TokenClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


class LineageAlbertForQuestionAnswering(LineageAlbertPreTrainedModel):
    """First and last token of an answer."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageAlbertConfig):
        super().__init__(config)
        self.albert = LineageAlbertModel(config, add_pooling_layer=False)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        **kwargs,
    ) -> QuestionAnsweringModelOutput:
        """Computes `(batch, tokens)` logits of the first and of the last token.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds: As in `LineageAlbertModel`.
            start_positions, end_positions: `(batch,)` int64, of rows that are not packed; one behind the last token,
                of an answer that was cut off, counts for nothing.
            **kwargs: The other arguments of `LineageAlbertModel`.
        """
        outputs = self.albert(
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, return_dict=True, **kwargs
        )
        start_logits, end_logits = (logits.contiguous() for logits in self.qa_outputs(outputs[0]).unbind(-1))
        loss = None
        if (start_positions is None) != (end_positions is None):
            missing = "start_positions" if start_positions is None else "end_positions"
            raise ValueError(f"start_positions and end_positions go together, got no {missing}")
        if start_positions is not None and end_positions is not None:
            check_positions("start_positions", start_positions, start_logits.shape[0])
            check_positions("end_positions", end_positions, start_logits.shape[0])
            loss = span_loss(start_logits, end_logits, start_positions, end_positions)
        return QuestionAnsweringModelOutput(
            loss=loss,
            start_logits=start_logits,
            end_logits=end_logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class LineageAlbertForMultipleChoice(LineageAlbertPreTrainedModel):
    """Score of each choice, from its pooled vector."""

    accepts_loss_kwargs = False

    def __init__(self, config: LineageAlbertConfig):
        super().__init__(config)
        self.albert = LineageAlbertModel(config)
        self.dropout = nn.Dropout(_classifier_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs,
    ) -> MultipleChoiceModelOutput:
        """Computes `(batch, choices)` logits.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds: As in `LineageAlbertModel`, with
                choices as the second dimension: `(batch, choices, tokens)`.
            labels: `(batch,)` int64, the right choice.
            **kwargs: The other arguments of `LineageAlbertModel`.
        """
        given = input_ids if inputs_embeds is None else inputs_embeds
        if given is None or given.dim() != (3 if inputs_embeds is None else 4):
            shape = None if given is None else tuple(given.shape)
            raise ValueError(f"inputs must be (batch, choices, tokens), got {shape}")
        batch_size, num_choices = given.shape[:2]
        flat = [
            values.flatten(0, 1) if isinstance(values, torch.Tensor) else values
            for values in (input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        ]
        outputs = self.albert(*flat, return_dict=True, **kwargs)
        logits = self.classifier(self.dropout(outputs.pooler_output)).view(batch_size, num_choices)
        loss = None
        if labels is not None:
            check_labels("labels", labels, (batch_size,), num_choices, "one choice a row")
            loss = prediction_loss(logits, labels)
        return MultipleChoiceModelOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


def _classifier_dropout(config: LineageAlbertConfig) -> float:
    """Dropout before a classifier."""
    if config.classifier_dropout_prob is None:
        return config.hidden_dropout_prob
    return config.classifier_dropout_prob


__all__ = [
    "LineageAlbertForMultipleChoice",
    "LineageAlbertForQuestionAnswering",
    "LineageAlbertForSequenceClassification",
    "LineageAlbertForTokenClassification",
]
