"""Encoders: equal to PyG's layers and to the dense formula, equivariant, in a batch as one by one."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch_geometric.nn import GCNConv, GINConv, SGConv

from dense_oracle import batch_of, dense_adjacency, dense_propagation, random_graph
from topoter.encoders import GCN, GIN, SGC, Encoder, ModuleEncoder, build_encoder
from topoter.errors import UsageError
from topoter.kernels.sparse import SparseOperator
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features
from topoter.weights import INITIALIZERS

NUM_NODES, IN, HIDDEN, OUT = 20, 6, 5, 7
GRAPH = random_graph(NUM_NODES, 0.25, 0)
WEIGHTED = random_graph(NUM_NODES, 0.25, 0, weighted=True)
X = torch.randn(NUM_NODES, IN, generator=torch.Generator().manual_seed(1))

ENCODERS = [
    *(
        pytest.param(lambda k=k, n=n: SGC(IN, OUT, k, n, HIDDEN), id=f"sgc-{k}-{n}")
        for k in (1, 2, 3)
        for n in (1, 2, 3)
    ),
    *(pytest.param(lambda n=n: GCN(IN, OUT, n, HIDDEN), id=f"gcn-{n}") for n in (1, 2, 3)),
    *(pytest.param(lambda n=n: GIN(IN, HIDDEN, n), id=f"gin-{n}") for n in (1, 2, 3)),
]
each_encoder = pytest.mark.parametrize("make", ENCODERS)
KERNELS = pytest.mark.parametrize("kernels", ["fast", "plain"])


def built(make) -> Encoder:
    """An encoder with known weights, in evaluation mode, its batch norms not at their neutral start."""
    encoder = make()
    generator = torch.Generator().manual_seed(0)
    encoder.initialize("glorot", generator)
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm1d):
            for tensor in (module.running_mean, module.running_var, module.weight, module.bias):
                tensor.data.uniform_(0.5, 1.5, generator=generator)
    return encoder.eval()


def copied(layer: nn.Linear, conv: nn.Module) -> nn.Module:
    """A PyG layer with the weights of ours."""
    weights = dict(conv.named_parameters())
    (weight,) = (tensor for name, tensor in weights.items() if name.endswith("weight"))
    with torch.no_grad():
        weight.copy_(layer.weight)
        weights.get("bias", weights.get("lin.bias")).copy_(layer.bias)
    return conv


def by_pyg(encoder: Encoder, x: torch.Tensor, adjacency: Adjacency) -> torch.Tensor:
    """The same encoder, layer by layer out of PyG."""
    edge_index, edge_weight = adjacency.edge_index, adjacency.edge_weight
    h = x
    if isinstance(encoder, SGC):
        for layer in encoder.layers:
            conv = copied(layer, SGConv(layer.in_features, layer.out_features, K=encoder.order))
            h = functional.leaky_relu(conv(h, edge_index, edge_weight), 0.1)
        return h
    if isinstance(encoder, GCN):
        for number, layer in enumerate(encoder.layers):
            conv = copied(layer, GCNConv(layer.in_features, layer.out_features))
            h = conv(h if number == 0 else torch.relu(h), edge_index, edge_weight)
        return h
    outputs = []
    for first, second, norm in zip(encoder.first, encoder.second, encoder.norms):
        conv = GINConv(nn.Sequential(nn.Linear(*first.weight.t().shape), nn.ReLU(), nn.Linear(*second.weight.shape)))
        conv.nn[0].load_state_dict(first.state_dict())
        conv.nn[2].load_state_dict(second.state_dict())
        h = norm(torch.relu(conv(h, edge_index)))
        outputs.append(h)
    return torch.cat(outputs, dim=1)


def by_formula(encoder: Encoder, x: torch.Tensor, adjacency: Adjacency) -> torch.Tensor:
    """The same encoder by dense matrices in float64."""
    a = dense_adjacency(adjacency)
    s = dense_propagation(a)
    h = x.double()

    def linear(layer: nn.Linear, h: torch.Tensor) -> torch.Tensor:
        return h @ layer.weight.double().t() + layer.bias.double()

    if isinstance(encoder, SGC):
        for layer in encoder.layers:
            z = linear(layer, torch.linalg.matrix_power(s, encoder.order) @ h)
            h = torch.where(z > 0, z, encoder.negative_slope * z)
        return h
    if isinstance(encoder, GCN):
        h = s @ h @ encoder.layers[0].weight.double().t() + encoder.layers[0].bias.double()
        for layer in encoder.layers[1:]:
            h = s @ h.clamp(min=0) @ layer.weight.double().t() + layer.bias.double()
        return h
    outputs = []
    for first, second, norm in zip(encoder.first, encoder.second, encoder.norms):
        z = linear(second, linear(first, h + a @ h).clamp(min=0)).clamp(min=0)
        mean, var, weight, bias = (t.double() for t in (norm.running_mean, norm.running_var, norm.weight, norm.bias))
        h = (z - mean) / (var + norm.eps).sqrt() * weight + bias
        outputs.append(h)
    return torch.cat(outputs, dim=1)


def assert_near(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found.double(), expected.double(), rtol=1e-5, atol=1e-5)


@each_encoder
@KERNELS
def test_an_encoder_equals_pyg(monkeypatch, kernels, make):
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    encoder = built(make)
    fresh = Adjacency(GRAPH.edges, NUM_NODES)
    h = encoder(X, fresh)
    assert h.shape == (NUM_NODES, encoder.out_channels)
    assert_near(h, by_pyg(encoder, X, fresh))
    assert torch.equal(h, encoder(X, GRAPH.edge_index))


@each_encoder
def test_an_encoder_equals_the_dense_formula(make):
    encoder = built(make)
    assert_near(encoder(X, GRAPH), by_formula(encoder, X, GRAPH))


@pytest.mark.parametrize(
    "make", [lambda: SGC(IN, OUT, 2, 2, HIDDEN), lambda: GCN(IN, OUT, 2, HIDDEN)], ids=["sgc", "gcn"]
)
def test_edge_weights_count_as_in_pyg(make):
    encoder = built(make)
    h = encoder(X, WEIGHTED)
    assert_near(h, by_pyg(encoder, X, WEIGHTED))
    assert_near(h, by_formula(encoder, X, WEIGHTED))
    assert not torch.allclose(h, encoder(X, GRAPH), atol=1e-2)


@each_encoder
def test_gradients_equal_pyg(make):
    encoder = built(make)
    factor = torch.randn(NUM_NODES, encoder.out_channels, generator=torch.Generator().manual_seed(2))
    x, x_pyg = X.clone().requires_grad_(), X.clone().requires_grad_()
    (encoder(x, GRAPH) * factor).sum().backward()
    (by_pyg(encoder, x_pyg, GRAPH) * factor).sum().backward()
    assert_near(x.grad, x_pyg.grad)


@each_encoder
def test_gradients_of_the_weights_equal_the_dense_formula(make):
    encoder = built(make)
    factor = torch.randn(NUM_NODES, encoder.out_channels, generator=torch.Generator().manual_seed(2))
    parameters = list(encoder.parameters())
    found = torch.autograd.grad((encoder(X, GRAPH) * factor).sum(), parameters)
    expected = torch.autograd.grad((by_formula(encoder, X, GRAPH) * factor).sum(), parameters)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@each_encoder
def test_renumbering_the_nodes_renumbers_the_rows(make):
    encoder = built(make)
    order = torch.randperm(NUM_NODES, generator=torch.Generator().manual_seed(3))
    place = torch.argsort(order)
    renumbered, _ = Adjacency.from_edge_index(place[GRAPH.edges], NUM_NODES)
    assert_near(encoder(X[order], renumbered), encoder(X, GRAPH)[order])


@each_encoder
def test_a_batch_of_graphs_equals_its_graphs_one_by_one(make):
    encoder = built(make)
    graphs = [random_graph(8, 0.4, 1), Adjacency(torch.empty(2, 0).long(), 1), GRAPH, random_graph(5, 0.9, 2)]
    x = torch.randn(sum(graph.num_nodes for graph in graphs), IN, generator=torch.Generator().manual_seed(4))
    parts = x.split([graph.num_nodes for graph in graphs])
    expected = torch.cat([encoder(part, graph) for part, graph in zip(parts, graphs)])
    assert_near(encoder(x, batch_of(*graphs)), expected)


def few_ones(num_columns: int) -> torch.Tensor:
    x = torch.rand(NUM_NODES, num_columns, generator=torch.Generator().manual_seed(5))
    return torch.where(x < 0.03, x * 30, 0)


@pytest.mark.parametrize("name", ["sgc", "gcn", "gin"])
@KERNELS
def test_sparse_features_equal_dense_ones_in_value_and_gradient(monkeypatch, kernels, name):
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    x = few_ones(60)
    sparse, dense = prepare_features(x), prepare_features(x, dense=True)
    assert isinstance(sparse, SparseOperator)
    assert isinstance(dense, torch.Tensor)
    options = {
        "out_channels": OUT,
        "order": 2,
        "num_layers": 2,
        "hidden_channels": HIDDEN,
        "negative_slope": 0.1,
    }
    encoder = built(lambda: build_encoder(name, 60, options))
    h_sparse, h_dense = encoder(sparse, GRAPH), encoder(dense, GRAPH)
    assert_near(h_sparse, h_dense)
    parameters = list(encoder.parameters())
    gradients = [torch.autograd.grad(h.square().sum(), parameters) for h in (h_sparse, h_dense)]
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_features_stay_dense_where_sparse_does_not_pay():
    assert isinstance(prepare_features(X), torch.Tensor)


def test_rows_are_scaled_to_sum_or_length_one_each_by_itself():
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 2.0]])
    assert prepare_features(x, "sum", dense=True).tolist() == [[0.25, 0.75], [0.0, 0.0], [0.5, 0.5]]
    unit = prepare_features(x, "unit", dense=True)
    torch.testing.assert_close(unit.norm(dim=1), torch.tensor([1.0, 0.0, 1.0]))
    assert torch.equal(prepare_features(x, dense=True), x)
    with pytest.raises(UsageError, match=r"Unknown feature scaling 'units'\. Did you mean 'unit'\?"):
        prepare_features(x, "units")


def test_scaling_by_the_sum_leaves_rows_with_a_negative_sum_finite_in_size():
    scaled = prepare_features(torch.tensor([[-1.0, -2.0, 0.5]]), "sum", dense=True)
    assert float(scaled.abs().max()) < 10


@pytest.mark.parametrize("init", INITIALIZERS)
def test_weights_depend_on_the_generator_alone(init):
    weights = []
    for seed, global_seed in ((1, 0), (1, 7), (2, 0)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(global_seed)
            encoder = GIN(IN, HIDDEN, 2)
            encoder.initialize(init, torch.Generator().manual_seed(seed))
        weights.append(torch.cat([parameter.flatten() for parameter in encoder.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_orthogonal_weights_are_orthogonal():
    encoder = SGC(IN, 4)
    encoder.initialize("orthogonal", torch.Generator().manual_seed(0))
    weight = encoder.layers[0].weight
    torch.testing.assert_close(weight @ weight.t(), torch.eye(4), rtol=0, atol=1e-5)


def test_spread_thresholds_lie_among_the_nodes():
    """On a star of 40 every node sees 2 or 41 ones: PyTorch's biases tell these apart by size alone."""
    adjacency, _ = Adjacency.from_edge_index(torch.stack([torch.zeros(40).long(), torch.arange(1, 41)]), 41)
    x = torch.ones(41, 1)
    encoder = GIN(1, 32, 3)
    encoder.spread_thresholds(x, adjacency, torch.Generator().manual_seed(0))
    signal = encoder.project(x)
    bent = signal + adjacency.summed @ signal + encoder.first[0].bias
    assert (bent == 0).any(dim=0).all()  # a node at the threshold of every unit
    assert ((bent > 0).any(dim=0) | (bent < 0).any(dim=0)).all()  # and others beside it
    assert not any(norm.num_batches_tracked for norm in encoder.norms)


