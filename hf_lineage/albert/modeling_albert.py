"""Encoders between BERT and ALBERT.

Lan et al. 2020, "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations"
(https://arxiv.org/abs/1909.11942).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import (
    BaseModelOutputWithPooling,
    MaskedLMOutput,
)
from transformers.utils import ModelOutput, can_return_tuple

from .checks_albert import (
    check_attention_mask,
    check_inputs,
    check_labels,
    check_range,
    check_same_shape,
)
from .configuration_albert import LineageAlbertConfig
from .conversion_albert import foreign_key_mapping, to_transformers
from .heads_albert import IGNORED, LineageAlbertPredictionHead, prediction_loss
from .layers_albert import (
    LineageAlbertAttention,
    LineageAlbertEmbeddings,
    LineageAlbertFeedForward,
    LineageAlbertLayer,
    takes_one_by_one,
)
from .loading_albert import load_checked
from .packing_albert import KeptTokens, PackedSequences, first_real_tokens, is_exporting, packed_row

if TYPE_CHECKING:
    # transformers finds the files of a model by the imports in them: where this one goes as custom code, so do those
    from .modeling_tasks_albert import LineageAlbertForSequenceClassification  # noqa: F401


@dataclass
class LineageAlbertForPreTrainingOutput(ModelOutput):
    """Output of `LineageAlbertForPreTraining`.

    Args:
        loss: Sum of the losses whose labels were given.
        prediction_loss: Masked-LM cross-entropy, in nats a predicted token; 0 if none is predicted.
        sentence_loss: Cross-entropy of the sentence objective, in nats a pair.
        prediction_logits: `(batch, tokens, vocab_size)`; with sparse prediction `(labelled positions, vocab_size)`,
            row by row.
        sentence_logits: `(batch, 2)`, of packed sequences one row each; `None` with `sentence_objective="none"`.
        hidden_states: As in `LineageAlbertModel`.
        attentions: As in `LineageAlbertModel`.
    """

    loss: torch.Tensor | None = None
    prediction_loss: torch.Tensor | None = None
    sentence_loss: torch.Tensor | None = None
    prediction_logits: torch.Tensor | None = None
    sentence_logits: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


class LineageAlbertPreTrainedModel(PreTrainedModel):
    """Initialization, loading and conversion, common to all models of the family."""

    config: LineageAlbertConfig
    config_class = LineageAlbertConfig
    base_model_prefix = "albert"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # a buffer that old checkpoints hold
    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [r"embeddings\.position_ids"]
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _no_split_modules: ClassVar[list[str]] = [
        "LineageAlbertEmbeddings",
        "LineageAlbertAttention",
        "LineageAlbertFeedForward",
    ]

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args, **kwargs) -> Any:
        """As in `PreTrainedModel`; a checkpoint of transformers' ALBERT or BERT is translated as it is read.

        Damaged weights and those of another architecture are refused (`ValueError`).
        """
        key_mapping = foreign_key_mapping(pretrained_model_name_or_path, kwargs)
        if not key_mapping:
            return load_checked(super().from_pretrained, pretrained_model_name_or_path, *args, **kwargs)
        kwargs["key_mapping"] = {**key_mapping, **(kwargs.get("key_mapping") or {})}
        loaded = load_checked(super().from_pretrained, pretrained_model_name_or_path, *args, **kwargs)
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        model._weight_conversions = None  # or it would be saved under transformers' names again
        return loaded

    def to_transformers(self, model_type: str | None = None) -> PreTrainedModel:
        """Returns the same model as a class of transformers, with weights of its own.

        Blocks are repeated where the target cannot share them. Dropout after feed-forward blocks is lost in ALBERT,
        which has none in transformers.

        Args:
            model_type: `"albert"` or `"bert"`; `None` takes BERT for a model that shares nothing and has no
                embedding projection, else ALBERT.

        Raises:
            ValueError: If the target cannot compute what this model computes.
        """
        return to_transformers(self, model_type)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initializes as the original does: normal, cut at two standard deviations."""
        std = self.config.initializer_range
        if isinstance(module, (nn.Linear, nn.Embedding)):
            init.trunc_normal_(module.weight, std=std, a=-2 * std, b=2 * std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                init.zeros_(module.bias)
            padding = getattr(module, "padding_idx", None)
            if padding is not None and not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[padding])
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, LineageAlbertPredictionHead):
            init.zeros_(module.bias)


