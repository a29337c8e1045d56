import math

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining

import hf_lineage
from hf_lineage import (
    LineageAlbertForMaskedLM,
    LineageAlbertForMultipleChoice,
    LineageAlbertForPreTraining,
    LineageAlbertForQuestionAnswering,
    LineageAlbertForSequenceClassification,
    LineageAlbertForTokenClassification,
    LineageAlbertModel,
)
from hf_lineage.albert.layers_albert import LineageAlbertAttention, LineageAlbertFeedForward

HEADS = [
    "Model",
    "ForPreTraining",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
]


class Equations:
    """The encoder restated for one sentence in float64, from the papers' equations."""

    def __init__(self, model):
        self.config = model.config
        self.weights = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def linear(self, name, values):
        return values @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, values):
        centred = values - values.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.config.layer_norm_eps)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def attention(self, name, values):
        size = self.config.hidden_size // self.config.num_attention_heads
        query, key, value = (self.linear(f"{name}.{part}", values) for part in ("query", "key", "value"))
        heads = []
        for head in range(self.config.num_attention_heads):
            columns = slice(head * size, (head + 1) * size)
            scores = np.exp(query[:, columns] @ key[:, columns].T / math.sqrt(size))
            heads.append(scores / scores.sum(-1, keepdims=True) @ value[:, columns])
        return self.linear(f"{name}.dense", np.concatenate(heads, -1))

    def ffn(self, name, values):
        inner = self.linear(f"{name}.up_proj", values)
        if self.config.hidden_act == "gelu":
            inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        else:
            inner = inner * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3))) / 2
        return self.linear(f"{name}.down_proj", inner)

    def __call__(self, ids, segments):
        rows = {"word": ids, "token_type": segments, "position": list(range(len(ids)))}
        embedded = sum(self.weights[f"embeddings.{table}_embeddings.weight"][rows[table]] for table in rows)
        values = self.linear("embedding_projection", self.norm("embeddings.layer_norm", embedded))
        for attention, ffn in self.config.layer_blocks:
            for block, name in (
                (self.attention, f"attention_blocks.{attention}"),
                (self.ffn, f"ffn_blocks.{ffn}"),
            ):
                if self.config.layer_norm_position == "post":
                    values = self.norm(f"{name}.layer_norm", values + block(name, values))
                else:
                    values = values + block(name, self.norm(f"{name}.layer_norm", values))
        if self.config.layer_norm_position == "pre":
            values = self.norm("final_layer_norm", values)
        return values, np.tanh(self.linear("pooler", values[0]))


@pytest.mark.parametrize("layer_norm_position", ["post", "pre"])
@pytest.mark.parametrize("hidden_act", ["gelu_new", "gelu"])
@pytest.mark.parametrize("fields", [{}, {"share_parameters": "attention"}, {"ffn_layer_blocks": [0, 1, 0]}], ids=str)
def test_the_equations(fields, hidden_act, layer_norm_position, tiny, randomize, batch):
    choices = {"layer_norm_position": layer_norm_position, "hidden_act": hidden_act}
    config = tiny(num_hidden_layers=3, layer_norm_eps=1e-3, **choices, **fields)
    model = randomize(LineageAlbertModel(config)).double()
    equations = Equations(model)
    with torch.no_grad():
        outputs = model(**batch)
    for row, length in enumerate(batch["attention_mask"].sum(1).tolist()):
        vectors, pooled = equations(
            batch["input_ids"][row, :length].tolist(), batch["token_type_ids"][row, :length].tolist()
        )
        np.testing.assert_allclose(outputs.last_hidden_state[row, :length].numpy(), vectors, atol=1e-11)
        np.testing.assert_allclose(outputs.pooler_output[row].numpy(), pooled, atol=1e-11)


