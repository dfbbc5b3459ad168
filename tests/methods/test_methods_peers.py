"""Peers without labels: their layers against PyG's, their losses against sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv

from dense_oracle import as_set, dense_adjacency, dense_propagation, random_graph
from topoter.methods import build
from topoter.methods.attention import Attention
from topoter.methods.convolutions import Convolutions
from topoter.methods.gmi import Bilinear, GraphicalInformation, mean_of_neighbours
from topoter.methods.masked_edges import MASKS
from topoter.methods.masked_features import scaled_cosine_error
from topoter.methods.pretrained import cosine
from topoter.methods.views import contrast, correlation_loss, draw_view
from topoter.methods.walk_embeddings import biased_walks
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features

pytestmark = pytest.mark.usefixtures("one_thread")


def seeded_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def adjacency() -> Adjacency:
    return random_graph(30, 0.2, seed=1)


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    """Mostly zeros, as words are."""
    return torch.rand(30, 12, generator=seeded_generator(5)) * (torch.rand(30, 12, generator=seeded_generator(6)) < 0.1)


def test_convolutions_are_those_of_pyg(adjacency, x):
    ours = Convolutions([12, 8, 5], seeded_generator(), activation="elu")
    theirs = [GCNConv(12, 8), GCNConv(8, 5)]
    h = x
    for layer, own in zip(theirs, ours.layers):
        torch.nn.init.normal_(own.bias, generator=seeded_generator(3))
        layer.lin.weight.data, layer.bias.data = own.weight.data, own.bias.data
        h = torch.nn.functional.elu(layer(h, adjacency.edge_index))
    for features in (x, prepare_features(x)):  # dense, and kept sparse
        torch.testing.assert_close(ours(features, adjacency), h)
    columns = torch.tensor([0.0, 1.0] * 6)
    torch.testing.assert_close(ours(prepare_features(x), adjacency, columns), ours(x * columns, adjacency))


def test_a_view_loses_edges_in_both_directions_and_whole_columns(adjacency, x):
    seen, columns = draw_view(x, adjacency, 0.5, 0.5, seeded_generator())
    assert as_set(seen.edges) < as_set(adjacency.edges)
    assert 0.3 < seen.num_edges / adjacency.num_edges < 0.7
    assert set(columns.tolist()) == {0.0, 1.0}
    same, columns = draw_view(x, adjacency, 0.0, 0.0, seeded_generator())
    assert same is adjacency
    assert columns.sum() == 12


def test_the_correlations_of_cca_ssg_written_out():
    h, other = (torch.randn(9, 3, generator=seeded_generator(seed)).double() for seed in (0, 1))
    found = correlation_loss(h.float(), other.float(), 0.01)
    z = [(view - view.mean(0)) / view.std(0) for view in (h, other)]
    agreement = sum(float(z[0][n, f] * z[1][n, f]) for n in range(9) for f in range(3)) / 9
    apart = 0.0
    for view in z:
        for f in range(3):
            for g in range(3):
                correlation = sum(float(view[n, f] * view[n, g]) for n in range(9)) / 9
                apart += (correlation - (f == g)) ** 2
    assert float(found) == pytest.approx(-agreement + 0.01 * apart, rel=1e-4)


def test_the_contrast_of_grace_written_out():
    z, other = (torch.randn(6, 4, generator=seeded_generator(seed)).double() for seed in (0, 1))

    def similarity(a, b):
        return math.exp(float(a @ b / a.norm() / b.norm()) / 0.5)

    losses = []
    for first, second in ((z, other), (other, z)):
        for i in range(6):
            between = sum(similarity(first[i], second[j]) for j in range(6))
            within = sum(similarity(first[i], first[j]) for j in range(6) if j != i)
            losses.append(-math.log(similarity(first[i], second[i]) / (between + within)))
    assert float(contrast(z, other, 0.5)) == pytest.approx(sum(losses) / 12)


def test_grace_contrasts_a_sample_where_it_is_asked_to(adjacency, x):
    options = {"out_channels": 8, "num_layers": 1, "drop_edges": 0.2, "drop_features": 0.0, "temperature": 0.5}
    few, every = (
        build("grace", "node", {**options, "contrasted": count}).module(12, 0)(x, adjacency)[0].item()
        for count in (4, None)
    )
    assert few < every  # fewer nodes to be told from
    assert few < math.log(2 * 4) + 1 / 0.5


def test_the_copy_of_bgrl_follows_the_encoder_and_gets_no_gradient(adjacency, x):
    options = {"predictor_channels": 6, "drop_edges": 0.1, "drop_features": 0.1, "momentum": 0.9, "epochs": 10}
    module = build("bgrl", "node", {"hidden_channels": 8, "out_channels": 5, **options}).module(12, 0)
    before = [parameter.clone() for parameter in module.target.parameters()]
    module(x, adjacency)[0].backward()  # nothing to follow before the first step
    assert all(torch.equal(a, b) for a, b in zip(before, module.target.parameters()))
    assert all(parameter.grad is None for parameter in module.target.parameters())
    assert all(parameter.grad is not None for parameter in module.encoder.parameters())
    module(x, adjacency)
    kept = 1 - 0.1 * 0.5 * (1 + math.cos(math.pi / 10))
    for old, new, followed in zip(before, module.target.parameters(), module.encoder.parameters()):
        torch.testing.assert_close(new, kept * old + (1 - kept) * followed.detach())


def test_learning_rates_rise_and_fall():
    factor = cosine(20, warm_up=4)
    assert [factor(done) for done in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert factor(12) == pytest.approx(0.5)
    assert factor(20) == pytest.approx(0.0)


@pytest.mark.parametrize("mean", [False, True])
def test_attention_is_that_of_pyg(adjacency, x, mean):
    ours = Attention(12, 5, 3, seeded_generator(), mean=mean)
    theirs = GATConv(12, 5, 3, concat=not mean)
    theirs.lin.weight.data = ours.weight.data.clone()
    theirs.att_src.data, theirs.att_dst.data = ours.source.data[None].clone(), ours.target.data[None].clone()
    h, expected = ours(prepare_features(x), adjacency), theirs(x, adjacency.edge_index)
    torch.testing.assert_close(h, expected)
    (h**2).sum().backward()
    (expected**2).sum().backward()
    for own, other in ((ours.weight, theirs.lin.weight), (ours.source, theirs.att_src[0]), (ours.bias, theirs.bias)):
        grad = theirs.att_src.grad[0] if own is ours.source else other.grad
        torch.testing.assert_close(own.grad, grad, rtol=1e-4, atol=1e-5)


def test_attention_may_sum_before_it_projects(adjacency):
    layer, h = Attention(7, 40, 1, seeded_generator()), torch.randn(30, 7, generator=seeded_generator(1))
    rows = torch.tensor([3, 0, 17])
    found = layer.summed(h, adjacency, rows) @ layer.weight.t() + layer.bias
    torch.testing.assert_close(found, layer(h, adjacency)[rows], rtol=1e-4, atol=1e-5)


def masked_features(**options):
    own = {"replace_rate": 0.2, "power": 2.0, "dropout": 0.0, "attention_dropout": 0.0, **options}
    return build("graphmae", "node", {"out_channels": 8, "heads": 2, **own}).module(12, 0)


def test_graphmae_hides_what_it_says():
    masked, is_token, source = masked_features().hide(40)
    assert masked.numel() == len(set(masked.tolist())) == 20
    replaced = (source != torch.arange(40)).nonzero().view(-1)
    assert is_token.sum() == 16
    assert set(replaced.tolist()) <= set(masked.tolist()) - set(is_token.nonzero().view(-1).tolist())
    assert len(replaced) in (3, 4)  # one may have drawn itself


def test_graphmae_encodes_hidden_nodes_as_if_their_features_were_gone(adjacency, x):
    """Rows of X W are replaced: the loss is that of replacing the rows of X."""
    module = masked_features(replace_rate=0.4)
    torch.nn.init.normal_(module.token, generator=seeded_generator(2))
    state = module.generator.get_state()
    loss, _ = module(*module.prepare(prepare_features(x), adjacency))
    module.generator.set_state(state)
    masked, is_token, source = module.hide(30)
    hidden = torch.where(is_token.unsqueeze(1), module.token, x[source])
    h = module.bridge(module.encode(hidden, adjacency))
    h = h.index_fill(0, masked, 0.0)
    found = module.decoder(h, adjacency)[masked]
    wanted = x[masked]
    cosines = (found * wanted).sum(1) / (found.norm(dim=1) * wanted.norm(dim=1)).clamp(min=1e-8)
    assert loss.item() == pytest.approx(((1 - cosines) ** 2).mean().item(), rel=1e-4)
    assert float(scaled_cosine_error(wanted + 1, wanted + 1, 3.0)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("mask", MASKS)
def test_a_hidden_edge_is_hidden_in_both_directions(mask):
    adjacency = random_graph(200, 0.03, seed=2)
    hidden = MASKS[mask](adjacency, 0.5, 3, seeded_generator())
    share = float(hidden.float().mean())
    assert 0.2 < share < 0.8
    masked, visible = adjacency.edges[:, hidden], adjacency.keep(~hidden)
    seen = as_set(visible.edge_index)
    assert not any((i, j) in seen or (j, i) in seen for i, j in as_set(masked))
    assert len(as_set(masked)) + visible.num_edges == adjacency.num_edges
    dense = dense_adjacency(visible)
    assert torch.equal(dense, dense.t())


def test_no_walk_hides_nothing():
    adjacency = random_graph(20, 0.3, seed=2)
    assert not MASKS["path"](adjacency, 0.0, 3, seeded_generator()).any()
    assert MASKS["path"](adjacency, 1.0, 1, seeded_generator()).sum() >= 10  # one step from each node with edges


def test_held_out_edges_are_not_trained_on(adjacency, x):
    options = {"hidden_channels": 8, "out_channels": 5, "decoder_channels": 4, "mask": "edge", "held_out": 0.3}
    module = build("maskgae", "node", options).module(12, 0)
    _, seen = module.prepare(x, adjacency)
    _, _, pairs, connected = module.validation
    held_out = as_set(pairs[:, connected])
    assert held_out == as_set(adjacency.edges) - as_set(seen.edges)
    assert len(held_out) > 10
    assert not as_set(pairs[:, ~connected]) & as_set(adjacency.edges)
    assert 0 <= module.auc() <= 100


def test_gmi_sums_over_neighbours_and_pairs_as_its_paper_does(adjacency, x):
    a = dense_adjacency(adjacency)
    degree = a.sum(1, keepdim=True).clamp(min=1)
    operator, h = mean_of_neighbours(adjacency), torch.randn(30, 4, generator=seeded_generator(3)).requires_grad_()
    torch.testing.assert_close(operator @ h, ((a / degree).float() @ h).detach())
    (operator @ h)[:, 0].sum().backward()
    torch.testing.assert_close(h.grad[:, 0], (a / degree).sum(0).float())

    dense = random_graph(14, 0.7, seed=3)  # fewer disconnected pairs than edges: all of them are drawn
    module = GraphicalInformation(12, 6, 1, 0)
    h = torch.randn(14, 6, generator=seeded_generator(4)).double()
    found = module.edge_loss(h, dense).item()
    wanted = dense_adjacency(dense) + torch.eye(14, dtype=torch.float64)
    p, every, edges = torch.sigmoid(h @ h.t()), 14 * 14, float(wanted.sum()) / 2
    terms = -wanted * p.log() * (every - edges) / edges - (1 - wanted) * (1 - p).log()
    assert found == pytest.approx(float(terms.mean()) * every / (every - edges), rel=1e-6)


def test_the_discriminator_of_gmi_is_the_bilinear_layer_of_torch(x):
    ours, theirs = Bilinear(12, 5, seeded_generator()), torch.nn.Bilinear(12, 5, 1)
    theirs.weight.data, theirs.bias.data = ours.weight.data[None], torch.tensor([0.3])
    ours.bias.data.fill_(0.3)
    h = torch.randn(30, 5, generator=seeded_generator(1))
    others = torch.stack([torch.arange(30).roll(shift) for shift in (1, 4)])
    own = torch.sigmoid(theirs(x, h))
    strange = torch.stack([torch.sigmoid(theirs(x[other], h)) for other in others])
    expected = (1 + torch.exp(-own)).log().mean() + (1 + torch.exp(strange)).log().mean()
    torch.testing.assert_close(ours(prepare_features(x), h, others), expected)


def test_graphter_moves_features_as_it_says(adjacency, x):
    module = build("graphter", "node", {"out_channels": 6, "share": 0.5, "decoder_channels": 4}).module(12, 0)
    state = module.generator.get_state()
    loss, _ = module(prepare_features(x), adjacency)
    module.generator.set_state(state)
    parameters = module.draw(30)
    assert 5 < int((parameters != 0).any(1).sum()) < 25
    assert float(parameters.abs().max()) <= 0.5
    length = float(x.square().sum(1).mean().sqrt())
    moved = (1 + parameters[:, :1]) * x + parameters[:, 1:] @ (length * module.directions)
    found = module.decoder(torch.cat([module.encoder(x, adjacency), module.encoder(moved, adjacency)], dim=1))
    assert loss.item() == pytest.approx((found - parameters / 0.5).square().mean().item(), rel=1e-4)


def test_walks_of_node2vec_lean_as_they_should():
    """From 0 to 1, then back to 0 (1/p), to 2, a neighbour of 0 (1), or to 3, which is none (1/q)."""
    adjacency, _ = Adjacency.from_edge_index(torch.tensor([[0, 1, 0, 1], [1, 2, 2, 3]]), 5)
    generator = seeded_generator()
    counts = np.zeros(5)
    while counts.sum() < 2000:
        walks = biased_walks(adjacency, 12, 0.5, 4.0, generator)
        edges = as_set(adjacency.edge_index)
        steps = zip(
            walks[:, :-2].flatten().tolist(), walks[:, 1:-1].flatten().tolist(), walks[:, 2:].flatten().tolist()
        )
        for first, second, third in steps:
            assert first == second == third == 4 or {(first, second), (second, third)} <= edges  # 4 has no edges
            if (first, second) == (0, 1):
                counts[third] += 1
    expected = np.array([2.0, 0.0, 1.0, 0.25, 0.0])
    np.testing.assert_allclose(counts / counts.sum(), expected / expected.sum(), atol=0.04)


def test_features_stand_beside_walks_with_the_same_length(adjacency, x):
    graph = _graph(adjacency, x)
    small = {"out_channels": 6, "walks": 2, "length": 6, "window": 2}
    z = build("deepwalk+features", "node", {**small, "feature_scaling": "none"}).fit(graph, 0).embed(graph)
    walked = build("deepwalk", "node", small).fit(graph, 0).embed(graph)
    assert z.shape == (30, 6 + 12)
    lengths = [np.sqrt((part**2).sum(1).mean()) for part in (z[:, :6], z[:, 6:])]
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    np.testing.assert_allclose(z[:, :6] * np.sqrt((walked**2).sum(1).mean()), walked, rtol=1e-4)


def test_the_propagation_of_all_of_them_is_the_dense_one(adjacency):
    h = torch.randn(30, 3, generator=seeded_generator(8))
    torch.testing.assert_close(adjacency.normalized @ h, (dense_propagation(dense_adjacency(adjacency)).float() @ h))


def _graph(adjacency, x):
    from torch_geometric.data import Data

    return Data(x=x, edge_index=adjacency.edge_index, num_nodes=30)