class LineageAlbertModel(LineageAlbertPreTrainedModel):
    """The encoder.

    Args:
        config: The configuration.
        add_pooling_layer: Whether there is a pooler, a linear layer and tanh on the first token's vector.
    """

    def __init__(self, config: LineageAlbertConfig, add_pooling_layer: bool = True):
        super().__init__(config)
        self.embeddings = LineageAlbertEmbeddings(config)
        self.embedding_projection = (
            nn.Linear(config.embedding_size, config.hidden_size) if config.has_projection else None
        )
        self.attention_blocks = nn.ModuleList(
            LineageAlbertAttention(config) for _ in range(config.num_attention_blocks)
        )
        self.ffn_blocks = nn.ModuleList(LineageAlbertFeedForward(config) for _ in range(config.num_ffn_blocks))
        self.layers = nn.ModuleList(LineageAlbertLayer() for _ in range(config.depth))
        self.final_layer_norm = (
            nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
            if config.layer_norm_position == "pre"
            else None
        )
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if add_pooling_layer else None
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The word table, `(vocab_size, embedding_size)`."""
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replaces the word table."""
        self.embeddings.word_embeddings = value

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        cu_seq_lens_q: torch.Tensor | None = None,
        cu_seq_lens_k: torch.Tensor | None = None,
        max_length_q: int | None = None,
        max_length_k: int | None = None,
        output_mask: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> BaseModelOutputWithPooling:
        """Computes a vector for each token.

        A packed batch is one row with several sequences one after the other, without padding and without an
        `attention_mask`. Its boundaries are `cu_seq_lens_q`, or else `position_ids` that start again at 0; both are
        what `DataCollatorWithFlattening` of transformers gives. No token then sees another sequence's, and the pooler
        has a row for each sequence.

        Args:
            input_ids: `(batch, tokens)` int64 or int32 in `[0, vocab_size)`.
            attention_mask: `(batch, tokens)`, 0 for padding on either side; or `(batch, 1 or heads, tokens, tokens)`
                as the attention implementation reads it, for "sdpa" bool (true = seen) or float (added to scores).
            token_type_ids: `(batch, tokens)`, the segment of each token; 0 if `None`.
            position_ids: `(batch, tokens)` or `(1, tokens)`; `None` counts from a row's first real token. In a single
                row without `attention_mask`, sequences begin where they start again at 0 (but not in `torch.export`).
            inputs_embeds: `(batch, tokens, embedding_size)` word vectors, in place of `input_ids`.
            cu_seq_lens_q: `(sequences + 1,)` int32 or int64, where the sequences of a packed row begin and end, from 0
                to the number of tokens.
            cu_seq_lens_k, max_length_q, max_length_k: What collators give beside it; not needed.
            output_mask: `(batch, tokens)` bool, true at the tokens whose vectors are asked for; `last_hidden_state` is
                then `(asked, hidden_size)`, row by row, and the last layer computes little else.
            output_attentions: Whether to return the attention probabilities, which are computed eagerly whatever
                the attention implementation; `None` takes `config.output_attentions`.
            output_hidden_states: Whether to return all layers; `None` takes `config.output_hidden_states`.

        Returns:
            `last_hidden_state` `(batch, tokens, hidden_size)`; `pooler_output` `(batch or sequences, hidden_size)`;
            `hidden_states`, `depth + 1` tensors, the first of which enters the first layer; `attentions`, `depth`
            tensors `(batch or sequences, heads, tokens, tokens)`.

        Raises:
            ValueError: If an argument has the wrong shape, dtype or range.
        """
        shape = check_inputs(input_ids, inputs_embeds, self.config)
        check_attention_mask(attention_mask, shape)
        check_same_shape("token_type_ids", token_type_ids, shape, "one segment a token")
        if token_type_ids is not None:
            check_range(
                "token_type_ids",
                token_type_ids,
                self.config.type_vocab_size,
                "type_vocab_size",
                "; is the tokenizer this model's?",
            )
        if position_ids is not None and not isinstance(position_ids, torch.Tensor):
            raise ValueError(f"position_ids must be a tensor, got {type(position_ids).__name__}")
        check_same_shape("output_mask", output_mask, shape, "one value a token")
        if output_mask is not None and output_mask.dtype != torch.bool:
            raise ValueError(f"output_mask must be bool, got {output_mask.dtype}")
        packed = packed_row(shape, attention_mask, position_ids, cu_seq_lens_q)
        first_tokens = first_real_tokens(attention_mask)
        position_ids = self._positions(shape, position_ids, packed, first_tokens)
        unpadded = None if packed is not None else self._without_padding(attention_mask)
        asked_of_rows = output_mask
        if unpadded is not None:
            packed, position_ids = unpadded, unpadded.pack(position_ids)
            input_ids, inputs_embeds, token_type_ids, output_mask = (
                None if values is None else unpadded.pack(values)
                for values in (input_ids, inputs_embeds, token_type_ids, output_mask)
            )
        embeddings = self._embed(input_ids, inputs_embeds, token_type_ids, position_ids)
        starts = packed.first_tokens if packed is not None else _row_starts(embeddings, first_tokens)
        kept = None if output_mask is None else KeptTokens(output_mask, starts)
        mask = attention_mask if packed is None else packed.mask
        hidden_states, layers, attentions = self._encode(
            embeddings, mask, packed, output_attentions, output_hidden_states, kept
        )
        pooler_output = None
        if self.pooler is not None:
            first = hidden_states.flatten(0, 1)[starts] if kept is None else kept.starts(hidden_states)
            if unpadded is not None:
                first = first.masked_fill((unpadded.lengths == 0)[:, None], 0)
            pooler_output = torch.tanh(self.pooler(first))
        if kept is not None:
            hidden_states = kept.asked(hidden_states)
            if unpadded is not None and asked_of_rows is not None:
                # of padding, too, a vector may have been asked for; it is zero
                found = unpadded.mask[asked_of_rows].nonzero().flatten()
                asked = hidden_states.new_zeros(int(asked_of_rows.sum()), hidden_states.shape[-1])
                hidden_states = asked.index_put((found,), hidden_states)
        elif unpadded is not None:
            hidden_states = unpadded.pad(hidden_states)
        if unpadded is not None and layers is not None:
            layers = tuple(map(unpadded.pad, layers))
        return BaseModelOutputWithPooling(hidden_states, pooler_output, layers, attentions)

    def _positions(
        self,
        shape: tuple[int, int],
        position_ids: torch.Tensor | None,
        packed: PackedSequences | None,
        first_tokens: torch.Tensor | None,
    ) -> torch.Tensor:
        """`(batch, tokens)` positions, checked against the table."""
        if position_ids is None and packed is not None:
            position_ids = packed.columns[None]
        elif position_ids is None:
            position_ids = torch.arange(shape[1], device=self.device)[None]
            if first_tokens is not None:
                position_ids = (position_ids - first_tokens[:, None]).clamp(min=0)
        if position_ids.shape not in ((1, shape[1]), shape):
            raise ValueError(f"position_ids must be of shape {(1, shape[1])} or {shape}, got {position_ids.shape}")
        longest = shape[1] if packed is None else packed.length
        if longest > self.config.max_position_embeddings:
            raise ValueError(
                f"the longest sequence may have max_position_embeddings={self.config.max_position_embeddings} tokens, "
                f"got {longest}: cut the text (truncation=True) or set max_length in the tokenizer"
            )
        check_range("position_ids", position_ids, self.config.max_position_embeddings, "max_position_embeddings")
        return position_ids.expand(shape)

    def _without_padding(self, attention_mask: torch.Tensor | None) -> PackedSequences | None:
        """Where the real tokens of a padded batch are, if the padding is not to be computed."""
        if not self.config.padding_free or attention_mask is None or attention_mask.dim() != 2:
            return None
        if is_exporting():
            raise ValueError("torch.export needs padded batches: no cu_seq_lens_q, and padding_free=False")
        return PackedSequences.from_mask(attention_mask) if bool(attention_mask.any()) else None

    def _embed(
        self,
        input_ids: torch.Tensor | None,
        inputs_embeds: torch.Tensor | None,
        token_type_ids: torch.Tensor | None,
        position_ids: torch.Tensor,
    ) -> torch.Tensor:
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(position_ids)
        embeddings = self.embeddings(input_ids, inputs_embeds, token_type_ids, position_ids)
        return embeddings if self.embedding_projection is None else self.embedding_projection(embeddings)

    def _encode(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None,
        packed: PackedSequences | None,
        output_attentions: bool | None,
        output_hidden_states: bool | None,
        kept: KeptTokens | None,
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...] | None, tuple[torch.Tensor, ...] | None]:
        """The output, `(1, kept, hidden_size)` with kept tokens, all layers and the attentions.

        The mask is that of the padded batch.
        """
        if output_attentions is None:
            output_attentions = self.config.output_attentions
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        mask = None
        implementation = "eager" if output_attentions else self.config._attn_implementation
        if not takes_one_by_one(packed, hidden_states, implementation):
            size = hidden_states.shape[:2] if packed is None else (packed.batch_size, packed.length)
            mask = self._prepared_mask(hidden_states.new_empty(*size, 0), attention_mask, output_attentions)
        layers, attentions = [hidden_states], []
        for layer, (attention, ffn) in zip(self.layers, self.config.layer_blocks, strict=True):
            # what nobody asks for need not go through the last feed-forward block
            is_last = layer is self.layers[-1]
            hidden_states, probabilities = layer(
                hidden_states,
                self.attention_blocks[attention],
                self.ffn_blocks[ffn],
                mask,
                packed,
                output_attentions,
                kept.indices if is_last and kept is not None and not output_hidden_states else None,
            )
            if output_hidden_states:
                layers.append(hidden_states)
            if output_attentions:
                attentions.append(probabilities)
        if self.final_layer_norm is not None:
            hidden_states = layers[-1] = self.final_layer_norm(hidden_states)
        if kept is not None and output_hidden_states:
            hidden_states = hidden_states.flatten(0, 1)[kept.indices][None]
        return (
            hidden_states,
            tuple(layers) if output_hidden_states else None,
            tuple(attentions) if output_attentions else None,
        )

    def _prepared_mask(
        self, size_of: torch.Tensor, attention_mask: torch.Tensor | None, output_attentions: bool
    ) -> Any:
        """The mask in the form that the attention implementation reads, or the eager one for its probabilities."""
        if not output_attentions or self.config._attn_implementation == "eager":
            return create_bidirectional_mask(config=self.config, inputs_embeds=size_of, attention_mask=attention_mask)
        if attention_mask is None or attention_mask.dim() == 4:
            return attention_mask
        return attention_mask[:, None, None, :].bool()


