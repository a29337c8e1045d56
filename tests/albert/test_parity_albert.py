"""The same numbers as transformers' ALBERT and BERT with the same weights."""

import copy
import inspect

import pytest
import torch
import transformers

import hf_lineage

HEADS = [
    "Model",
    "ForPreTraining",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
]
BERT = ("bert", {"num_hidden_layers": 3})
ALBERT = ("albert", {"num_hidden_layers": 3, "hidden_act": "gelu_pytorch_tanh"})
# Numbers of layers, groups and inner groups. With the last three, transformers leaves groups unused or divides the
# layers in another way than the original does.
LAYOUTS = [
    *[(6, groups, inner) for groups in (1, 2, 3, 6) for inner in (1, 2)],
    (4, 3, 1),
    (4, 7, 1),
    (4, 7, 2),
    (18, 14, 1),
]
IMPLEMENTATIONS = ["sdpa", "eager"]


@pytest.fixture
def pair(peer_config, randomize, load_peer):
    """A random model of transformers and ours with its weights."""

    def make(model_type, head, *, implementation="sdpa", **fields):
        name = {"albert": "Albert", "bert": "Bert"}[model_type] + head
        peer = randomize(
            getattr(transformers, name)._from_config(
                peer_config(model_type, **fields), attn_implementation=implementation
            )
        )
        ours = load_peer(peer, attn_implementation=implementation)
        for model in (peer, ours):
            for parameter in model.parameters():
                # a weight in a mapped file may start anywhere, and some kernels round by where it does
                parameter.data = parameter.data.clone()
        return peer, ours

    return make


def sentence_label(peer):
    return "next_sentence_label" if type(peer).__name__.startswith("Bert") else "sentence_order_label"


def vectors(output):
    return output.last_hidden_state, output.pooler_output


def assert_same(found, expected, exact):
    assert len(found) == len(expected) > 0
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        if exact:
            assert torch.equal(ours, theirs)
        else:
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("layers", "groups", "inner"), LAYOUTS)
@pytest.mark.parametrize(
    ("implementation", "hidden_act"),
    [("sdpa", "gelu_pytorch_tanh"), ("sdpa", "gelu_new"), ("eager", "gelu_pytorch_tanh")],
)
def test_albert(layers, groups, inner, hidden_act, implementation, pair, batch):
    peer, ours = pair(
        "albert",
        "Model",
        implementation=implementation,
        num_hidden_layers=layers,
        num_hidden_groups=groups,
        inner_group_num=inner,
        hidden_act=hidden_act,
    )
    assert ours.config._attn_implementation == peer.config._attn_implementation == implementation
    with torch.no_grad():
        expected, found = peer(**batch, output_hidden_states=True), ours(**batch, output_hidden_states=True)
    # transformers writes "gelu_new" as eight kernels
    exact = implementation == "sdpa" and hidden_act == "gelu_pytorch_tanh"
    assert_same(vectors(found), vectors(expected), exact)
    assert len(found.hidden_states) == layers * inner + 1
    assert_same(found.hidden_states, expected.hidden_states, exact)


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new", "relu", "silu"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_bert(hidden_act, implementation, pair, batch):
    peer, ours = pair("bert", "Model", implementation=implementation, num_hidden_layers=4, hidden_act=hidden_act)
    with torch.no_grad():
        expected, found = peer(**batch, output_hidden_states=True), ours(**batch, output_hidden_states=True)
    exact = implementation == "sdpa" and hidden_act != "gelu_new"
    assert_same(vectors(found), vectors(expected), exact)
    assert_same(found.hidden_states, expected.hidden_states, exact)


