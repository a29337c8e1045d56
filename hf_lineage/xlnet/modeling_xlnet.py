"""XLNet-style models.

Yang et al. 2019, "XLNet: Generalized Autoregressive Pretraining for Language Understanding"
(https://arxiv.org/abs/1906.08237).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers import initialization as init
from transformers.utils import ModelOutput, can_return_tuple

from .attention_xlnet import RelativeLayout
from .cache_xlnet import LineageXLNetCache
from .checks_xlnet import check_input_ids
from .configuration_xlnet import LineageXLNetConfig
from .conversion_xlnet import loaded_from_transformers, to_transformers
from .generation_xlnet import LineageXLNetGenerationMixin
from .heads_xlnet import IGNORED, LineageXLNetNextSentence, token_loss
from .layers_xlnet import LayerContext, LineageXLNetLayer, LineageXLNetRelativeAttention
from .loading_xlnet import load_checked
from .masks_xlnet import Sizes, check_shape, content_keys, padding_mask, real_tokens, rows_of, visible_keys
from .permutation_xlnet import perm_mask_of_ranks
from .positions_xlnet import directed, relative_positions
from .projection_xlnet import project
from .scoring_xlnet import Order, score_tokens

if TYPE_CHECKING:
    # transformers finds the files of a model by the imports in them: where this one goes as custom code, so do those
    from .modeling_tasks_xlnet import LineageXLNetForSequenceClassification  # noqa: F401


@dataclass
class LineageXLNetModelOutput(ModelOutput):
    """Output of `LineageXLNetModel`.

    Args:
        last_hidden_state: `(batch, predicted, d_model)`, the query stream, if there is a `target_mapping`; else
            `(batch, tokens, d_model)`, the content stream.
        mems: With `use_mems`, for each layer `(batch, memory, d_model)`, its input at the tokens to remember; with
            `use_cache` the cache of generation.
        mems_mask: `(batch, memory)` bool, true where the memory is no padding.
        hidden_states: With `output_hidden_states`, the input of each layer and the output of the last,
            `(batch, tokens, d_model)`; with two streams content and query stream in turn.
        attentions: With `output_attentions`, for each layer `(batch, heads, tokens, memory + tokens)`; with two
            streams a pair, the second `(batch, heads, predicted, memory + tokens)`.
    """

    last_hidden_state: torch.Tensor | None = None
    mems: tuple[torch.Tensor, ...] | LineageXLNetCache | None = None
    mems_mask: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None


@dataclass
class LineageXLNetLMHeadModelOutput(ModelOutput):
    """Output of `LineageXLNetLMHeadModel`.

    Args:
        loss: Cross-entropy in nats a predicted token.
        logits: `(batch, predicted or tokens, vocab_size)`.
        mems, mems_mask, hidden_states, attentions: As in `LineageXLNetModelOutput`.
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    mems: tuple[torch.Tensor, ...] | LineageXLNetCache | None = None
    mems_mask: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None


@dataclass
class LineageXLNetForPreTrainingOutput(ModelOutput):
    """Output of `LineageXLNetForPreTraining`.

    Args:
        loss: Sum of the losses whose labels are given.
        logits: `(batch, predicted or tokens, vocab_size)`; in training with labels `(predicted, vocab_size)`, of those
            alone that have a label.
        next_sentence_logits: `(batch, 2)` with `config.next_sentence`, of the second passage following the first and
            not.
        prediction_loss: Cross-entropy in nats a predicted token.
        next_sentence_loss: Cross-entropy in nats a row.
        mems, mems_mask, hidden_states, attentions: As in `LineageXLNetModelOutput`.
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    next_sentence_logits: torch.Tensor | None = None
    prediction_loss: torch.Tensor | None = None
    next_sentence_loss: torch.Tensor | None = None
    mems: tuple[torch.Tensor, ...] | None = None
    mems_mask: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None


class LineageXLNetPreTrainedModel(PreTrainedModel):
    """Initialization and loading, common to all models of the family."""

    config: LineageXLNetConfig
    config_class = LineageXLNetConfig
    base_model_prefix = "transformer"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _no_split_modules: ClassVar[list[str]] = ["LineageXLNetLayer"]

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args, **kwargs) -> Any:
        """As in `PreTrainedModel`; a checkpoint of transformers' XLNet is translated as it is read.

        Damaged weights and those of another architecture are refused (`ValueError`).
        """
        load_own = super().from_pretrained

        def load(source: Any, *args, **kwargs) -> Any:
            return loaded_from_transformers(cls, source, kwargs) or load_own(source, *args, **kwargs)

        return load_checked(load, pretrained_model_name_or_path, *args, **kwargs)

    def to_transformers(self) -> PreTrainedModel:
        """Returns the same model as a class of transformers, with weights of its own."""
        return to_transformers(self)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initializes as the original does: all normal, biases of linear layers zero."""
        std = self.config.initializer_range
        if isinstance(module, (nn.Linear, nn.Embedding)):
            init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, LineageXLNetRelativeAttention):
            for parameter in (module.r_w_bias, module.r_r_bias, module.r_s_bias, module.seg_embed):
                init.normal_(parameter, std=std)
        elif isinstance(module, LineageXLNetModel):
            init.normal_(module.mask_emb, std=std)