def _row_starts(embeddings: torch.Tensor, first_tokens: torch.Tensor | None) -> torch.Tensor:
    """`(batch,)` int64, each row's first real token, counted row by row."""
    rows = torch.arange(embeddings.shape[0], device=embeddings.device) * embeddings.shape[1]
    return rows if first_tokens is None else rows + first_tokens


class LineageAlbertForPreTraining(LineageAlbertPreTrainedModel):
    """Masked-LM and sentence heads, as in pretraining."""

    accepts_loss_kwargs = False  # the two losses have different counts, so that Trainer is to average its batches
    _tied_weights_keys: ClassVar[dict[str, str]] = {
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    }

    def __init__(self, config: LineageAlbertConfig):
        super().__init__(config)
        has_sentence_head = config.sentence_objective != "none"
        self.albert = LineageAlbertModel(config, add_pooling_layer=has_sentence_head)
        self.predictions = LineageAlbertPredictionHead(config)
        self.sentence_classifier = nn.Linear(config.hidden_size, 2) if has_sentence_head else None
        self.post_init()

    def get_output_embeddings(self) -> nn.Linear:
        """The last layer of the masked-LM head."""
        return self.predictions.decoder

    def set_output_embeddings(self, value: nn.Linear) -> None:
        """Replaces the last layer of the masked-LM head."""
        self.predictions.decoder = value
        # of its own if nothing is tied, because of two names of one tensor only one is saved
        tied = self.config.tie_word_embeddings
        self.predictions.bias = value.bias if tied else nn.Parameter(value.bias.detach().clone())

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        sentence_order_label: torch.Tensor | None = None,
        next_sentence_label: torch.Tensor | None = None,
        sparse_prediction: bool | None = None,
        **kwargs,
    ) -> LineageAlbertForPreTrainingOutput:
        """Computes both heads, and the loss of each whose labels are given.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds: As in `LineageAlbertModel`.
            labels: `(batch, tokens)` int64, the original id of a predicted token, else -100.
            sentence_order_label: `(batch,)` int64, with `sentence_objective="sop"`: 0 for the order of the document, 1
                for swapped. Of packed sequences, one each.
            next_sentence_label: `(batch,)` int64, with `sentence_objective="nsp"`: 0 if the second part follows the
                first, 1 if it is from elsewhere.
            sparse_prediction: Whether, where there are labels, the masked-LM head runs on labelled positions only;
                `None` takes `config.sparse_prediction` in training and `False` in evaluation.
            **kwargs: The other arguments of `LineageAlbertModel`.

        Raises:
            ValueError: As in `LineageAlbertModel`; or if labels are out of range or belong to another objective.
        """
        sentence_labels = self._sentence_labels(sentence_order_label, next_sentence_label)
        outputs = self.albert(
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, return_dict=True,
            output_mask=predicted_tokens(self, input_ids, inputs_embeds, labels, sparse_prediction), **kwargs,
        )  # fmt: skip
        logits, masked_lm_loss = predict(self, outputs.last_hidden_state, labels)
        sentence_logits = sentence_loss = None
        if self.sentence_classifier is not None:
            sentence_logits = self.sentence_classifier(outputs.pooler_output)
            if sentence_labels is not None:
                name, values = sentence_labels
                values = values.flatten() if isinstance(values, torch.Tensor) else values
                check_labels(name, values, (len(sentence_logits),), 2, "one label a pair")
                sentence_loss = prediction_loss(sentence_logits, values)
        losses = [loss for loss in (masked_lm_loss, sentence_loss) if loss is not None]
        total = torch.stack(losses).sum() if losses else None
        return LineageAlbertForPreTrainingOutput(
            loss=total,
            prediction_loss=masked_lm_loss,
            sentence_loss=sentence_loss,
            prediction_logits=logits,
            sentence_logits=sentence_logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    def _sentence_labels(
        self, sentence_order_label: torch.Tensor | None, next_sentence_label: torch.Tensor | None
    ) -> tuple[str, torch.Tensor] | None:
        """Name and values of the labels of this model's objective."""
        given = {
            "sop": ("sentence_order_label", sentence_order_label),
            "nsp": ("next_sentence_label", next_sentence_label),
        }
        objective = self.config.sentence_objective
        for other, (name, values) in given.items():
            if values is not None and other != objective:
                raise ValueError(f"{name} is for sentence_objective={other!r}, this model has {objective!r}")
        name, values = given.get(objective, ("", None))
        return None if values is None else (name, values)


class LineageAlbertForMaskedLM(LineageAlbertPreTrainedModel):
    """Masked-LM head alone."""

    accepts_loss_kwargs = True
    _tied_weights_keys: ClassVar[dict[str, str]] = LineageAlbertForPreTraining._tied_weights_keys

    def __init__(self, config: LineageAlbertConfig):
        super().__init__(config)
        self.albert = LineageAlbertModel(config, add_pooling_layer=False)
        self.predictions = LineageAlbertPredictionHead(config)
        self.post_init()

    get_output_embeddings = LineageAlbertForPreTraining.get_output_embeddings
    set_output_embeddings = LineageAlbertForPreTraining.set_output_embeddings

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        sparse_prediction: bool | None = None,
        **kwargs,
    ) -> MaskedLMOutput:
        """Computes the scores of the vocabulary.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds: As in `LineageAlbertModel`.
            labels: `(batch, tokens)` int64, the original id of a predicted token, else -100.
            num_items_in_batch: Predicted tokens that the loss is divided by, those of all accumulated batches; Trainer
                gives it.
            sparse_prediction: As in `LineageAlbertForPreTraining`.
            **kwargs: The other arguments of `LineageAlbertModel`.

        Returns:
            `loss` and `logits`, which are `(batch, tokens, vocab_size)`, but with sparse prediction
            `(labelled positions, vocab_size)`.

        Raises:
            ValueError: As in `LineageAlbertModel`; or if labels are out of range.
        """
        outputs = self.albert(
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, return_dict=True,
            output_mask=predicted_tokens(self, input_ids, inputs_embeds, labels, sparse_prediction), **kwargs,
        )  # fmt: skip
        logits, loss = predict(self, outputs.last_hidden_state, labels, num_items_in_batch)
        return MaskedLMOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


