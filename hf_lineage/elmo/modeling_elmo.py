"""ELMo models.

Peters et al. 2018, "Deep contextualized word representations" (https://arxiv.org/abs/1802.05365).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers import initialization as init
from transformers.utils import ModelOutput, can_return_tuple

from .character_codes_elmo import END_OF_SENTENCE
from .character_encoder_elmo import ElmoCharacterEncoder, ElmoHighway
from .checks_elmo import (
    check_input_ids,
    check_labels,
    check_states,
    check_token_mask,
    check_token_type_ids,
    refuses_foreign_arguments,
)
from .configuration_elmo import ElmoConfig
from .heads_elmo import mean_cross_entropy
from .loading_elmo import load_checked
from .lstm_elmo import ElmoLstmEncoder, ElmoLstmLayer
from .packing_elmo import PackedSequences, pack
from .scalar_mix_elmo import ElmoScalarMix, layer_statistics
from .scoring_elmo import ElmoScores, score_sentences, top_words
from .softmax_elmo import ElmoTiedSoftmax, word_logits, word_losses, word_softmax
from .task_features_elmo import ElmoTaskFeatures

if TYPE_CHECKING:
    # transformers finds the files of a model by the imports in them: where this one goes as custom code, so do those
    from .modeling_tasks_elmo import ElmoForSequenceClassification  # noqa: F401


@dataclass
class ElmoModelOutput(ModelOutput):
    """Output of `ElmoModel`.

    Args:
        last_hidden_state: `(batch, tokens, hidden_size)`, the (first) scalar mix of the layers, zero at padding.
        hidden_states: With `output_hidden_states`, `num_hidden_layers + 1` tensors of the same shape: the context-free
            token vectors, twice side by side, then each LSTM layer, forward direction before backward.
        final_states: `(batch, num_hidden_layers, 2, hidden_size // 2 + lstm_hidden_size)`, output and cell of each
            LSTM after a row's last step, the forward direction first; to be given as `initial_states` of the next
            batch. `None` where the sentences of pairs were read separately.
        scalar_mixes: With `num_scalar_mixes > 1`, all mixes, `(batch, num_scalar_mixes, tokens, hidden_size)`;
            `last_hidden_state` is the first.
        attention_mask: `(batch, tokens)` int64, the mask of the output; longer than the input's with
            `keep_sentence_boundaries`.
    """

    last_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    final_states: torch.Tensor | None = None
    scalar_mixes: torch.Tensor | None = None
    attention_mask: torch.Tensor | None = None


@dataclass
class ElmoForPreTrainingOutput(ModelOutput):
    """Output of `ElmoForPreTraining`.

    With `symbols` the tokens of a sentence and its two boundaries, `length` of them in the longest sentence:

    Args:
        loss: Mean of `forward_loss` and `backward_loss`; given with labels.
        forward_logits: `(batch, length - 1, vocab_size)`; row `i` predicts symbol `i + 1` from symbols `0..i`. `None`
            with `return_logits=False` or where the softmax is sampled; log-probabilities where it is adaptive.
        backward_logits: `(batch, length - 1, vocab_size)`; row `i` predicts symbol `i` from those behind it; likewise.
        forward_loss: Cross-entropy of the forward direction, in nats a token, mean over all predicted symbols.
            Estimated, and lower than that of all words, where the softmax is sampled.
        backward_loss: The same for the backward direction.
        hidden_states: As in `ElmoModelOutput`.
        final_states: As in `ElmoModelOutput`.
    """

    loss: torch.Tensor | None = None
    forward_logits: torch.Tensor | None = None
    backward_logits: torch.Tensor | None = None
    forward_loss: torch.Tensor | None = None
    backward_loss: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    final_states: torch.Tensor | None = None


class ElmoPreTrainedModel(PreTrainedModel):
    """Initialization and loading, common to all ELMo models."""

    config: ElmoConfig
    config_class = ElmoConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules: ClassVar[list[str]] = ["ElmoCharacterEncoder", "ElmoLstmLayer"]

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args, **kwargs) -> Any:
        """As in `PreTrainedModel`; damaged weights and those of another architecture are refused (`ValueError`)."""
        return load_checked(super().from_pretrained, pretrained_model_name_or_path, *args, **kwargs)

    def _initialize_weights(self, module: nn.Module, is_custom_code: bool = False) -> None:
        """Initializes one module.

        transformers takes a module from outside that has no parameters of its own for loaded already, and would leave
        out the modules that initialize their children. `_init_weights` needs no such care: it writes through
        `transformers.initialization`, which spares what was loaded.
        """
        super()._initialize_weights(module)

    def reset_states(self) -> None:
        """Forgets the states that `config.stateful` carries from batch to batch."""
        self.base_model._carried_states = None

    def freeze_language_model(self) -> None:
        """Keeps the biLM as it is in training; the scalar mix and the heads are still trained."""
        for part in (self.base_model.character_encoder, self.base_model.encoder):
            part.requires_grad_(False)

    def scalar_mix_weights(self) -> list[dict[str, list[float] | float]]:
        """What each scalar mix has learned: `gamma` and the `weights` of the layers, which sum to 1."""
        return [
            {"weights": torch.softmax(mix.weights.detach().float(), 0).tolist(), "gamma": float(mix.gamma.detach())}
            for mix in self.base_model.scalar_mixes
        ]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initializes as bilm-tf does (`bilm/training.py`), the linear layers of the heads as its projections."""
        super()._init_weights(module)
        if isinstance(module, nn.Linear) and module.bias is not None:
            _init_scaled(module)
        elif isinstance(module, nn.AdaptiveLogSoftmaxWithLoss):
            for linear in module.modules():
                if isinstance(linear, nn.Linear):
                    init.normal_(linear.weight, mean=0.0, std=linear.in_features**-0.5)
        elif isinstance(module, ElmoCharacterEncoder):
            for embedding in (module.embedding, module.word_embedding):
                if embedding is not None:
                    if self.config.tie_word_embeddings:  # as a softmax, or its logits would begin too large
                        init.normal_(embedding.weight, mean=0.0, std=embedding.embedding_dim**-0.5)
                    else:
                        init.uniform_(embedding.weight, -1.0, 1.0)
                    if not getattr(embedding.weight, "_is_hf_initialized", False):  # a slice would not know
                        init.zeros_(embedding.weight[0])
            if module.embedding is None:
                return
            width_of_character = self.config.char_embedding_size
            for convolution, (width, _) in zip(module.convolutions, self.config.char_cnn_filters, strict=True):
                if self.config.char_cnn_activation == "relu":
                    init.uniform_(convolution.weight, -0.05, 0.05)
                else:
                    init.normal_(convolution.weight, mean=0.0, std=(width * width_of_character) ** -0.5)
                init.zeros_(convolution.bias)
        elif isinstance(module, ElmoTiedSoftmax):
            init.zeros_(module.word_bias)  # the weights are the input's
        elif isinstance(module, ElmoHighway):
            _init_scaled(module.gate, bias=-2.0)
        elif isinstance(module, ElmoLstmLayer):
            for linear in module.modules():
                if isinstance(linear, nn.Linear):
                    init.xavier_uniform_(linear.weight)
            init.zeros_(module.input_linear.bias)
        elif isinstance(module, ElmoTaskFeatures):
            if module.static_embedding is not None:
                init.zeros_(module.static_embedding)
        elif isinstance(module, nn.LSTM):
            for name, parameter in module.named_parameters():
                (init.xavier_uniform_ if name.startswith("weight") else init.zeros_)(parameter)
        elif isinstance(module, ElmoScalarMix):
            fixed = self.config.scalar_mix_parameters
            init.copy_(module.weights, torch.zeros(len(module.weights)) if fixed is None else torch.tensor(fixed))
            init.ones_(module.gamma)