class LineageXLNetModel(LineageXLNetPreTrainedModel):
    """The two-stream transformer with memory."""

    def __init__(self, config: LineageXLNetConfig):
        super().__init__(config)
        self.word_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.mask_emb = nn.Parameter(torch.zeros(1, 1, config.d_model))
        self.layer = nn.ModuleList(LineageXLNetLayer(config, index) for index in range(config.n_layer))
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The word table, `(vocab_size, d_model)`."""
        return self.word_embedding

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replaces the word table."""
        self.word_embedding = value

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        mems: Sequence[torch.Tensor] | LineageXLNetCache | None = None,
        perm_mask: torch.Tensor | None = None,
        target_mapping: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        input_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        use_mems: bool | None = None,
        mems_mask: torch.Tensor | None = None,
        directions: torch.Tensor | None = None,
        use_cache: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> LineageXLNetModelOutput:
        """Computes a vector for each token, or with a `target_mapping` for each predicted position.

        Args:
            input_ids: `(batch, tokens)` int64 or int32 in `[0, vocab_size)`.
            attention_mask: `(batch, tokens)`, 0 for padding, or `(batch, memory + tokens)`; `(batch, tokens, tokens)`
                or with the memory, 0 where a token (row) cannot see another; or four dimensions with heads in between,
                the same if int or bool, if floating point 0 = seen and negative = not.
            mems: For each layer `(batch, memory, d_model)`, `mems` of an earlier call; or the cache of generation,
                which is changed.
            perm_mask: `(batch, tokens, tokens)`, 1 where a token (row) cannot see another; the content stream sees
                itself in any case. `permutation_xlnet.perm_mask_of_order` makes it from an order.
            target_mapping: Positions to predict, which makes the query stream: `(batch, predicted)` int64, -1 for
                none, `tokens` for the one after the last; or `(batch, predicted, tokens)` one-hot, zeros for none.
            token_type_ids: `(batch, tokens)`, segments; only whether two tokens are of the same one matters. Memory is
                of segment 0.
            input_mask: `(batch, tokens)`, 1 for padding; in place of `attention_mask`.
            inputs_embeds: `(batch, tokens, d_model)` word vectors, in place of `input_ids`.
            use_mems: Whether to return the memory; `None` takes `config.use_mems_train` or `config.use_mems_eval`.
            mems_mask: `(batch, memory)`, 0 where the memory is padding; `mems_mask` of the earlier call.
            directions: `(batch,)`, 1 for text from left to right, -1 for text that is reversed; `None` is all 1, or
                with `config.bi_data` 1 in the first and -1 in the second half of the batch.
            use_cache: Whether to return `mems` as the cache of generation, which holds keys and values of all tokens
                but the last, that is to be computed again with the next.
            output_attentions: Whether to return the probabilities, which are computed eagerly; `None` takes
                `config.output_attentions`.
            output_hidden_states: Whether to return all layers; `None` takes `config.output_hidden_states`.

        Raises:
            ValueError: If an argument has the wrong shape or range, or two contradict each other.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give exactly one of input_ids and inputs_embeds")
        if input_ids is not None:
            check_input_ids(input_ids, self.config.vocab_size)
        words = self.word_embedding(input_ids) if inputs_embeds is None else inputs_embeds
        cache = mems if isinstance(mems, LineageXLNetCache) else (LineageXLNetCache() if use_cache else None)
        memories = None if isinstance(mems, LineageXLNetCache) else mems
        past = 0 if cache is None else cache.get_seq_length()
        sizes = Sizes(words.shape[0], words.shape[1], past if memories is None else memories[0].shape[1])
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        if use_mems is None:
            use_mems = self.config.use_mems_train if self.training else self.config.use_mems_eval
        use_mems = use_mems and cache is None

        real = padding_mask(attention_mask, input_mask, cache.mask if cache and past else mems_mask, sizes)
        positions = predicted_positions(target_mapping, sizes)
        context = self._context(
            words, sizes, real, attention_mask, perm_mask, token_type_ids, positions, directions, cache,
            output_attentions or self.config._attn_implementation == "eager",
        )  # fmt: skip
        content: torch.Tensor | None = self.dropout(words)
        query = None if positions is None else self.dropout(self.mask_emb.expand(*positions.shape, -1))
        new_mems: list[torch.Tensor] = []
        states: list[torch.Tensor] = []
        attentions: list[Any] = []
        for index, layer in enumerate(self.layer):
            memory = None if memories is None else memories[index]
            if use_mems:
                new_mems.append(self._remembered(content, memory))
            if output_hidden_states:
                states.extend(stream for stream in (content, query) if stream is not None)
            # nothing reads the content stream of the last layer where there is a query stream
            last = query is not None and index == len(self.layer) - 1 and not output_hidden_states
            content, query, probabilities = layer(content, query, memory, context, last and not output_attentions)
            if output_attentions:
                attentions.append(probabilities if query is not None else probabilities[0])
        if output_hidden_states:
            states.extend(stream for stream in (content, query) if stream is not None)
        return LineageXLNetModelOutput(
            last_hidden_state=self.dropout(content if query is None else query),
            mems=cache if cache is not None else tuple(new_mems) if use_mems else None,
            mems_mask=self._remembered_mask(real, sizes) if use_mems else None,
            hidden_states=tuple(states) if output_hidden_states else None,
            attentions=tuple(attentions) if output_attentions else None,
        )

    def _context(
        self,
        words: torch.Tensor,
        sizes: Sizes,
        real: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
        perm_mask: torch.Tensor | None,
        token_type_ids: torch.Tensor | None,
        positions: torch.Tensor | None,
        directions: torch.Tensor | None,
        cache: LineageXLNetCache | None,
        eager: bool,
    ) -> LayerContext:
        """What the layers share: who sees whom, how far away, in which segment."""
        config = self.config
        causal = config.attn_type == "uni"
        visible = visible_keys(sizes, real, attention_mask, perm_mask, causal, config.same_length, words.device)
        segments = self._segments(token_type_ids, sizes, cache)
        if cache is not None:
            cache.see(
                words.new_ones(sizes.batch, sizes.keys, dtype=torch.bool) if real is None else real,
                segments,
                sizes.memory,
            )
        other_segment = None
        if segments is not None:
            other_segment = (segments[:, None, -sizes.tokens :, None] != segments[:, None, None]).contiguous()
        content = RelativeLayout(sizes.tokens, content_keys(visible, sizes), other_segment)
        query = None
        if positions is not None:
            if visible is None:
                visible = torch.ones(1, 1, 1, sizes.keys, dtype=torch.bool, device=words.device)
            query = RelativeLayout(
                sizes.tokens,
                rows_of(visible, positions, False),
                None if other_segment is None else rows_of(other_segment, positions, False),
                positions.clamp(min=0),
            )
        row_directions = self._directions(directions, sizes, words.device)
        distances: tuple[int, int] | None = (sizes.tokens, sizes.keys)
        caches_positions, sinusoids = False, None
        if cache is not None and row_directions is None and not self.training:
            caches_positions, distances = True, cache.missing_distances(sizes.tokens, sizes.keys)
        if distances is not None:
            sinusoids = relative_positions(distances[0], distances[1], config.d_model, config.clamp_len, words.device)
            sinusoids = self.dropout(directed(sinusoids.to(words.dtype), row_directions))
        return LayerContext(sinusoids, content, query, cache, caches_positions, eager)

    def _segments(
        self, token_type_ids: torch.Tensor | None, sizes: Sizes, cache: LineageXLNetCache | None
    ) -> torch.Tensor | None:
        """`(batch, memory + tokens)` segments."""
        if token_type_ids is None:
            return None
        check_shape("token_type_ids", token_type_ids, [(sizes.batch, sizes.tokens)])
        earlier = None if cache is None else cache.token_type_ids
        if earlier is None:
            earlier = token_type_ids.new_zeros(sizes.batch, sizes.memory)
        return torch.cat([earlier, token_type_ids], 1)

    def _directions(self, directions: torch.Tensor | None, sizes: Sizes, device: torch.device) -> torch.Tensor | None:
        if directions is not None:
            check_shape("directions", directions, [(sizes.batch,)])
            if not torch.compiler.is_compiling() and not bool((directions.abs() == 1).all()):
                raise ValueError(f"directions must be 1 or -1, got {directions.tolist()}")
            return directions
        if not self.config.bi_data:
            return None
        if sizes.batch % 2:
            raise ValueError(
                f"bi_data=True reverses the second half of a batch, so it must be even, got {sizes.batch}; give "
                "directions, one a row, for other batches"
            )
        return torch.ones(sizes.batch, device=device).index_fill(
            0, torch.arange(sizes.batch // 2, sizes.batch, device=device), -1.0
        )

    def _remembered(self, content: torch.Tensor | None, memory: torch.Tensor | None) -> torch.Tensor:
        """A layer's input at the tokens that the next segment remembers."""
        assert content is not None  # it ends only after the last layer
        content = content[:, : self.config.reuse_len or None]
        if memory is not None:
            content = torch.cat([memory, content], 1)
        return content[:, -(self.config.mem_len or 0) :].detach()

    def _remembered_mask(self, real: torch.Tensor | None, sizes: Sizes) -> torch.Tensor:
        """Which of them are no padding."""
        if real is None:
            real = torch.ones(sizes.batch, sizes.keys, dtype=torch.bool, device=self.device)
        tokens = sizes.memory + min(self.config.reuse_len or sizes.tokens, sizes.tokens)
        return real[:, :tokens][:, -(self.config.mem_len or 0) :]