def predicted_tokens(
    model: LineageAlbertForPreTraining | LineageAlbertForMaskedLM,
    input_ids: torch.Tensor | None,
    inputs_embeds: torch.Tensor | None,
    labels: torch.Tensor | None,
    sparse_prediction: bool | None,
) -> torch.Tensor | None:
    """`(batch, tokens)` bool, true at the labelled positions; `None` if all positions are to have logits."""
    if sparse_prediction is None:
        sparse_prediction = model.training and model.config.sparse_prediction
    if not sparse_prediction or labels is None:
        return None
    inputs = input_ids if inputs_embeds is None else inputs_embeds
    if inputs is not None:
        check_same_shape("labels", labels, (inputs.shape[0], inputs.shape[1]), "one label a token")
    return labels != IGNORED


def predict(
    model: LineageAlbertForPreTraining | LineageAlbertForMaskedLM,
    hidden_states: torch.Tensor,
    labels: torch.Tensor | None,
    num_items_in_batch: torch.Tensor | int | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The masked-LM logits of all positions, or of the labelled ones where there are no others, and the loss."""
    logits = model.predictions(hidden_states)
    if labels is None:
        return logits, None
    if hidden_states.dim() == 2:
        labels = labels[labels != IGNORED]
    check_labels("labels", labels, logits.shape[:-1], model.config.vocab_size, "one label a token")
    return logits, prediction_loss(logits, labels, num_items_in_batch)


__all__ = [
    "LineageAlbertForMaskedLM",
    "LineageAlbertForPreTraining",
    "LineageAlbertForPreTrainingOutput",
    "LineageAlbertModel",
    "LineageAlbertPreTrainedModel",
]