@pytest.mark.parametrize("model", [ALBERT, BERT], ids=["albert", "bert"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_attention_probabilities(model, implementation, pair, batch):
    model_type, fields = model
    peer, ours = pair(model_type, "Model", implementation=implementation, **fields)
    peer.set_attn_implementation("eager")
    with torch.no_grad():
        expected = peer(**batch, output_attentions=True)
        found = ours(**batch, output_attentions=True)
        vectors_alone = ours(**batch).last_hidden_state
        ours.set_attn_implementation("eager")
        eager = ours(**batch, output_attentions=True)
    assert len(found.attentions) == 3
    assert_same(found.attentions, expected.attentions, exact=False)
    assert_same(found.attentions, eager.attentions, exact=True)
    assert_same([found[0], vectors_alone], [expected[0]] * 2, exact=False)
    padding = ~batch["attention_mask"].bool()[:, None, None].expand_as(found.attentions[0])
    assert all((attention[padding] == 0).all() for attention in found.attentions)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("model", [ALBERT, BERT], ids=["albert", "bert"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_heads_and_losses(head, model, implementation, pair, inputs_of, labels_of):
    model_type, fields = model
    peer, ours = pair(model_type, head, implementation=implementation, num_labels=2, **fields)
    inputs, labels = inputs_of(head), labels_of(head, sentence_label(peer))
    with torch.no_grad():
        expected, found = peer(**inputs).to_tuple(), ours(**inputs).to_tuple()
        assert_same(found, expected, exact=implementation == "sdpa")
        if labels:
            found = ours(**inputs, **labels)
            torch.testing.assert_close(found.loss, peer(**inputs, **labels).loss, atol=1e-5, rtol=1e-6)
    if head == "ForPreTraining":
        torch.testing.assert_close(found.loss, found.prediction_loss + found.sentence_loss)


def gradients_like_theirs(model, model_type):
    """The gradients of our model, under the names of transformers' class."""
    of_gradients = copy.deepcopy(model)
    for parameter, source in zip(of_gradients.parameters(), model.parameters(), strict=True):
        parameter.data = torch.zeros_like(source) if source.grad is None else source.grad.clone()
    return dict(of_gradients.to_transformers(model_type).named_parameters())


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    ("model_type", "fields"),
    [
        ALBERT,
        ("albert", {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2, "hidden_act": "gelu_new"}),
        BERT,
    ],
    ids=["albert", "albert in groups", "bert"],
)
def test_gradients_in_training(head, model_type, fields, pair, inputs_of, labels_of):
    peer, ours = pair(model_type, head, num_labels=2, **fields)
    inputs, labels = inputs_of(head), labels_of(head, sentence_label(peer))
    for model in (peer, ours):
        output = model.train()(**inputs, **labels)
        loss = output.loss if labels else (output.last_hidden_state**2).mean() + (output.pooler_output**2).mean()
        loss.backward()
    found = gradients_like_theirs(ours, model_type)
    moved = 0
    for name, parameter in peer.named_parameters():
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(found[name], expected, atol=1e-5, rtol=1e-4)
        moved += int(expected.any())
    assert moved > 20


@pytest.mark.parametrize("head", ["ForPreTraining", "ForMaskedLM"])
@pytest.mark.parametrize("model", [ALBERT, BERT], ids=["albert", "bert"])
def test_predicting_labelled_positions_only_changes_nothing(head, model, pair, inputs_of, labels_of):
    model_type, fields = model
    peer, ours = pair(model_type, head, **fields)
    inputs, labels = inputs_of(head), labels_of(head, sentence_label(peer))
    ours.train()
    results = {}
    for sparse in (True, False):
        ours.config.sparse_prediction = sparse
        ours.zero_grad()
        output = ours(**inputs, **labels)
        output.loss.backward()
        logits = output["prediction_logits" if head == "ForPreTraining" else "logits"]
        results[sparse] = output.loss, logits, [parameter.grad.clone() for parameter in ours.parameters()]
    (loss, logits, gradients), (dense_loss, dense_logits, dense_gradients) = results[True], results[False]
    predicted = labels["labels"] != -100
    assert logits.shape == (predicted.sum(), ours.config.vocab_size)
    assert dense_logits.shape == (*predicted.shape, ours.config.vocab_size)
    torch.testing.assert_close(logits, dense_logits[predicted], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(loss, dense_loss)
    torch.testing.assert_close(loss, peer(**inputs, **labels).loss)
    torch.testing.assert_close(gradients, dense_gradients, atol=1e-6, rtol=1e-5)
    ours.config.sparse_prediction = True
    with torch.no_grad():
        in_evaluation = ours.eval()(**inputs, **labels)
    torch.testing.assert_close(in_evaluation.loss, loss)
    assert in_evaluation[3 if head == "ForPreTraining" else 1].shape == dense_logits.shape


@pytest.mark.parametrize("model", [ALBERT, BERT], ids=["albert", "bert"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_padding_on_the_left_is_padding_on_the_right(model, implementation, pair, batch):
    model_type, fields = model
    peer, ours = pair(model_type, "Model", implementation=implementation, **fields)
    lengths = batch["attention_mask"].sum(1)

    def to_the_left(values):
        return torch.stack([row.roll(len(row) - int(length)) for row, length in zip(values, lengths, strict=True)])

    on_the_left = {name: to_the_left(values) for name, values in batch.items()}
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        expected, found = peer(**batch), ours(**on_the_left)
    found_right = torch.stack(
        [row.roll(int(length) - len(row), 0) for row, length in zip(found[0], lengths, strict=True)]
    )
    torch.testing.assert_close(found_right[real], expected[0][real], atol=1e-5, rtol=0)
    torch.testing.assert_close(found.pooler_output, expected.pooler_output, atol=1e-5, rtol=0)


@pytest.mark.parametrize("model", [ALBERT, BERT], ids=["albert", "bert"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_other_inputs(model, implementation, pair, batch):
    model_type, fields = model
    peer, ours = pair(model_type, "Model", implementation=implementation, **fields)
    ids, mask, segments = batch.values()
    length = ids.shape[1]
    words = torch.randn(*ids.shape, ours.config.embedding_size)
    seen = mask[:, None, None].bool() & torch.ones(length, length).tril().bool()
    added = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
    positions = torch.arange(length).flip(0)[None]
    cases = [
        {"input_ids": ids},
        {"input_ids": ids, "attention_mask": mask.bool()},
        {"input_ids": ids, "attention_mask": mask.float()},
        {"input_ids": ids.int(), "attention_mask": mask, "token_type_ids": segments.int()},
        {"input_ids": ids, "attention_mask": mask, "position_ids": positions},
        {"input_ids": ids, "attention_mask": mask, "position_ids": positions.expand(3, -1)},
        {"inputs_embeds": words, "attention_mask": mask, "token_type_ids": segments},
        {"input_ids": ids, "attention_mask": added},
        *([{"input_ids": ids, "attention_mask": seen}] if implementation == "sdpa" else []),
    ]
    with torch.no_grad():
        for inputs in cases:
            expected = peer(**inputs)
            assert_same(vectors(ours(**inputs)), vectors(expected), exact=implementation == "sdpa")
            with_probabilities = ours(**inputs, output_attentions=True)
            torch.testing.assert_close(with_probabilities[0], expected[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("model", [ALBERT, BERT], ids=["albert", "bert"])
def test_double_precision(model, pair, batch):
    model_type, fields = model
    for implementation in IMPLEMENTATIONS:
        peer, ours = pair(model_type, "Model", implementation=implementation, **fields)
        with torch.no_grad():
            expected, found = peer.double()(**batch), ours.double()(**batch)
        assert found[0].dtype == torch.float64
        torch.testing.assert_close(found[0], expected[0], atol=1e-13, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("model", [ALBERT, BERT], ids=["albert", "bert"])
def test_half_precision(model, dtype, pair, batch):
    model_type, fields = model
    peer, ours = pair(model_type, "ForMaskedLM", **fields)
    with torch.no_grad():
        assert_same([ours.to(dtype)(**batch).logits], [peer.to(dtype)(**batch).logits], exact=True)


def test_dropout_draws_as_bert_does(pair, batch):
    """Every place of dropout, in the same order: with one seed the two models drop the same."""
    peer, ours = pair("bert", "Model", num_hidden_layers=3, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    outputs = []
    for model in (peer, ours):
        torch.manual_seed(1)
        outputs.append(model.train()(**batch).last_hidden_state)
    assert torch.equal(*outputs)
    assert not torch.equal(outputs[0], ours.eval()(**batch).last_hidden_state)


@pytest.mark.parametrize("model", [ALBERT, BERT], ids=["albert", "bert"])
def test_outputs_stand_in_the_order_of_transformers(model, pair, batch):
    model_type, fields = model
    peer, ours = pair(model_type, "Model", implementation="eager", **fields)
    options = {"output_hidden_states": True, "output_attentions": True}
    with torch.no_grad():
        expected, found = peer(**batch, **options), ours(**batch, **options)
        as_tuple = ours(**batch, **options, return_dict=False)
    names = ["last_hidden_state", "pooler_output", "hidden_states", "attentions"]
    assert list(expected)[:4] == names
    assert list(found) == names
    assert_same([found[1], as_tuple[1]], [expected[1]] * 2, exact=False)


@pytest.mark.parametrize("head", HEADS)
def test_arguments_have_the_names_of_transformers(head):
    ours = inspect.signature(getattr(hf_lineage, f"LineageAlbert{head}").forward).parameters
    theirs = inspect.signature(getattr(transformers, f"Albert{head}").forward).parameters
    assert set(theirs) - set(ours) <= {"kwargs"}
    assert list(ours)[:6] == list(theirs)[:6]