def predicted_positions(target_mapping: torch.Tensor | None, sizes: Sizes) -> torch.Tensor | None:
    """`(batch, predicted)` int64 positions, -1 for none, of either form of `target_mapping`.

    Raises:
        ValueError: If it has the wrong shape, or positions outside the text, or rows that are not one-hot.
    """
    if target_mapping is None:
        return None
    if target_mapping.dim() == 2:
        check_shape("target_mapping", target_mapping, [(sizes.batch, target_mapping.shape[1])])
        if target_mapping.is_floating_point() or target_mapping.dtype == torch.bool:
            raise ValueError(f"a target_mapping of positions must be integers, got {target_mapping.dtype}")
        if not torch.compiler.is_compiling() and target_mapping.numel():
            smallest, largest = (int(value) for value in torch.aminmax(target_mapping))
            if smallest < -1 or largest > sizes.tokens:
                raise ValueError(
                    f"positions of target_mapping must be in [-1, {sizes.tokens}], got {smallest}..{largest}"
                )
        return target_mapping.long()
    check_shape("target_mapping", target_mapping, [(sizes.batch, target_mapping.shape[1], sizes.tokens)])
    hot = target_mapping != 0
    count = hot.sum(-1)
    if not torch.compiler.is_compiling() and not bool(((count <= 1) & (target_mapping.sum(-1) == count)).all()):
        raise ValueError("rows of target_mapping must be one-hot or all 0")
    return torch.where(count == 0, -1, hot.int().argmax(-1))


