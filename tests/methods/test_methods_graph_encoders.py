"""GraphCL and GraphMAE: layers against PyG's, losses against naive loops, changes of graphs by what they keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, SAGEConv

from topoter.datasets import load_graphs
from topoter.encoders import GIN
from topoter.methods import build
from topoter.methods.graph_layers import AGGREGATIONS, GraphLayers, NodeFeatures, average, largest
from topoter.methods.graphcl import CHANGES, GraphCL, contrast
from topoter.methods.masked_features import scaled_cosine_error
from topoter.methods.substructures import read

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def graphs():
    alone = Data(x=torch.eye(7)[:1], edge_index=torch.empty(2, 0, dtype=torch.int64))
    return [*load_graphs("mutag")[:20], alone]


@pytest.fixture(scope="module")
def batch(graphs):
    graph_set = read(graphs)
    return graph_set.batch(torch.arange(len(graph_set)))


# ---- layers ----------------------------------------------------------------------------------------------------------


def test_a_layer_that_sums_is_pygs(batch):
    x, adjacency = batch
    layers = GraphLayers(7, 5, 2, epsilon=True).eval()
    with torch.no_grad():
        layers.epsilon.copy_(torch.tensor([0.3, -0.2]))
        convs = [GINConv(mlp, eps=float(eps)) for mlp, eps in zip(layers.maps, layers.epsilon)]  # draws weights anew
        first, second = layers(x, adjacency)
        torch.testing.assert_close(first, layers.ends[0](convs[0](x, adjacency.edge_index)))
        torch.testing.assert_close(second, layers.ends[1](convs[1](first, adjacency.edge_index)))


@pytest.mark.parametrize("name", ["mean", "max"])
def test_means_and_maxima_are_pygs_over_the_node_and_its_neighbours(batch, name):
    x, adjacency = batch
    h = torch.randn(len(x), 6, generator=torch.Generator().manual_seed(0), requires_grad=True)
    conv = SAGEConv(6, 6, aggr=name, root_weight=False, bias=False)
    conv.lin_l.weight.data = torch.eye(6)
    loops = torch.arange(len(x)).repeat(2, 1)
    expected = conv(h, torch.cat([adjacency.edge_index, loops], dim=1))
    found = {"mean": average, "max": largest}[name](h, adjacency)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(out.square().sum(), h, retain_graph=True)[0] for out in (found, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_batch_of_graphs_is_its_graphs_one_by_one(graphs, aggregation):
    graph_set = read(graphs)
    layers = GraphLayers(7, 5, 3, aggregation=aggregation, depth=1).eval()
    whole = layers(*graph_set.batch(torch.arange(len(graphs))))[-1]
    single = [layers(*graph_set.batch(torch.tensor([number])))[-1] for number in range(len(graphs))]
    torch.testing.assert_close(whole, torch.cat(single))


def test_nodes_without_features_get_their_degrees(graphs):
    plain = [Data(x=torch.ones(g.num_nodes, 1), edge_index=g.edge_index) for g in graphs]
    features = NodeFeatures(plain, most=2)
    assert features.width == 3
    x, adjacency = features.first.batch(torch.tensor([0, 20]))
    degree = torch.bincount(adjacency.edge_index[0], minlength=len(x))
    assert x.argmax(1).tolist() == degree.clamp(max=2).tolist()
    assert (x.sum(1) == 1).all()
    assert NodeFeatures(graphs).width == 7
    star = Data(x=torch.ones(9, 1), edge_index=torch.stack([torch.zeros(8, dtype=int), torch.arange(1, 9)]))
    assert features([star]).batch(torch.tensor([0]))[0].argmax(1).tolist() == [2] + [1] * 8  # larger: the last


# ---- GraphCL ---------------------------------------------------------------------------------------------------------


def changed(batch, name, share=0.2):
    x, adjacency = batch
    chosen = torch.arange(adjacency.ptr.numel() - 1) % 2 == 0
    out = CHANGES[name](x, adjacency, chosen, share, torch.Generator().manual_seed(0))
    return chosen, out


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_leaves_other_graphs_as_they_are(batch, name):
    x, adjacency = batch
    chosen, (x_t, adjacency_t) = changed(batch, name)
    for number in (~chosen).nonzero().squeeze(1).tolist():
        before, after = (slice(*part.ptr[number : number + 2].tolist()) for part in (adjacency, adjacency_t))
        torch.testing.assert_close(x[before], x_t[after])
        pieces = []
        for part, nodes in ((adjacency, before), (adjacency_t, after)):
            inside = (part.edges[0] >= nodes.start) & (part.edges[0] < nodes.stop)
            pieces.append((part.edges[:, inside] - nodes.start).tolist())
        assert pieces[0] == pieces[1]
    graph = torch.repeat_interleave(adjacency_t.ptr.diff())
    assert (graph[adjacency_t.edges[0]] == graph[adjacency_t.edges[1]]).all()  # no edge between graphs
    assert adjacency_t.num_nodes == len(x_t) == int(adjacency_t.ptr[-1])


def test_how_much_each_change_takes(batch):
    x, adjacency = batch
    sizes = adjacency.ptr.diff()
    chosen, (_, dropped) = changed(batch, "drop nodes")
    assert (dropped.ptr.diff() == torch.where(chosen, sizes - (0.2 * sizes).long(), sizes)).all()
    chosen, (_, part) = changed(batch, "subgraph")
    assert (part.ptr.diff() == torch.where(chosen, (0.8 * sizes).ceil().long(), sizes)).all()  # all are connected
    chosen, (x_t, _) = changed(batch, "mask features")
    differs = (x_t != x).any(1)
    graph = torch.repeat_interleave(sizes)
    counts = torch.bincount(graph[differs], minlength=len(sizes))
    assert (counts == torch.where(chosen, (0.2 * sizes).long(), 0)).all()
    _, (_, moved) = changed(batch, "perturb edges", share=1.0)
    assert 0 < moved.num_edges <= adjacency.num_edges


def test_a_subgraph_is_connected(graphs):
    from scipy.sparse.csgraph import connected_components

    graph_set = read(graphs[:20])
    x, adjacency = graph_set.batch(torch.arange(20))
    generator = torch.Generator().manual_seed(1)
    _, part = CHANGES["subgraph"](x, adjacency, torch.ones(20, dtype=torch.bool), 0.5, generator)
    operator = part.summed
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((operator.values, operator.indices, operator.indptr), shape=(part.num_nodes,) * 2)
    assert connected_components(matrix)[0] == 20


def test_the_contrast_is_the_naive_sum():
    generator = torch.Generator().manual_seed(0)
    z, z_t = torch.randn(6, 4, generator=generator), torch.randn(6, 4, generator=generator)
    expected = 0.0
    for i in range(6):
        similarity = [float(torch.cosine_similarity(z[i], z_t[j], dim=0)) / 0.2 for j in range(6)]
        others = sum(math.exp(value) for j, value in enumerate(similarity) if j != i)
        expected -= math.log(math.exp(similarity[i]) / others) / 6
    assert float(contrast(z, z_t, 0.2)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["graphcl", "graphmae"])
def test_training_lowers_the_loss_and_the_seed_decides_everything(graphs, name):
    parameters = {"epochs": 12, "hidden_channels": 16, "learning_rate": 5e-3, "batch_size": 8}
    one, again, other = (build(name, "graph", parameters).fit(graphs, seed) for seed in (0, 0, 1))
    assert np.mean(one.losses[-3:]) < np.mean(one.losses[:3])
    assert one.losses == again.losses != other.losses
    np.testing.assert_array_equal(one.embed(graphs), again.embed(graphs))
    assert one.embed(graphs[:4]).shape == (4, 48 if name == "graphcl" else 16)


def test_graphcl_compares_each_graph_with_its_own_copy(batch):
    """Without any change the copies are the graphs themselves."""
    module = GraphCL(GIN(7, 4, 2), 0.0, 0.2, "sum", 0).eval()
    x, adjacency = batch
    with torch.no_grad():
        z = module.project(x, adjacency)
        assert float(module(x, adjacency)[0]) == pytest.approx(float(contrast(z, z, 0.2)), rel=1e-5)


# ---- GraphMAE --------------------------------------------------------------------------------------------------------


def masked_model(**changes):
    settings = {"hidden_channels": 8, "replace_rate": 0.2, "power": 2.0, "dropout": 0.0} | changes
    return build("graphmae", "graph", settings).module(7, 0)


def test_masked_nodes_have_the_token_or_another_nodes_features(batch):
    x, _ = batch
    module = masked_model()
    torch.nn.init.constant_(module.token, 7.0)
    out, masked = module.mask(x)
    assert len(masked) == int(0.5 * len(x))
    token = (out == 7).all(1)
    assert int(token.sum()) == len(masked) - int(0.2 * len(masked))
    assert set(token.nonzero().squeeze(1).tolist()) <= set(masked.tolist())
    rest = torch.ones(len(x), dtype=torch.bool)
    rest[masked] = False
    torch.testing.assert_close(out[rest], x[rest])


def test_the_decoder_sees_nothing_of_a_masked_node_but_its_neighbours(batch):
    """A masked node without edges: whatever the encoder made of it, the decoder gives the same."""
    x, adjacency = batch
    module = masked_model(mask_rate=1.0, replace_rate=0.0).eval()
    seen = []
    hook = module.decoder.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    module(x, adjacency)
    hook.remove()
    assert not seen[0].any()


def test_the_scaled_cosine_error_by_hand():
    found, true = torch.tensor([[1.0, 0], [1, 1], [0, 2]]), torch.tensor([[2.0, 0], [1, 0], [3, 0]])
    expected = (0 + (1 - math.sqrt(0.5)) ** 3 + 1) / 3
    assert float(scaled_cosine_error(found, true, 3)) == pytest.approx(expected, rel=1e-5)


def test_the_number_of_weights_is_that_of_the_authors_code():
    """Five GIN layers of 32 with inner and outer batch norm and PReLU on MUTAG's 7 labels, as configured there."""
    module = build("graphmae", "graph", {"hidden_channels": 32, "num_layers": 5}).module(7, 0)
    mlp = lambda first, last: first * 32 + 32 + 64 + 1 + 32 * last + last  # noqa: E731
    encoder = mlp(7, 32) + 4 * mlp(32, 32) + 5 * (64 + 1)
    assert sum(p.numel() for p in module.parameters()) == encoder + 32 * 32 + mlp(32, 7) + 7