class ElmoModel(ElmoPreTrainedModel):
    """The bidirectional language model without its softmax, and the scalar mix over its layers.

    Args:
        config: The configuration.
        add_scalar_mix: Whether there is a scalar mix; without it, `last_hidden_state` is the top layer.
    """

    def __init__(self, config: ElmoConfig, add_scalar_mix: bool = True):
        super().__init__(config)
        self.character_encoder = ElmoCharacterEncoder(config)
        self.encoder = ElmoLstmEncoder(config)
        self.scalar_mixes = nn.ModuleList(
            ElmoScalarMix(config) for _ in range(config.num_scalar_mixes if add_scalar_mix else 0)
        )
        self.dropout = nn.Dropout(config.dropout if add_scalar_mix else 0.0)
        self._carried_states: torch.Tensor | None = None
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The character table, `(char_vocab_size, char_embedding_size)`, or that of words where there is none."""
        encoder = self.character_encoder
        embedding = encoder.embedding if self.config.char_embedding_size else encoder.word_embedding
        assert embedding is not None
        return embedding

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replaces the table that `get_input_embeddings` gives."""
        setattr(self.character_encoder, "embedding" if self.config.char_embedding_size else "word_embedding", value)

    @refuses_foreign_arguments
    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        initial_states: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> ElmoModelOutput:
        """Computes a vector for each token.

        Args:
            input_ids: `(batch, tokens, max_characters_per_token)` int64 in `[0, char_vocab_size)`, as `ElmoTokenizer`
                gives them; with `word_vocab_size`, one number more, in `[0, word_vocab_size)`: the word. A token
                of zeros is padding; padding may stand anywhere.
            attention_mask: `(batch, tokens)`, 0 for padding.
            token_type_ids: `(batch, tokens)`, 0 for the first and 1 for the second sentence of a pair; how the two are
                read is `config.pair_encoding`.
            initial_states: `final_states` of an earlier call; zero if `None`.
            output_hidden_states: Whether to return the layers; `None` takes `config.output_hidden_states`.

        Raises:
            ValueError: If an argument has the wrong shape, dtype or range.
        """
        packed, packed_layers, final_states = self.run_language_model(
            input_ids, attention_mask, token_type_ids, initial_states
        )
        layers = tuple(self._restored(layer, packed) for layer in packed_layers)
        mask = packed.mask if self.config.keep_sentence_boundaries else packed.token_mask
        mixes = self._mixed(layers, packed_layers, packed, mask)
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        return ElmoModelOutput(
            last_hidden_state=mixes[0],
            hidden_states=layers if output_hidden_states else None,
            final_states=final_states,
            scalar_mixes=torch.stack(mixes, 1) if len(mixes) > 1 else None,
            attention_mask=mask.long(),
        )

    def run_language_model(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        initial_states: torch.Tensor | None = None,
    ) -> tuple[PackedSequences, list[torch.Tensor], torch.Tensor | None]:
        """Runs character encoder and LSTMs; arguments as in `forward`.

        Returns:
            The packed sequences, `num_hidden_layers + 1` layers `(sequences, length, hidden_size)` that follow their
            layout, sentence boundaries included, and the final states.
        """
        config = self.config
        check_input_ids(input_ids, config)
        check_token_mask("attention_mask", attention_mask, input_ids)
        check_token_type_ids(token_type_ids, input_ids)
        if token_type_ids is not None and not torch.compiler.is_compiling() and not token_type_ids.any():
            token_type_ids = None  # single sentences
        separate = token_type_ids is not None and config.pair_encoding == "separate"
        if separate and (config.stateful or initial_states is not None):
            raise ValueError(
                "states cannot be carried where the sentences of pairs are read separately: give no token_type_ids, "
                "or use pair_encoding='joint'"
            )
        packed = pack(
            input_ids,
            attention_mask,
            token_type_ids,
            config.add_sentence_boundaries,
            separate,
            with_words=config.word_vocab_size > 0,
        )
        token_vectors = self.character_encoder(packed.character_ids)
        states = self._starting_states(initial_states, packed.lengths.shape[0], token_vectors)
        layers, final_states = self.encoder(token_vectors, packed.lengths, states)
        if config.stateful:
            self._carry(final_states)
        return packed, [torch.cat([token_vectors, token_vectors], -1), *layers], None if separate else final_states

    def run_streams(
        self, input_ids: torch.Tensor, backward_input_ids: torch.Tensor, initial_states: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Runs each direction on a text of its own, as it stands: no sentence boundaries are added.

        Args:
            input_ids: `(batch, tokens, max_characters_per_token)`, what the forward direction reads, padded on the
                right with rows of 0.
            backward_input_ids: The same for the backward direction, in the order of its reading, the end first.
            initial_states: As in `forward`.

        Returns:
            The top layer of either direction `(batch, tokens, hidden_size // 2)`, in the order of reading and without
            meaning at padding, and the final states. A row of nothing but padding keeps its state.

        Raises:
            ValueError: If an argument has the wrong shape, dtype or range.
        """
        check_input_ids(input_ids, self.config)
        check_input_ids(backward_input_ids, self.config)
        if len(input_ids) != len(backward_input_ids):
            raise ValueError(
                f"both directions must have the same number of rows, got {len(input_ids)} and "
                f"{len(backward_input_ids)}"
            )
        character_ids = (input_ids.long(), backward_input_ids.long())
        ahead_lengths, back_lengths = ((ids != 0).any(-1).sum(1) for ids in character_ids)
        # in one go, as both read the same words
        vectors = self.character_encoder(torch.cat([ids.flatten(0, 1) for ids in character_ids]))
        ahead, back = vectors.split([ids.shape[0] * ids.shape[1] for ids in character_ids])
        states = self._starting_states(initial_states, len(input_ids), vectors)
        read = (ahead.unflatten(0, input_ids.shape[:2]), back.unflatten(0, backward_input_ids.shape[:2]))
        ahead_layers, back_layers, final_states = self.encoder.run_directions(
            read, (ahead_lengths, back_lengths), states
        )
        if self.config.stateful:
            self._carry(final_states)
        return ahead_layers[-1], back_layers[-1], final_states

    def _starting_states(
        self, initial_states: torch.Tensor | None, sequences: int, like: torch.Tensor
    ) -> torch.Tensor:
        config = self.config
        shape = (sequences, config.num_hidden_layers, 2, config.projection_size + config.lstm_hidden_size)
        if initial_states is not None:
            check_states(initial_states, shape)
            return initial_states
        states = like.new_zeros(shape)
        if config.stateful and self._carried_states is not None:
            # as in both originals: a row without a predecessor starts from zero
            rows = min(sequences, len(self._carried_states))
            states[:rows] = self._carried_states[:rows].to(states)
        return states

    def _carry(self, final_states: torch.Tensor) -> None:
        """Keeps the states for the next batch; rows beyond this batch stay as they were, as in both originals."""
        final_states = final_states.detach()
        if self._carried_states is not None:
            beyond = self._carried_states[len(final_states) :]
            final_states = torch.cat([final_states, beyond.to(final_states)])
        self._carried_states = final_states

    def _restored(self, layer: torch.Tensor, packed: PackedSequences) -> torch.Tensor:
        if self.config.keep_sentence_boundaries:
            return layer * packed.mask[..., None].to(layer.dtype)
        return packed.unpack(layer)

    def _mixed(
        self,
        layers: tuple[torch.Tensor, ...],
        packed_layers: list[torch.Tensor],
        packed: PackedSequences,
        mask: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        if not len(self.scalar_mixes):
            return (layers[-1],)
        convention = self.config.scalar_mix_layer_norm
        statistics = layer_statistics(packed_layers, packed, convention) if convention else None
        mixes = (mix(layers, statistics) * mask[..., None].to(layers[0].dtype) for mix in self.scalar_mixes)
        return tuple(self.dropout(mix) for mix in mixes)


class ElmoForPreTraining(ElmoPreTrainedModel):
    """The bidirectional language model with its softmax over words, shared by both directions."""

    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [r"elmo\.scalar_mixes\."]

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        if config.vocab_size is None:
            raise ValueError("ElmoForPreTraining needs config.vocab_size, the number of words of its softmax")
        self.num_words = config.vocab_size
        self.elmo = ElmoModel(config, add_scalar_mix=False)
        self.dropout = nn.Dropout(config.lstm_dropout)
        self.lm_head = word_softmax(config, self.num_words)
        if isinstance(self.lm_head, ElmoTiedSoftmax):  # not of the class, whose other models have no such table
            self._tied_weights_keys = {"lm_head.weight": "elmo.character_encoder.word_embedding.weight"}
        self.post_init()

    def get_output_embeddings(self) -> nn.Linear | None:
        """The softmax layer; `None` if it is adaptive or has the weights of the input's table of words."""
        return self.lm_head if isinstance(self.lm_head, nn.Linear) else None

    def set_output_embeddings(self, value: nn.Linear) -> None:
        """Replaces the softmax layer."""
        self.lm_head = value

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        initial_states: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        backward_input_ids: torch.Tensor | None = None,
        backward_targets: torch.Tensor | None = None,
        return_logits: bool = True,
    ) -> ElmoForPreTrainingOutput:
        """Predicts each word from those before it and, by itself, from those behind it.

        With `backward_input_ids` the two directions read texts of their own, such as windows of continuous streams;
        the logits then are `(batch, tokens, vocab_size)`, and `labels` are what each token is followed by.

        Args:
            input_ids: As in `ElmoModel`.
            attention_mask: As in `ElmoModel`.
            token_type_ids: As in `ElmoModel`. With `pair_encoding="separate"` the logits have `2 * batch` rows, the
                two sentences of a pair one after the other.
            labels: `(batch, tokens)` int64, the id of each input token in the word vocabulary
                (`ElmoTokenizer.convert_tokens_to_word_ids`), -100 where there is nothing to predict. The ids of the
                boundaries that the model adds are taken from the configuration.
            initial_states: As in `ElmoModel`.
            output_hidden_states: As in `ElmoModel`; not with `backward_input_ids`.
            backward_input_ids: `(batch, tokens, max_characters_per_token)`, what the backward direction reads, in the
                order of its reading, sentence boundaries included in it as in `input_ids`. Padding must be on the
                right, as rows of 0; an `attention_mask` or `token_type_ids` cannot be given.
            backward_targets: `(batch, tokens)` int64, what each token of `backward_input_ids` is followed by in that
                order, -100 where there is nothing to predict; needed with `backward_input_ids` and `labels`.
            return_logits: Whether to return logits. Without them the losses need less memory.

        Raises:
            ValueError: If an argument has the wrong shape, dtype or range.
        """
        if labels is not None:
            check_input_ids(input_ids, self.config)
            check_token_mask("labels", labels, input_ids)
            check_labels(labels, self.num_words, "vocab_size")
        if backward_input_ids is not None:
            self._check_streams(attention_mask, token_type_ids, output_hidden_states)
            if (labels is None) != (backward_targets is None):
                raise ValueError("labels and backward_targets must be given together, got only one of them")
            if backward_targets is not None:
                check_input_ids(backward_input_ids, self.config)
                check_token_mask("backward_targets", backward_targets, backward_input_ids)
                check_labels(backward_targets, self.num_words, "vocab_size")
            ahead, back, stream_states = self.elmo.run_streams(input_ids, backward_input_ids, initial_states)
            outputs = self._predicted(self.dropout(ahead), self.dropout(back), labels, backward_targets, return_logits)
            outputs.final_states = stream_states
            return outputs
        if backward_targets is not None:
            raise ValueError("backward_targets need backward_input_ids")
        packed, layers, final_states = self.elmo.run_language_model(
            input_ids, attention_mask, token_type_ids, initial_states
        )
        ahead, back = self.dropout(layers[-1]).chunk(2, -1)
        forward_labels = None
        if labels is not None:
            symbols, at_end = self._packed_labels(labels, packed)
            forward_labels = symbols[:, 1:]
            # nothing stands behind the last symbol, from which the backward direction could predict it
            backward_targets = symbols.masked_fill(at_end, -100)[:, :-1]
        outputs = self._predicted(ahead[:, :-1], back[:, 1:], forward_labels, backward_targets, return_logits)
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        if output_hidden_states:
            outputs.hidden_states = tuple(self.elmo._restored(layer, packed) for layer in layers)
        outputs.final_states = final_states
        return outputs

    def score(
        self,
        texts: str | Sequence[str] | Sequence[Sequence[str]],
        tokenizer: PreTrainedTokenizerBase,
        batch_size: int = 32,
    ) -> ElmoScores:
        """The log-probability of sentences, word by word, in both directions.

        Args:
            texts: A sentence or several, as strings or as lists of words.
            tokenizer: An `ElmoTokenizer` with the model's word vocabulary.
            batch_size: Sentences that are read at once.

        Raises:
            ValueError: If there is no sentence, or the vocabulary is not of the model's size.
        """
        return score_sentences(self, texts, tokenizer, batch_size)

    def top_words(
        self,
        text: str | Sequence[str],
        position: int,
        k: int = 10,
        *,
        tokenizer: PreTrainedTokenizerBase,
        direction: str = "both",
    ) -> list[tuple[str, float]]:
        """The words that the language model expects at a place of a sentence, by what stands around it.

        Args:
            text: A sentence, as a string or as a list of words.
            position: Number of the word in it, from 0; the word itself is not looked at.
            k: How many words to return.
            tokenizer: As in `score`.
            direction: `"forward"`, by the words before; `"backward"`, by those behind; `"both"`, by the product of
                the two probabilities, brought to a sum of 1.

        Returns:
            Words and their log-probabilities, the likeliest first; sentence boundaries and the unknown word left out.

        Raises:
            ValueError: If there is no such place, or an argument is out of range.
        """
        return top_words(self, text, position, k, tokenizer, direction)

    def _predicted(
        self,
        ahead: torch.Tensor,
        back: torch.Tensor,
        forward_labels: torch.Tensor | None,
        backward_targets: torch.Tensor | None,
        return_logits: bool,
    ) -> ElmoForPreTrainingOutput:
        """Logits and losses of `(sequences, length, projection_size)` vectors of either direction."""
        num_samples = self.config.num_negative_samples if self.training else 0
        outputs = ElmoForPreTrainingOutput()
        if return_logits and not (num_samples and forward_labels is not None):
            outputs.forward_logits = word_logits(self.lm_head, ahead)
            outputs.backward_logits = word_logits(self.lm_head, back)
        if forward_labels is None or backward_targets is None:
            return outputs
        if outputs.forward_logits is not None and outputs.backward_logits is not None:
            outputs.forward_loss = mean_cross_entropy(outputs.forward_logits, forward_labels)
            outputs.backward_loss = mean_cross_entropy(outputs.backward_logits, backward_targets)
        else:
            outputs.forward_loss = self._loss(ahead, forward_labels, num_samples)
            outputs.backward_loss = self._loss(back, backward_targets, num_samples)
        outputs.loss = (outputs.forward_loss + outputs.backward_loss) / 2
        return outputs

    def _loss(self, hidden_states: torch.Tensor, labels: torch.Tensor, num_samples: int) -> torch.Tensor:
        predicted = labels != -100
        losses = word_losses(self.lm_head, hidden_states[predicted], labels[predicted], num_samples)
        return losses.sum() / max(len(losses), 1)

    def _check_streams(
        self,
        attention_mask: torch.Tensor | None,
        token_type_ids: torch.Tensor | None,
        output_hidden_states: bool | None,
    ) -> None:
        given = {
            "attention_mask": attention_mask is not None,
            "token_type_ids": token_type_ids is not None,
            "output_hidden_states": bool(output_hidden_states),
        }
        if names := [name for name, is_given in given.items() if is_given]:
            raise ValueError(f"{', '.join(names)} cannot be given with backward_input_ids")

    def _packed_labels(self, labels: torch.Tensor, packed: PackedSequences) -> tuple[torch.Tensor, torch.Tensor]:
        """Labels in the layout of the packed sequences, `(sequences, length)`, those of the boundaries filled in.

        Also where each sequence has its last symbol, as a mask of the same shape.
        """
        sequences, length = packed.is_boundary.shape
        places = sequences // labels.shape[0] * length
        target = torch.where(packed.token_mask, packed.positions, places)
        symbols = labels.new_full((labels.shape[0], places + 1), -100).scatter(1, target, labels)
        symbols = symbols[:, :places].reshape(sequences, length)
        is_end = packed.character_ids[..., 1] == END_OF_SENTENCE
        boundaries = torch.where(is_end, self.config.eos_token_id, self.config.bos_token_id)
        at_end = torch.arange(length, device=labels.device) == packed.lengths[:, None] - 1
        return torch.where(packed.is_boundary, boundaries, symbols), at_end


def _init_scaled(linear: nn.Linear, bias: float = 0.0) -> None:
    """Weights from N(0, 1 / sqrt(inputs)), as bilm-tf's highway, projection and softmax layers."""
    init.normal_(linear.weight, mean=0.0, std=linear.in_features**-0.5)
    init.constant_(linear.bias, bias)


__all__ = [
    "ElmoForPreTraining",
    "ElmoModel",
    "ElmoPreTrainedModel",
]
