"""What a head reads: ELMo's vectors, static word vectors beside them, and a BiLSTM over both.

Peters et al. 2018 (https://arxiv.org/abs/1802.05365), section 3.3: the biLM is frozen, its mixed vector stands beside
a context-free one of the task's model, and the task's own recurrent network reads the two.
"""

import torch
from torch import nn

from .configuration_elmo import ElmoConfig


class ElmoTaskFeatures(nn.Module):
    """Concatenates the static vector of each word and runs a BiLSTM, each if the configuration asks for it."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        self.static_embedding: torch.Tensor | None
        self.lstm: nn.LSTM | None = None
        size = (config.word_vocab_size, config.static_embedding_size)
        # a buffer, since loading would make a parameter one that is trained
        self.register_buffer("static_embedding", torch.zeros(size) if config.static_embedding_size else None)
        if config.classifier_lstm_size:
            self.dropout = nn.Dropout(config.classifier_dropout)
            self.lstm = nn.LSTM(
                config.hidden_size + config.static_embedding_size,
                config.classifier_lstm_size,
                batch_first=True,
                bidirectional=True,
            )

    def forward(self, hidden_states: torch.Tensor, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Makes the features of a batch.

        Args:
            hidden_states: `(batch, tokens, hidden_size)`.
            input_ids: `(batch, tokens, token_row_size)`, whose last numbers are the words.
            mask: `(batch, tokens)`, 0 for padding, which may stand anywhere.

        Returns:
            `(batch, tokens, task_feature_size)`, zero at padding where there is a BiLSTM.
        """
        if self.static_embedding is not None:
            static = nn.functional.embedding(input_ids[..., -1].long(), self.static_embedding).to(hidden_states.dtype)
            hidden_states = torch.cat([hidden_states, static], -1)
        if self.lstm is None:
            return hidden_states
        # real tokens first, in their order, as the LSTM reads each row to its own end
        order = torch.argsort((~mask.bool()).int(), dim=1, stable=True)
        lengths = mask.sum(1).clamp(min=1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(_taken(hidden_states, order)), lengths, batch_first=True, enforce_sorted=False
        )
        outputs, _ = nn.utils.rnn.pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=hidden_states.shape[1]
        )
        return _taken(outputs, torch.argsort(order, dim=1)) * mask[..., None].to(outputs.dtype)


def _taken(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    return values.gather(1, order[..., None].expand(-1, -1, values.shape[-1]))


__all__ = ["ElmoTaskFeatures"]
