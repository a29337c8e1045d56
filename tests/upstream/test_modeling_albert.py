import unittest
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from hf_lineage import (
    LineageAlbertConfig,
    LineageAlbertForMaskedLM,
    LineageAlbertForMultipleChoice,
    LineageAlbertForPreTraining,
    LineageAlbertForQuestionAnswering,
    LineageAlbertForSequenceClassification,
    LineageAlbertForTokenClassification,
    LineageAlbertModel,
)

from .harness import register_labels, upstream_module

pytestmark = pytest.mark.upstream

common = upstream_module("test_modeling_common")
configuration_common = upstream_module("test_configuration_common")
register_labels(LineageAlbertConfig)


class LineageAlbertModelTester:
    """The sizes and inputs that `ModelTesterMixin` asks for."""

    batch_size = 5
    seq_length = 7
    num_choices = 3
    is_training = True

    vocab_size = 99
    hidden_size = 32
    num_hidden_layers = 2
    num_attention_heads = 4

    def get_config(self) -> LineageAlbertConfig:
        return LineageAlbertConfig(
            vocab_size=self.vocab_size,
            embedding_size=16,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=37,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1,
            max_position_embeddings=64,
            share_parameters="attention",
        )

    def prepare_config_and_inputs_for_common(self) -> tuple[LineageAlbertConfig, dict[str, torch.Tensor]]:
        config = self.get_config()
        shape = [self.batch_size, self.seq_length]
        return config, {
            "input_ids": common.ids_tensor(shape, self.vocab_size),
            "attention_mask": common.random_attention_mask(shape),
            "token_type_ids": common.ids_tensor(shape, config.type_vocab_size),
        }


class LineageAlbertModelTest(common.ModelTesterMixin, unittest.TestCase):
    all_model_classes = (
        LineageAlbertModel,
        LineageAlbertForPreTraining,
        LineageAlbertForMaskedLM,
        LineageAlbertForSequenceClassification,
        LineageAlbertForTokenClassification,
        LineageAlbertForQuestionAnswering,
        LineageAlbertForMultipleChoice,
    )
    # checks `_init_weights` too, which the mixin leaves out where a configuration's file names no recent year
    test_can_init_all_missing_weights_before_2023 = True

    def setUp(self) -> None:
        self.model_tester = LineageAlbertModelTester()
        self.config_tester = configuration_common.ConfigTester(
            self, config_class=LineageAlbertConfig, hidden_size=36, num_attention_heads=4
        )

    def _prepare_for_class(
        self, inputs_dict: dict[str, Any], model_class: type[PreTrainedModel], return_labels: bool = False
    ) -> dict[str, Any]:
        inputs = super()._prepare_for_class(inputs_dict, model_class, return_labels)
        if return_labels and model_class is LineageAlbertForPreTraining:
            # the mixin has no labels for a pretraining head, as no two of them take the same ones
            shape = (self.model_tester.batch_size, self.model_tester.seq_length)
            inputs["labels"] = torch.zeros(shape, dtype=torch.long, device=common.torch_device)
            inputs["sentence_order_label"] = torch.zeros(shape[0], dtype=torch.long, device=common.torch_device)
        return inputs

    def test_config(self) -> None:
        self.config_tester.run_common_tests()
