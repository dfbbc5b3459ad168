"""The model: the paper's size, the paper's forward pass, and a loss that is its cross entropy."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from dense_oracle import random_graph
from topoter.decoder import TransformationDecoder
from topoter.encoders import GCN, GIN, SGC
from topoter.model import TopoTERModel
from topoter.transformation import exact

GRAPH = random_graph(20, 0.25, 0)
X = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))


def transformation(seed: int = 0):
    return exact(GRAPH, 0.5, torch.Generator().manual_seed(seed))


def model_with(encoder) -> TopoTERModel:
    generator = torch.Generator().manual_seed(0)
    encoder.initialize("glorot", generator)
    decoder = TransformationDecoder(encoder.out_channels, scale_edges=True)
    decoder.initialize(generator)
    return TopoTERModel(encoder, decoder)


each_encoder = pytest.mark.parametrize(
    "make", [lambda: SGC(6, 8), lambda: GCN(6, 8), lambda: GIN(6, 4)], ids=["sgc", "gcn", "gin"]
)


def test_the_model_for_cora_has_the_papers_number_of_parameters():
    model = TopoTERModel(SGC(1433, 512), TransformationDecoder(512))
    assert sum(parameter.numel() for parameter in model.parameters()) == 736_260


@each_encoder
def test_the_forward_pass_is_encode_twice_subtract_decode(make):
    model = model_with(make()).eval()
    t = transformation()
    logits = model(X, t)
    assert logits.shape == (t.pairs.size(1), 4)
    h, h_t = model.encoder(X, t.adjacency), model.encoder(X, t.adjacency_t)
    assert h.shape == (20, model.encoder.out_channels)
    torch.testing.assert_close(model.delta(X, t), h_t - h)
    torch.testing.assert_close(logits, model.decoder(h_t - h, t.pairs))


@each_encoder
@pytest.mark.parametrize("kernels", ["fast", "plain"])
def test_the_loss_is_the_cross_entropy_of_the_forward_pass(monkeypatch, make, kernels):
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    model = model_with(make()).eval()
    t = transformation()
    loss, confusion = model.loss(X, t)
    logits = model(X, t)
    torch.testing.assert_close(loss, functional.cross_entropy(logits, t.pair_type), rtol=1e-5, atol=0)
    assert int(confusion.diagonal().sum()) == int((logits.argmax(1) == t.pair_type).sum())
    loss.backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)
    assert float(model.decoder.layers[0].weight.grad.abs().max()) > 0


def test_features_are_projected_once_for_both_graphs(monkeypatch):
    model = model_with(SGC(6, 8))
    calls = []
    project = model.encoder.project
    monkeypatch.setattr(model.encoder, "project", lambda x: calls.append(x) or project(x))
    model.loss(X, transformation())
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