class LineageXLNetLMHeadModel(LineageXLNetPreTrainedModel, LineageXLNetGenerationMixin):
    """Language model."""

    accepts_loss_kwargs = True
    _tied_weights_keys: ClassVar[dict[str, str]] = {"lm_loss.weight": "transformer.word_embedding.weight"}

    def __init__(self, config: LineageXLNetConfig):
        super().__init__(config)
        self.transformer = LineageXLNetModel(config)
        self.lm_loss = nn.Linear(config.d_model, config.vocab_size)
        self.post_init()

    def get_output_embeddings(self) -> nn.Linear:
        """The last layer."""
        return self.lm_loss

    def set_output_embeddings(self, value: nn.Linear) -> None:
        """Replaces the last layer."""
        self.lm_loss = value

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        mems: Sequence[torch.Tensor] | LineageXLNetCache | None = None,
        perm_mask: torch.Tensor | None = None,
        target_mapping: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        input_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs,
    ) -> LineageXLNetLMHeadModelOutput:
        """Computes the scores of the vocabulary.

        Args:
            input_ids, attention_mask, mems, perm_mask, target_mapping, token_type_ids, input_mask, inputs_embeds: As
                in `LineageXLNetModel`.
            labels: `(batch, predicted)` int64, the token at each position of `target_mapping`, -100 where none is
                predicted. Without a `target_mapping`, `(batch, tokens)`: each token is predicted from those before it,
                and `logits[:, i]` are of token `i`, so that `labels` are the `input_ids`, as for any causal language
                model. (transformers' XLNet gives the loss of a stream that has seen the token itself.)
            num_items_in_batch: Predicted tokens that the loss is divided by, those of all accumulated batches; Trainer
                gives it.
            **kwargs: The other arguments of `LineageXLNetModel`.
        """
        if labels is not None and target_mapping is None:
            perm_mask, target_mapping = self._left_to_right(labels, perm_mask)
        outputs = self.transformer(
            input_ids, attention_mask, mems, perm_mask, target_mapping, token_type_ids, input_mask, inputs_embeds,
            return_dict=True, **kwargs,
        )  # fmt: skip
        logits = project(self.lm_loss, outputs.last_hidden_state)
        loss = None
        if labels is not None:
            check_shape("labels", labels, [tuple(logits.shape[:2])])
            loss = token_loss(logits, labels, num_items_in_batch)
        return LineageXLNetLMHeadModelOutput(
            loss=loss,
            logits=logits,
            mems=outputs.mems,
            mems_mask=outputs.mems_mask,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    def score(
        self,
        texts: str | Sequence[str] | Sequence[torch.Tensor],
        tokenizer: PreTrainedTokenizerBase | None = None,
        order: Order = "left_to_right",
        num_orders: int = 1,
        generator: torch.Generator | None = None,
    ) -> torch.Tensor:
        """The log-probability of texts under an order of their tokens.

        Args:
            texts: One text or several, which need a tokenizer; or `(tokens,)` ids each.
            tokenizer: Cuts texts into tokens; special tokens are not added.
            order: `"left_to_right"`; `"random"`, drawn for each text; or one order, a permutation of the tokens'
                places counted from 0.
            num_orders: How many orders are drawn with `"random"`.
            generator: Source of the orders.

        Returns:
            `(texts, num_orders)` float32, nats, the sum over all tokens. The mean over orders is what the permutation
            objective maximizes.

        Raises:
            ValueError: If texts come without a tokenizer, a text has no tokens, or an order does not fit.
        """
        given: list[str | torch.Tensor] = [texts] if isinstance(texts, str) else [*texts]
        if any(isinstance(text, str) for text in given) and tokenizer is None:
            raise ValueError("texts need a tokenizer; give one, or rows of ids")
        rows = [
            torch.tensor(tokenizer(text, add_special_tokens=False)["input_ids"], dtype=torch.long)
            if tokenizer is not None and isinstance(text, str)
            else torch.as_tensor(text)
            for text in given
        ]
        was_training = self.training
        try:
            return score_tokens(self.eval(), rows, order, num_orders, generator)
        finally:
            self.train(was_training)

    def _left_to_right(
        self, labels: torch.Tensor, perm_mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if perm_mask is not None:
            raise ValueError("labels with a perm_mask need a target_mapping, which says what is predicted")
        ranks = torch.arange(labels.shape[1], device=labels.device).expand_as(labels)
        return perm_mask_of_ranks(ranks), ranks


class LineageXLNetForPreTraining(LineageXLNetPreTrainedModel):
    """Permutation language model in training; two streams, and memory from segment to segment."""

    accepts_loss_kwargs = True
    _tied_weights_keys: ClassVar[dict[str, str]] = LineageXLNetLMHeadModel._tied_weights_keys

    def __init__(self, config: LineageXLNetConfig):
        super().__init__(config)
        self.transformer = LineageXLNetModel(config)
        self.lm_loss = nn.Linear(config.d_model, config.vocab_size)
        self.next_sentence = LineageXLNetNextSentence(config) if config.next_sentence else None
        self.post_init()

    get_output_embeddings = LineageXLNetLMHeadModel.get_output_embeddings
    set_output_embeddings = LineageXLNetLMHeadModel.set_output_embeddings

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        mems: Sequence[torch.Tensor] | None = None,
        perm_mask: torch.Tensor | None = None,
        target_mapping: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        input_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        next_sentence_label: torch.Tensor | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> LineageXLNetForPreTrainingOutput:
        """Computes the scores of the vocabulary at the predicted positions.

        Args:
            input_ids, attention_mask, mems, perm_mask, target_mapping, token_type_ids, input_mask, inputs_embeds,
            output_hidden_states: As in `LineageXLNetModel`. Without a `target_mapping` there is no query stream and
                `labels` are predicted by the content stream, which is for objectives that hide them otherwise: behind
                mask tokens, or behind a causal `perm_mask` with the labels moved by one.
            labels: `(batch, predicted)` int64, the token at each position of `target_mapping`, or `(batch, tokens)`
                without one; -100 where none is predicted.
            next_sentence_label: `(batch,)` int64, 0 where the second passage follows the first, 1 where it does not,
                -100 for neither; with `config.next_sentence`.
            num_items_in_batch: Predicted tokens that the loss is divided by, those of all accumulated batches; Trainer
                gives it.
            **kwargs: The other arguments of `LineageXLNetModel`.

        Raises:
            ValueError: As `LineageXLNetModel`; if labels have the wrong shape; or if there is a `next_sentence_label`,
                but no such head.
        """
        if next_sentence_label is not None and self.next_sentence is None:
            raise ValueError("next_sentence_label needs a model with config.next_sentence=True")
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        outputs = self.transformer(
            input_ids, attention_mask, mems, perm_mask, target_mapping, token_type_ids, input_mask, inputs_embeds,
            # the content stream of the last layer is computed only where somebody reads it
            output_hidden_states=output_hidden_states or self.next_sentence is not None,
            return_dict=True, **kwargs,
        )  # fmt: skip
        next_sentence_logits = None
        if self.next_sentence is not None:
            content = outputs.hidden_states[-1 if target_mapping is None else -2]
            next_sentence_logits = self.next_sentence(
                content, real_tokens(attention_mask, input_mask, content.shape[1])
            )
        hidden_states = outputs.last_hidden_state
        if labels is not None:
            check_shape("labels", labels, [tuple(hidden_states.shape[:2])])
        if labels is not None and self.training:
            predicted = labels != IGNORED
            hidden_states, labels = hidden_states[predicted], labels[predicted]
        logits = self.lm_loss(hidden_states)
        prediction_loss = next_sentence_loss = None
        if labels is not None:
            prediction_loss = token_loss(logits, labels, num_items_in_batch)
        if next_sentence_logits is not None and next_sentence_label is not None:
            next_sentence_loss = token_loss(next_sentence_logits, next_sentence_label)
            if labels is not None and num_items_in_batch is not None:
                # of accumulated batches, each has the share that it has in the other loss
                next_sentence_loss = next_sentence_loss * (labels != IGNORED).sum() / num_items_in_batch
        given = [loss for loss in (prediction_loss, next_sentence_loss) if loss is not None]
        return LineageXLNetForPreTrainingOutput(
            loss=torch.stack(given).sum() if given else None,
            logits=logits,
            next_sentence_logits=next_sentence_logits,
            prediction_loss=prediction_loss,
            next_sentence_loss=next_sentence_loss,
            mems=outputs.mems,
            mems_mask=outputs.mems_mask,
            hidden_states=outputs.hidden_states if output_hidden_states else None,
            attentions=outputs.attentions,
        )


__all__ = [
    "LineageXLNetForPreTraining",
    "LineageXLNetForPreTrainingOutput",
    "LineageXLNetLMHeadModel",
    "LineageXLNetLMHeadModelOutput",
    "LineageXLNetModel",
    "LineageXLNetModelOutput",
    "LineageXLNetPreTrainedModel",
]
