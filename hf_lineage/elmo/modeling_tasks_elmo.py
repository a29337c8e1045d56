"""ELMo models for tasks with labels."""

import torch
from torch import nn
from transformers.modeling_outputs import (
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils import can_return_tuple

from .checks_elmo import (
    check_classification_labels,
    check_input_ids,
    check_labels,
    check_no_kept_boundaries,
    check_positions,
    check_shape,
    check_token_mask,
    refuses_foreign_arguments,
)
from .configuration_elmo import ElmoConfig
from .heads_elmo import ElmoClassificationHead, mean_cross_entropy, position_loss
from .modeling_elmo import ElmoModel, ElmoPreTrainedModel
from .task_features_elmo import ElmoTaskFeatures


class ElmoForSequenceClassification(ElmoPreTrainedModel):
    """ELMo with a classifier (or regressor) of sentences and sentence pairs."""

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        check_no_kept_boundaries(config, type(self).__name__)
        self.num_labels = config.num_labels
        self.elmo = ElmoModel(config)
        self.features = ElmoTaskFeatures(config)
        self.classifier = ElmoClassificationHead(config, config.num_labels, config.task_feature_size)
        self.post_init()

    @refuses_foreign_arguments
    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> SequenceClassifierOutput:
        """Classifies each row.

        Args:
            input_ids: As in `ElmoModel`.
            attention_mask: As in `ElmoModel`.
            token_type_ids: As in `ElmoModel`.
            labels: `(batch,)` int64 classes, `(batch,)` float targets of a regression (`num_labels=1`), or
                `(batch, num_labels)` floats for `problem_type="multi_label_classification"`.
            output_hidden_states: As in `ElmoModel`.

        Raises:
            ValueError: If an argument has the wrong shape, dtype or range.
        """
        if labels is not None:
            check_input_ids(input_ids, self.config)
            check_classification_labels(labels, self.config, len(input_ids))
        outputs = self.elmo(input_ids, attention_mask, token_type_ids, output_hidden_states=output_hidden_states)
        features = self.features(outputs.last_hidden_state, input_ids, outputs.attention_mask)
        logits = self.classifier(features, outputs.attention_mask, token_type_ids)
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config)
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=outputs.hidden_states)


class ElmoForTokenClassification(ElmoPreTrainedModel):
    """ELMo with a classifier of each token."""

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        check_no_kept_boundaries(config, type(self).__name__)
        self.num_labels = config.num_labels
        self.elmo = ElmoModel(config)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.features = ElmoTaskFeatures(config)
        self.classifier = nn.Linear(config.task_feature_size, config.num_labels)
        self.post_init()

    @refuses_foreign_arguments
    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> TokenClassifierOutput:
        """Classifies each token.

        Args:
            input_ids: As in `ElmoModel`.
            attention_mask: As in `ElmoModel`.
            token_type_ids: As in `ElmoModel`.
            labels: `(batch, tokens)` int64 classes, -100 for a token that does not count.
            output_hidden_states: As in `ElmoModel`.

        Raises:
            ValueError: If an argument has the wrong shape, dtype or range.
        """
        if labels is not None:
            check_input_ids(input_ids, self.config)
            check_token_mask("labels", labels, input_ids)
            check_labels(labels, self.num_labels, "num_labels")
        outputs = self.elmo(input_ids, attention_mask, token_type_ids, output_hidden_states=output_hidden_states)
        features = self.features(outputs.last_hidden_state, input_ids, outputs.attention_mask)
        logits = self.classifier(self.dropout(features))
        loss = None if labels is None else mean_cross_entropy(logits, labels)
        return TokenClassifierOutput(loss=loss, logits=logits, hidden_states=outputs.hidden_states)


class ElmoForQuestionAnswering(ElmoPreTrainedModel):
    """ELMo with a classifier of the first and the last token of an answer."""

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        check_no_kept_boundaries(config, type(self).__name__)
        self.elmo = ElmoModel(config)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @refuses_foreign_arguments
    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> QuestionAnsweringModelOutput:
        """Scores each token as first and as last of the answer.

        Args:
            input_ids: As in `ElmoModel`.
            attention_mask: As in `ElmoModel`.
            token_type_ids: As in `ElmoModel`. With `pair_encoding="joint"`, the default, the question is read before
                the text; read separately, the text would not know the question.
            start_positions: `(batch,)` int64, the first token of the answer; one past the last token or more if
                truncation has removed the answer, which then does not count.
            end_positions: `(batch,)` int64, the last token of the answer, likewise.
            output_hidden_states: As in `ElmoModel`.

        Raises:
            ValueError: If an argument has the wrong shape, dtype or range.
        """
        if (start_positions is None) != (end_positions is None):
            raise ValueError("start_positions and end_positions must be given together, got only one of them")
        if start_positions is not None and end_positions is not None:
            check_input_ids(input_ids, self.config)
            check_positions("start_positions", start_positions, len(input_ids))
            check_positions("end_positions", end_positions, len(input_ids))
        outputs = self.elmo(input_ids, attention_mask, token_type_ids, output_hidden_states=output_hidden_states)
        start_logits, end_logits = self.qa_outputs(self.dropout(outputs.last_hidden_state)).unbind(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            losses = [
                position_loss(start_logits, start_positions),
                position_loss(end_logits, end_positions),
            ]
            loss = sum(losses) / 2
        return QuestionAnsweringModelOutput(
            loss=loss, start_logits=start_logits, end_logits=end_logits, hidden_states=outputs.hidden_states
        )


class ElmoForMultipleChoice(ElmoPreTrainedModel):
    """ELMo with a score for each choice."""

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        check_no_kept_boundaries(config, type(self).__name__)
        self.elmo = ElmoModel(config)
        self.classifier = ElmoClassificationHead(config, 1)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> MultipleChoiceModelOutput:
        """Scores each choice.

        Args:
            input_ids: `(batch, choices, tokens, token_row_size)` int64, or the last two dimensions as one,
                which is how `DataCollatorForMultipleChoice` gives them.
            attention_mask: `(batch, choices, tokens)`.
            token_type_ids: `(batch, choices, tokens)`.
            labels: `(batch,)` int64, the right choice.
            output_hidden_states: As in `ElmoModel`; the hidden states have `batch * choices` rows.

        Raises:
            ValueError: If an argument has the wrong shape, dtype or range.
        """
        characters = self.config.token_row_size
        if input_ids.dim() == 3 and input_ids.shape[-1] % characters == 0:
            input_ids = input_ids.unflatten(-1, (-1, characters))
        if input_ids.dim() != 4:
            raise ValueError(
                f"input_ids must have 4 dimensions (batch, choices, tokens, characters), got {tuple(input_ids.shape)}"
            )
        choices = input_ids.shape[1]
        if labels is not None:
            check_shape("labels", labels, input_ids.shape[:1], "one choice a row")
            check_labels(labels, choices, "the number of choices")
        attention_mask, token_type_ids = (
            None if values is None else values.flatten(0, 1) for values in (attention_mask, token_type_ids)
        )
        outputs = self.elmo(
            input_ids.flatten(0, 1), attention_mask, token_type_ids, output_hidden_states=output_hidden_states
        )
        logits = self.classifier(outputs.last_hidden_state, outputs.attention_mask, token_type_ids)
        logits = logits.view(-1, choices)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return MultipleChoiceModelOutput(loss=loss, logits=logits, hidden_states=outputs.hidden_states)


__all__ = [
    "ElmoForMultipleChoice",
    "ElmoForQuestionAnswering",
    "ElmoForSequenceClassification",
    "ElmoForTokenClassification",
]
