"""The model: the paper's size, the paper's forward pass, and a loss that is the weighted sum of its objectives."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from dense_oracle import random_graph
from topoter.encoders import GCN, GIN, SGC
from topoter.errors import UsageError
from topoter.pretext.objectives import MutualInformation, TypesFromChange, TypesFromPair
from topoter.pretext.transformation import exact
from topoter.training import TopoTERModel

GRAPH = random_graph(20, 0.25, 0)
X = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))


def transformation(seed: int = 0):
    return exact(GRAPH, 0.5, torch.Generator().manual_seed(seed))


def model_with(encoder) -> TopoTERModel:
    generator = torch.Generator().manual_seed(0)
    encoder.initialize("glorot", generator)
    types = TypesFromChange(encoder.out_channels, scale_edges=True)
    types.initialize(generator)
    return TopoTERModel(encoder, {"types-from-change": (types, 1.0)})


def decoder_of(model: TopoTERModel):
    return model.learned["types-from-change"].decoder


each_encoder = pytest.mark.parametrize(
    "make", [lambda: SGC(6, 8), lambda: GCN(6, 8), lambda: GIN(6, 4)], ids=["sgc", "gcn", "gin"]
)


def test_the_model_for_cora_has_the_papers_number_of_parameters():
    model = TopoTERModel(SGC(1433, 512), {"types-from-change": (TypesFromChange(512), 1.0)})
    assert sum(parameter.numel() for parameter in model.parameters()) == 736_260


@each_encoder
def test_the_forward_pass_is_encode_twice_subtract_decode(make):
    model = model_with(make()).eval()
    t = transformation()
    h, h_t = model.encoder(X, t.adjacency), model.encoder(X, t.adjacency_t)
    assert h.shape == (20, model.encoder.out_channels)
    signal = model.encoder.project(X)
    torch.testing.assert_close(model.delta(signal, t), h_t - h)
    for found, expected in zip(model.representations(signal, t), (h, h_t)):
        torch.testing.assert_close(found, expected)


@each_encoder
@pytest.mark.parametrize("kernels", ["fast", "plain"])
def test_the_loss_is_the_cross_entropy_of_the_types(monkeypatch, make, kernels):
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    model = model_with(make()).eval()
    t = transformation()
    loss, metrics = model(X, t)
    logits = decoder_of(model)(model.encoder(X, t.adjacency_t) - model.encoder(X, t.adjacency), t.pairs)
    torch.testing.assert_close(loss, functional.cross_entropy(logits, t.pair_type), rtol=1e-5, atol=0)
    right = sum(int(metrics[name].counts[0]) for name in metrics if name.startswith("accuracy_"))
    assert right == int((logits.argmax(1) == t.pair_type).sum())
    loss.backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)
    assert float(decoder_of(model).layers[0].weight.grad.abs().max()) > 0


@each_encoder
def test_the_short_way_of_the_papers_term_equals_the_long_one(make):
    """Alone it is computed from dH; beside another term from H and H~."""
    model = model_with(make()).eval()
    types = model.learned["types-from-change"]
    beside = TopoTERModel(model.encoder, {"types": (types, 1.0), "nothing": (lambda h, h_t, t: (h.sum() * 0, {}), 1.0)})
    (alone, said), (together, said_beside) = model(X, transformation()), beside.eval()(X, transformation())
    torch.testing.assert_close(together, alone)
    assert {name: said[name].value for name in said} == {name: said_beside[name].value for name in said}


def test_the_loss_is_the_weighted_sum_of_the_terms():
    encoder = SGC(6, 8)
    types, pair, shared = TypesFromChange(8), TypesFromPair(8), MutualInformation(8)
    pair.initialize(torch.Generator().manual_seed(0))
    t = transformation()
    h, h_t = encoder(X, t.adjacency), encoder(X, t.adjacency_t)
    expected = {"a": types(h, h_t, t)[0], "b": 0.5 * pair(h, h_t, t)[0], "c": 2 * shared(h, h_t, t)[0]}
    model = TopoTERModel(encoder, {"a": (types, 1.0), "b": (pair, 0.5), "c": (shared, 2.0)})
    loss, metrics = model(X, t)
    torch.testing.assert_close(loss, sum(expected.values()))
    for name, part in expected.items():
        torch.testing.assert_close(metrics[f"{name}_loss"], part.detach())
    assert {"prior_entropy", "accuracy_add", "pair_accuracy_add", "agreement"} <= set(metrics)


def test_metrics_of_the_same_name_are_told_apart():
    def first(h, h_t, t):
        return h.sum(), {"size": 1.0}

    def second(h, h_t, t):
        return h.sum(), {"size": 2.0}

    metrics = TopoTERModel(SGC(6, 8), {"first": (first, 1.0), "second": (second, 1.0)})(X, transformation())[1]
    assert (metrics["size"], metrics["second_size"]) == (1.0, 2.0)


@pytest.mark.parametrize("answer", [lambda h: h.sum(), lambda h: (h.sum(), None), lambda h: None])
def test_an_objective_that_answers_something_else_is_named(answer):
    model = TopoTERModel(SGC(6, 8), {"mine": (lambda h, h_t, t: answer(h), 1.0)})
    with pytest.raises(UsageError, match=r"^The objective 'mine' must return \(loss, metrics\)\. Got "):
        model(X, transformation())


def test_terms_with_weights_are_part_of_the_model_and_others_are_not():
    model = TopoTERModel(SGC(6, 8), {"pair": (TypesFromPair(8), 1.0), "mine": (lambda h, h_t, t: (h.sum(), {}), 1.0)})
    assert {name.split(".")[0] for name in model.state_dict()} == {"encoder", "learned"}
    assert list(model.learned) == ["pair"]


def test_a_batch_counts_by_its_pairs():
    t = transformation()
    assert model_with(SGC(6, 8)).batch_weight(X, t) == t.pairs.size(1)


def test_features_are_projected_once_for_both_graphs(monkeypatch):
    model = model_with(SGC(6, 8))
    calls = []
    project = model.encoder.project
    monkeypatch.setattr(model.encoder, "project", lambda x: calls.append(x) or project(x))
    model(X, transformation())
    assert len(calls) == 1


@pytest.mark.parametrize("training", [True, False])
def test_embedding_is_in_evaluation_mode_and_leaves_the_mode_as_it_was(training):
    model = model_with(GIN(6, 4)).train(training)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    h = model.embed(X, GRAPH)
    assert model.training is training
    assert not h.requires_grad
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    torch.testing.assert_close(h, model.eval().encoder(X, GRAPH))