@pytest.mark.parametrize("make", [lambda: SGC(IN, OUT), lambda: GCN(IN, OUT)], ids=["sgc", "gcn"])
def test_normalised_sums_need_no_thresholds(make):
    encoder = make()
    encoder.initialize("spread")
    before = [parameter.clone() for parameter in encoder.parameters()]
    encoder.spread_thresholds(X, GRAPH, torch.Generator())
    assert all(torch.equal(*pair) for pair in zip(before, encoder.parameters()))


class TwoLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(IN, HIDDEN), GCNConv(HIDDEN, OUT)

    def forward(self, x, edge_index, edge_weight=None):
        return self.second(torch.relu(self.first(x, edge_index, edge_weight)), edge_index, edge_weight)


def test_a_pyg_module_gets_both_directions_and_the_weights():
    module = TwoLayers()
    encoder = ModuleEncoder(module, OUT)
    for graph in (GRAPH, WEIGHTED):
        assert_near(encoder(X, graph), module(X, graph.edge_index, graph.edge_weight))
    with pytest.raises(UsageError, match="takes dense features"):
        encoder(SparseOperator.from_dense(X), GRAPH)


@pytest.mark.parametrize("parameter", ["out_channels", "order", "num_layers"])
def test_sizes_below_one_are_refused(parameter):
    options = {"out_channels": 2, "order": 1, "num_layers": 1, "hidden_channels": 2, "negative_slope": 0.1}
    with pytest.raises(UsageError) as caught:
        build_encoder("sgc", IN, {**options, parameter: 0})
    assert (
        str(caught.value)
        == f"The '{parameter}' parameter of TopoTER must be a whole number, at least 1. Got 0 instead."
    )