def test_hidden_states_of_pre_layer_norm_end_normalized(tiny, randomize, batch):
    model = randomize(LineageAlbertModel(tiny(layer_norm_position="pre", num_hidden_layers=3)))
    with torch.no_grad():
        output = model(**batch, output_hidden_states=True)
    assert len(output.hidden_states) == 4
    assert torch.equal(output.hidden_states[-1], output.last_hidden_state)
    with torch.no_grad():
        assert torch.equal(model(**batch).last_hidden_state, output.last_hidden_state)


def test_outputs_that_the_configuration_asks_for(tiny, batch):
    config = tiny(output_hidden_states=True, output_attentions=True)
    model = LineageAlbertModel(config).eval()
    output = model(**batch)
    assert (len(output.hidden_states), len(output.attentions)) == (3, 2)
    output = model(**batch, output_hidden_states=False, output_attentions=False)
    assert output.hidden_states is None
    assert output.attentions is None
    config.return_dict = False
    assert isinstance(model(**batch), tuple)


@pytest.mark.filterwarnings("ignore:.*checkpointing:FutureWarning")
@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("share_parameters", ["all", "attention", "none"])
def test_gradient_checkpointing_gives_the_same_gradients(
    share_parameters, dropout, use_reentrant, tiny, batch, labels_of, monkeypatch
):
    config = tiny(
        share_parameters=share_parameters,
        num_hidden_layers=3,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    model = LineageAlbertForPreTraining(config).train()
    runs = []
    forward = LineageAlbertAttention.forward
    monkeypatch.setattr(LineageAlbertAttention, "forward", lambda *args, **kw: runs.append(1) or forward(*args, **kw))
    results = {}
    for checkpointing in (False, True):
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
        model.zero_grad()
        runs.clear()
        torch.manual_seed(3)
        loss = model(**batch, **labels_of("ForPreTraining")).loss
        loss.backward()
        results[checkpointing] = loss, [parameter.grad.clone() for parameter in model.parameters()], len(runs)
    assert torch.equal(results[True][0], results[False][0])
    assert all(map(torch.equal, results[True][1], results[False][1]))
    assert (results[False][2], results[True][2]) == (3, 6)  # each layer runs again for its gradients


@pytest.mark.parametrize("kind", ["attention", "ffn"])
@pytest.mark.parametrize("position", ["pre", "post"])
def test_dropout_after_a_block(kind, position, tiny, randomize):
    config = tiny(hidden_dropout_prob=0.25, layer_norm_position=position)
    block = LineageAlbertAttention(config) if kind == "attention" else LineageAlbertFeedForward(config)
    block = randomize(block)
    sums = []
    if position == "post":
        block.layer_norm.register_forward_pre_hook(lambda module, args: sums.append(args[0]))
    values = torch.randn(4, 50, 16)

    def added(training):
        output = block.train(training)(values, None) if kind == "attention" else block.train(training)(values)
        output = output[0] if kind == "attention" else output
        return (sums.pop() if position == "post" else output) - values

    with torch.no_grad():
        whole, thinned = added(False), added(True)
    dropped = thinned == 0
    assert dropped.float().mean() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(thinned[~dropped], whole[~dropped] / 0.75, atol=1e-4, rtol=1e-4)
    assert not (whole == 0).any()


def test_dropout_after_the_embeddings(tiny, randomize, batch):
    embeddings = randomize(LineageAlbertModel(tiny(hidden_dropout_prob=0.25, embedding_size=100))).embeddings
    ids, _, segments = batch.values()
    arguments = (ids, None, segments, torch.arange(9).expand(3, -1))
    with torch.no_grad():
        whole, thinned = embeddings.eval()(*arguments), embeddings.train()(*arguments)
    dropped = thinned == 0
    assert dropped.float().mean() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(thinned[~dropped], whole[~dropped] / 0.75)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_dropout_of_attention_probabilities(implementation, tiny, randomize):
    config = tiny(attention_probs_dropout_prob=0.25, num_attention_heads=1)
    config._attn_implementation = implementation
    block = randomize(LineageAlbertAttention(config)).train()
    with torch.no_grad():
        # all keys alike, and values and weights that let the sum of a row's probabilities through
        block.key.weight.zero_()
        block.key.bias.zero_()
        for linear in (block.value, block.dense):
            linear.weight.copy_(torch.eye(16))
            linear.bias.zero_()
        sums = []
        block.layer_norm.register_forward_pre_hook(lambda module, args: sums.append(args[0]))
        values = torch.ones(1, 400, 16)
        block(values, None)
        block.eval()(values, None)
    in_training, in_evaluation = (total - values for total in sums)
    kept = in_training[0, :, 0] * 400 * 0.75
    torch.testing.assert_close(kept, kept.round(), atol=1e-2, rtol=0)
    assert kept.std() > 1
    assert kept.mean() == pytest.approx(300, abs=5)
    torch.testing.assert_close(in_evaluation, torch.ones_like(values))


@pytest.mark.parametrize("head", ["ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice"])
@pytest.mark.parametrize(("probability", "expected"), [(0.5, 0.5), (0.0, 0.0), (None, 0.3)])
def test_dropout_before_a_classifier(head, probability, expected, tiny):
    config = tiny(classifier_dropout_prob=probability, hidden_dropout_prob=0.3, num_labels=4)
    model = getattr(hf_lineage, f"LineageAlbert{head}")(config).train()
    seen = []
    model.classifier.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    ids = torch.randint(4, 60, (20, 5))
    model(ids[:, None] if head == "ForMultipleChoice" else ids)
    assert (seen[0] == 0).float().mean() == pytest.approx(expected, abs=0.1)


def test_no_dropout_in_evaluation_and_none_before_the_sentence_head(tiny, batch):
    config = tiny(hidden_dropout_prob=0.4, attention_probs_dropout_prob=0.4, classifier_dropout_prob=0.4)
    model = LineageAlbertForPreTraining(config).eval()
    assert torch.equal(model(**batch).prediction_logits, model(**batch).prediction_logits)
    seen = []
    model.sentence_classifier.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    model.train()(**batch)
    assert not (seen[0] == 0).any()


@pytest.mark.parametrize("head", ["ForPreTraining", "ForMaskedLM"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_nothing_masked_is_a_loss_of_zero(head, training, sparse, tiny, batch):
    model = getattr(hf_lineage, f"LineageAlbert{head}")(tiny(sparse_prediction=sparse)).train(training)
    output = model(**batch, labels=torch.full_like(batch["input_ids"], -100))
    assert output.loss.item() == 0
    output.loss.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients
    assert not any(gradient.any() for gradient in gradients)


def test_losses_of_pretraining_by_hand(tiny, randomize, batch, labels_of):
    model = randomize(LineageAlbertForPreTraining(tiny(num_labels=3)))
    labels = labels_of("ForPreTraining")
    masked, order = labels["labels"], labels["sentence_order_label"]
    with torch.no_grad():
        both, none = model(**batch, **labels), model(**batch)
        only_masked, only_order = model(**batch, labels=masked), model(**batch, sentence_order_label=order)
        column = model(**batch, sentence_order_label=order[:, None])
    assert both.sentence_logits.shape == (3, 2)  # whatever num_labels is
    predicted = masked != -100
    of_tokens = -both.prediction_logits.log_softmax(-1)[predicted][torch.arange(predicted.sum()), masked[predicted]]
    of_pairs = -both.sentence_logits.log_softmax(-1)[torch.arange(3), order]
    torch.testing.assert_close(both.prediction_loss, of_tokens.mean())
    torch.testing.assert_close(both.sentence_loss, of_pairs.mean())
    torch.testing.assert_close(both.loss, of_tokens.mean() + of_pairs.mean())
    assert (none.loss, none.prediction_loss, none.sentence_loss) == (None, None, None)
    torch.testing.assert_close(only_masked.loss, of_tokens.mean())
    assert only_masked.sentence_loss is None
    torch.testing.assert_close(only_order.loss, of_pairs.mean())
    assert only_order.prediction_loss is None
    assert torch.equal(column.loss, only_order.loss)


@pytest.mark.parametrize(
    ("objective", "given", "message"),
    [
        ("sop", "next_sentence_label", "next_sentence_label is for sentence_objective='nsp', this model has 'sop'"),
        ("nsp", "sentence_order_label", "sentence_order_label is for sentence_objective='sop', this model has 'nsp'"),
        ("none", "sentence_order_label", "this model has 'none'"),
        ("none", "next_sentence_label", "this model has 'none'"),
    ],
)
def test_labels_of_another_objective_are_refused(objective, given, message, tiny, batch):
    model = LineageAlbertForPreTraining(tiny(sentence_objective=objective))
    with pytest.raises(ValueError, match=message):
        model(**batch, **{given: torch.zeros(3).long()})


def test_no_sentence_objective(tiny, batch, labels_of):
    model = LineageAlbertForPreTraining(tiny(sentence_objective="none"))
    assert model.sentence_classifier is None
    assert model.albert.pooler is None
    output = model(**batch, labels=labels_of("ForMaskedLM")["labels"])
    assert output.sentence_logits is None
    assert torch.equal(output.loss, output.prediction_loss)


def test_a_loss_over_accumulated_batches(tiny, batch, labels_of):
    model = LineageAlbertForMaskedLM(tiny())
    labels = labels_of("ForMaskedLM")["labels"]
    count = int((labels != -100).sum())
    mean = model(**batch, labels=labels).loss
    for items in (40, torch.tensor(40)):
        torch.testing.assert_close(model(**batch, labels=labels, num_items_in_batch=items).loss, mean * count / 40)


def test_nothing_masked_in_all_accumulated_batches(tiny, batch):
    labels = torch.full_like(batch["input_ids"], -100)
    for items in (0, torch.tensor(0)):
        assert LineageAlbertForMaskedLM(tiny())(**batch, labels=labels, num_items_in_batch=items).loss.item() == 0


@pytest.mark.parametrize("head", ["ForPreTraining", "ForMaskedLM"])
@pytest.mark.parametrize(
    ("training", "configured", "asked", "expected"),
    [
        (True, True, None, True),
        (True, False, None, False),
        (False, True, None, False),
        (False, True, True, True),
        (False, False, True, True),
        (True, True, False, False),
    ],
)
def test_when_labelled_positions_only_are_predicted(
    training, configured, asked, expected, head, tiny, batch, labels_of
):
    model = getattr(hf_lineage, f"LineageAlbert{head}")(tiny(sparse_prediction=configured)).train(training)
    labels = labels_of("ForMaskedLM")["labels"]
    name = "prediction_logits" if head == "ForPreTraining" else "logits"
    with torch.no_grad():
        found = model(**batch, labels=labels, sparse_prediction=asked)
        all_positions = model(**batch, sparse_prediction=asked)[name]  # without labels there is nothing to choose
        loss = model(**batch, labels=labels, sparse_prediction=not expected).loss
    assert all_positions.shape == (3, 9, 60)
    if expected:
        torch.testing.assert_close(found[name], all_positions[labels != -100], atol=1e-6, rtol=1e-5)
    else:
        torch.testing.assert_close(found[name], all_positions)
    torch.testing.assert_close(found.loss, loss)


def test_losses_of_classifiers_by_hand(tiny, randomize, batch, inputs_of):
    rows, mask = torch.arange(3), batch["attention_mask"].bool()
    model = randomize(LineageAlbertForSequenceClassification(tiny(num_labels=4)))
    output = model(**batch, labels=torch.tensor([3, 0, 1]))
    torch.testing.assert_close(output.loss, -output.logits.log_softmax(-1)[rows, [3, 0, 1]].mean())

    model = randomize(LineageAlbertForSequenceClassification(tiny(num_labels=1)))
    values = torch.tensor([0.5, -2.0, 1.0])
    output = model(**batch, labels=values)
    torch.testing.assert_close(output.loss, ((output.logits[:, 0] - values) ** 2).mean())

    config = tiny(num_labels=4, problem_type="multi_label_classification")
    model = randomize(LineageAlbertForSequenceClassification(config))
    flags = torch.tensor([[1.0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]])
    output = model(**batch, labels=flags)
    chances = output.logits.sigmoid()
    torch.testing.assert_close(output.loss, -(flags * chances.log() + (1 - flags) * (1 - chances).log()).mean())

    model = randomize(LineageAlbertForTokenClassification(tiny(num_labels=4)))
    classes = torch.where(mask, batch["input_ids"] % 4, -100)
    output = model(**batch, labels=classes)
    torch.testing.assert_close(
        output.loss, -output.logits.log_softmax(-1)[mask].gather(1, classes[mask][:, None]).mean()
    )

    model = randomize(LineageAlbertForMultipleChoice(tiny()))
    output = model(**inputs_of("ForMultipleChoice"), labels=torch.tensor([2]))
    assert output.logits.shape == (1, 3)
    torch.testing.assert_close(output.loss, -output.logits.log_softmax(-1)[0, 2])


@pytest.mark.parametrize("head", [head for head in HEADS if head != "Model"])
def test_labels_of_32_bits(head, tiny, inputs_of, labels_of):
    model = getattr(hf_lineage, f"LineageAlbert{head}")(tiny())
    inputs, labels = inputs_of(head), labels_of(head)
    expected = model(**inputs, **labels).loss
    assert torch.equal(model(**inputs, **{name: value.int() for name, value in labels.items()}).loss, expected)


def test_losses_of_question_answering_by_hand(tiny, randomize, batch):
    model = randomize(LineageAlbertForQuestionAnswering(tiny()))
    starts, ends = torch.tensor([2, 0, 9]), torch.tensor([4, 3, 30])
    output = model(**batch, start_positions=starts, end_positions=ends)
    # the last row's answer was cut off: its positions are behind the last of nine tokens
    of_start = -output.start_logits.log_softmax(-1)[[0, 1], [2, 0]].mean()
    of_end = -output.end_logits.log_softmax(-1)[[0, 1], [4, 3]].mean()
    torch.testing.assert_close(output.loss, (of_start + of_end) / 2)
    columns = model(**batch, start_positions=starts[:, None], end_positions=ends[:, None])
    assert torch.equal(columns.loss, output.loss)
    assert model(**batch, start_positions=starts * 0 + 9, end_positions=ends * 0 + 9).loss.item() == 0
    assert model(**batch).loss is None


def test_initial_weights(tiny):
    sizes = {"vocab_size": 2000, "embedding_size": 64, "hidden_size": 128, "intermediate_size": 256}
    config = tiny(**sizes, initializer_range=0.05, pad_token_id=3)
    for model in (LineageAlbertForPreTraining(config), AutoModel.from_config(config)):
        for name, module in model.named_modules():
            if isinstance(module, nn.LayerNorm):
                assert (module.weight == 1).all(), name
                assert (module.bias == 0).all(), name
            elif isinstance(module, (nn.Linear, nn.Embedding)):
                weight = module.weight.detach()
                assert weight.abs().max() <= 0.1, name
                if weight.numel() > 10_000:
                    assert weight.abs().max() > 0.099, name
                    # of a normal distribution cut at two standard deviations
                    assert weight.std().item() == pytest.approx(0.05 * 0.8796, rel=0.03), name
                    assert weight.mean().item() == pytest.approx(0, abs=2e-3), name
                if isinstance(module, nn.Linear):
                    assert (module.bias == 0).all(), name
        words = model.get_input_embeddings().weight
        assert (words[3] == 0).all()
        assert (words[:3] != 0).any(-1).all()


def test_initial_weights_of_new_layers_only(tiny, randomize, tmp_path):
    base = randomize(LineageAlbertModel(tiny(initializer_range=0.05)))
    base.save_pretrained(tmp_path)
    model, info = LineageAlbertForSequenceClassification.from_pretrained(
        tmp_path, num_labels=3, output_loading_info=True
    )
    assert set(info["missing_keys"]) == {"classifier.weight", "classifier.bias"}
    assert not info["unexpected_keys"]
    assert 0 < model.classifier.weight.abs().max() <= 0.1
    assert all(map(torch.equal, model.albert.state_dict().values(), base.state_dict().values()))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("share_parameters", ["attention", "none"])
def test_saving_and_loading_is_bit_equal(share_parameters, head, tiny, randomize, inputs_of, tmp_path):
    fields = {"share_parameters": share_parameters, "num_labels": 3, "sentence_objective": "nsp"}
    model = randomize(getattr(hf_lineage, f"LineageAlbert{head}")(tiny(**fields)))
    model.save_pretrained(tmp_path)
    auto_class = "AutoModel" if head == "Model" else f"AutoModel{head}"
    loaded = getattr(transformers, auto_class).from_pretrained(tmp_path)
    assert type(loaded) is type(model)
    assert not loaded.training
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(map(torch.equal, loaded.state_dict().values(), model.state_dict().values()))
    with torch.no_grad():
        torch.testing.assert_close(loaded(**inputs_of(head))[0], model(**inputs_of(head))[0], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("auto_class", [AutoModelForMaskedLM, AutoModelForPreTraining])
@pytest.mark.parametrize("size", [40, 75])
@pytest.mark.parametrize("tied", [True, False])
def test_resizing_the_vocabulary(auto_class, size, tied, tiny, randomize, tmp_path):
    model = randomize(auto_class.from_config(tiny(tie_word_embeddings=tied)))
    ids = torch.randint(4, 40, (2, 6))
    with torch.no_grad():
        before = model(ids)[0]
        model.resize_token_embeddings(size, mean_resizing=False)
        after = model(ids)[0]
    kept = min(size, 60)
    assert after.shape == (2, 6, size)
    torch.testing.assert_close(after[..., :kept], before[..., :kept], atol=1e-5, rtol=1e-5)
    assert model.config.vocab_size == size
    assert (model.get_input_embeddings().weight is model.get_output_embeddings().weight) == tied
    model.save_pretrained(tmp_path)
    loaded = auto_class.from_pretrained(tmp_path)
    with torch.no_grad():
        torch.testing.assert_close(loaded(ids)[0], after, atol=1e-5, rtol=1e-5)
    model.train()(ids, labels=ids).loss.backward()
    assert model.predictions.decoder.bias.grad.any()


@pytest.mark.skipif(not hasattr(torch.compiler, "is_exporting"), reason="torch 2.6 cannot tell that it exports")
@pytest.mark.parametrize("share_parameters", ["all", "none"])
def test_export_takes_any_batch_and_length(share_parameters, tiny, randomize, batch):
    config = tiny(share_parameters=share_parameters, num_hidden_layers=3)
    model = randomize(LineageAlbertForSequenceClassification(config))
    rows, tokens = torch.export.Dim("rows"), torch.export.Dim("tokens", min=2, max=32)
    with torch.no_grad():
        program = torch.export.export(
            model, tuple(batch.values()), dynamic_shapes={name: {0: rows, 1: tokens} for name in batch}
        )
        for shape in ((3, 9), (1, 5), (4, 2)):
            mask = torch.ones(shape).long()
            mask[-1, 1:] = 0
            inputs = torch.randint(5, 60, shape), mask, torch.randint(0, 2, shape)
            found = program.module()(*inputs).logits
            torch.testing.assert_close(found, model(*inputs).logits, atol=1e-6, rtol=1e-5)
    assert sum(value.numel() for value in program.state_dict.values()) == model.num_parameters()
    assert len(program.graph_signature.parameters) == len(list(model.parameters()))


def test_compiles_into_one_graph(tiny, randomize, batch):
    model = randomize(LineageAlbertForMaskedLM(tiny()))
    # tracing is what can fail; generating code for the graph would only take longer
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(**batch).logits, model(**batch).logits, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("padding_free", [False, True])
def test_mixed_precision_training(padding_free, tiny, batch, labels_of):
    model = LineageAlbertForPreTraining(tiny(padding_free=padding_free, hidden_dropout_prob=0.1)).train()
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(**batch, **labels_of("ForPreTraining")).loss
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(math.log(60) + math.log(2), abs=0.5)
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


BAD_CALLS = {
    "nothing": (lambda ids: {}, "exactly one of input_ids and inputs_embeds"),
    "both inputs": (
        lambda ids: {"input_ids": ids, "inputs_embeds": torch.zeros(2, 6, 8)},
        "exactly one of input_ids and inputs_embeds",
    ),
    "one dimension": (lambda ids: {"input_ids": ids[0]}, r"input_ids must be a tensor \(batch, tokens\), got \(6,\)"),
    "a list": (lambda ids: {"input_ids": ids.tolist()}, "input_ids must be a tensor .* got list"),
    "floats": (lambda ids: {"input_ids": ids.float()}, "input_ids must be int64 or int32, got torch.float32"),
    "negative": (lambda ids: {"input_ids": ids - 60}, r"input_ids must be in \[0, vocab_size=60\)"),
    "outside the table": (lambda ids: {"input_ids": ids + 60}, r"input_ids must be in \[0, vocab_size=60\)"),
    "no tokens": (lambda ids: {"input_ids": ids[:, :0]}, "input_ids"),
    "no rows": (lambda ids: {"input_ids": ids[:0]}, "input_ids"),
    "vectors of another size": (lambda ids: {"inputs_embeds": torch.zeros(2, 6, 16)}, r"inputs_embeds must be .* 8\)"),
    "mask of another length": (
        lambda ids: {"input_ids": ids, "attention_mask": torch.ones(2, 5)},
        r"attention_mask must be a tensor of shape \(2, 6\)",
    ),
    "a list for a mask": (lambda ids: {"input_ids": ids, "attention_mask": [[1] * 6] * 2}, "attention_mask.*list"),
    "segments of another length": (
        lambda ids: {"input_ids": ids, "token_type_ids": torch.zeros(2, 5).long()},
        r"token_type_ids must be a tensor of shape \(2, 6\)",
    ),
    "a third segment": (
        lambda ids: {"input_ids": ids, "token_type_ids": torch.full((2, 6), 2)},
        r"token_type_ids must be in \[0, type_vocab_size=2\)",
    ),
    "float segments": (
        lambda ids: {"input_ids": ids, "token_type_ids": torch.zeros(2, 6)},
        "token_type_ids must be int64 or int32",
    ),
    "positions of another length": (
        lambda ids: {"input_ids": ids, "position_ids": torch.zeros(2, 5).long()},
        "position_ids must be",
    ),
    "a list of positions": (lambda ids: {"input_ids": ids, "position_ids": [list(range(6))]}, "position_ids must be"),
    "positions outside the table": (
        lambda ids: {"input_ids": ids, "position_ids": torch.full((2, 6), 32)},
        r"position_ids must be in \[0, max_position_embeddings=32\)",
    ),
    "too many tokens": (
        lambda ids: {"input_ids": torch.full((2, 33), 5)},
        "max_position_embeddings=32 tokens, got 33: cut the text",
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_arguments_are_refused(case, tiny):
    make, message = BAD_CALLS[case]
    with pytest.raises(ValueError, match=message):
        LineageAlbertModel(tiny())(**make(torch.randint(4, 60, (2, 6))))


ZEROS = torch.zeros(2).long()
BAD_LABELS = {
    "a token too many": ("ForMaskedLM", {"labels": torch.full((2, 6), 60)}, r"-100 or in \[0, 60\), got 60"),
    "a negative token": ("ForMaskedLM", {"labels": torch.full((2, 6), -1)}, r"-100 or in \[0, 60\), got -1"),
    "tokens of another length": ("ForPreTraining", {"labels": torch.zeros(2, 5).long()}, r"labels must .* \(2, 6\)"),
    "a list of tokens": ("ForMaskedLM", {"labels": [[5] * 6] * 2}, r"labels must be a tensor .*, got list"),
    "float tokens": ("ForPreTraining", {"labels": torch.zeros(2, 6)}, "labels must be int64 or int32"),
    "a third order": ("ForPreTraining", {"sentence_order_label": ZEROS + 2}, r"sentence_order_label must .* got 2"),
    "a list of orders": ("ForPreTraining", {"sentence_order_label": [0, 1]}, "sentence_order_label must .* got list"),
    "orders of another batch": (
        "ForPreTraining",
        {"sentence_order_label": torch.zeros(3).long()},
        r"sentence_order_label must be .* \(2,\)",
    ),
    "a class too many": ("ForTokenClassification", {"labels": torch.full((2, 6), 2)}, r"-100 or in \[0, 2\), got 2"),
    "classes of another length": (
        "ForTokenClassification",
        {"labels": torch.zeros(2, 5).long()},
        r"labels must be .* \(2, 6\)",
    ),
    "a class of sentences too many": ("ForSequenceClassification", {"labels": ZEROS + 2}, "labels must"),
    "classes of another batch": ("ForSequenceClassification", {"labels": torch.zeros(3).long()}, "labels must"),
    "a list of classes": ("ForSequenceClassification", {"labels": [0, 1]}, "labels must be a tensor .* got list"),
    "one float a row where there are two labels": (
        "ForSequenceClassification",
        {"labels": torch.zeros(2)},
        r"labels must be a tensor of shape \(2, 2\) .*, got \(2,\)",
    ),
    "a negative position": ("ForQuestionAnswering", {"start_positions": ZEROS - 1, "end_positions": ZEROS}, "start"),
    "float positions": ("ForQuestionAnswering", {"start_positions": ZEROS.float(), "end_positions": ZEROS}, "start"),
    "positions of another batch": (
        "ForQuestionAnswering",
        {"start_positions": torch.zeros(3).long(), "end_positions": ZEROS},
        "start_positions",
    ),
    "only one position": ("ForQuestionAnswering", {"start_positions": ZEROS}, "end_positions"),
}


def test_values_of_another_batch_are_refused(tiny):
    model = LineageAlbertForSequenceClassification(tiny(num_labels=1))
    with pytest.raises(ValueError, match=r"labels must be a tensor of shape \(2,\) .*, got \(3,\)"):
        model(torch.randint(4, 60, (2, 6)), labels=torch.zeros(3))


@pytest.mark.parametrize("case", BAD_LABELS)
def test_bad_labels_are_refused(case, tiny):
    head, labels, message = BAD_LABELS[case]
    model = getattr(hf_lineage, f"LineageAlbert{head}")(tiny())
    with pytest.raises(ValueError, match=message):
        model(torch.randint(4, 60, (2, 6)), **labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_ids": torch.full((2, 6), 5)}, r"\(batch, choices, tokens\), got \(2, 6\)"),
        ({"input_ids": torch.full((2, 3, 6), 5), "labels": torch.tensor([0, 3])}, r"in \[0, 3\), got 3"),
        ({"input_ids": torch.full((2, 3, 6), 5), "labels": torch.tensor([0])}, r"shape \(2,\) \(one choice a row\)"),
        ({"input_ids": torch.full((2, 3, 6), 5), "attention_mask": torch.ones(2, 2, 6)}, "attention_mask must be"),
        ({"input_ids": torch.full((2, 3, 6), 5), "token_type_ids": [[0]]}, "token_type_ids must be"),
    ],
)
def test_bad_choices_are_refused(arguments, message, tiny):
    with pytest.raises(ValueError, match=message):
        LineageAlbertForMultipleChoice(tiny())(**arguments)