OPTIONS = {"out_channels": 4, "order": 2, "num_layers": 2, "hidden_channels": 3, "negative_slope": 0.1, "epochs": 9}


def test_an_encoder_takes_the_parameters_it_has_and_those_given_to_it_alone():
    encoder = build_encoder("sgc", IN, OPTIONS, {"order": 3, "negative_slope": 1.0})
    assert isinstance(encoder, SGC)
    assert (encoder.order, encoder.negative_slope, encoder.out_channels) == (3, 1.0, 4)
    assert build_encoder("gin", IN, OPTIONS, {"num_layers": 5}).out_channels == 15


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            {"depth": 2},
            "The encoder 'gcn' has no parameter 'depth'. It has: out_channels, num_layers, hidden_channels.",
        ),
        (
            {"order": 2},
            "The encoder 'gcn' has no parameter 'order'. It has: out_channels, num_layers, hidden_channels.",
        ),
        ({"in_channels": 9}, "The encoder 'gcn' has no parameter 'in_channels'."),
        ({"num_layers": 0}, "The 'num_layers' parameter of TopoTER must be a whole number, at least 1. Got 0 instead."),
    ],
)
def test_parameters_an_encoder_does_not_have_are_named(extra, message):
    with pytest.raises(UsageError) as caught:
        build_encoder("gcn", IN, OPTIONS, extra)
    assert str(caught.value).startswith(message)


def test_an_unknown_encoder_is_named():
    with pytest.raises(UsageError, match=r"^Unknown encoder 'gcnn'\. Did you mean 'gcn'\?$"):
        build_encoder("gcnn", IN, OPTIONS)
