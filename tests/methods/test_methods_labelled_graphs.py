"""Networks that are trained with labels of graphs: which labels they see, and natural networks against a slow twin."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from topoter.datasets import load_graphs
from topoter.errors import DataError, TopoterError
from topoter.methods import build
from topoter.methods.labelled_graphs import parts_of
from topoter.methods.natural_networks import NaturalLayer, NaturalNetwork, Surroundings
from topoter.methods.pretrained import LearningRate
from topoter.methods.substructures import read
from topoter.structure.adjacency import Adjacency
from topoter.tasks import graph_classification
from topoter.tasks.support_vectors import folds_of

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = ("gcn", "graphsage", "gin-0", "gin-eps", "ngn")
SMALL = {"hidden_channels": 8, "num_layers": 2, "epochs": 3, "batch_size": 16}


@pytest.fixture(scope="module")
def graphs():
    mutag = load_graphs("mutag")
    return [graph for label in (0, 1) for graph in [graph for graph in mutag if int(graph.y) == label][:20]]


# ---- which labels are seen -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("inner_folds", [0, 2])
def test_labels_of_the_test_fold_change_its_score_and_nothing_else(graphs, name, inner_folds):
    y = graph_classification.labels_of(graphs)
    train, test = next(folds_of(y, 0))
    other = [graph.clone() for graph in graphs]
    for number in test:
        other[number].y = 1 - other[number].y
    fitted = [
        build(name, "graph", SMALL | {"inner_folds": inner_folds}).fit(
            graph_classification.known_labels(some, train), 0
        )
        for some in (graphs, other)
    ]
    unlabelled = graph_classification.without_labels(graphs)
    predictions = [one.predict(unlabelled) for one in fitted]
    np.testing.assert_array_equal(*predictions)
    assert fitted[0].history == fitted[1].history
    assert (fitted[0].best_epoch, fitted[0].validation) == (fitted[1].best_epoch, fitted[1].validation)


def test_a_method_gets_the_labels_of_training_folds_and_the_score_is_that_of_its_predictions(graphs):
    seen = []

    class Constant:
        best_epoch, validation = 1, 50.0

        def predict(self, some):
            assert not any("y" in graph for graph in some)
            return np.ones(len(some), dtype=int)

    def fit(fold, known):
        seen.append([number for number, graph in enumerate(known) if "y" in graph])
        assert all(set(graph.keys()) <= {"x", "edge_index", "y"} for graph in known)
        return Constant()

    found = graph_classification.score_labelled(graphs, 5, fit)
    assert seen == [train.tolist() for train, _ in folds_of(graph_classification.labels_of(graphs), 5)]
    assert found["test"] == pytest.approx(50.0)
    assert (found["val"], found["best_epochs"]) == (50.0, [1] * 10)


def test_shuffled_test_labels_change_the_whole_score_only(graphs):
    """Over all folds every label is once a test label, so that here the first fold alone is scored twice."""
    y = graph_classification.labels_of(graphs)
    _, test = next(folds_of(y, 0))
    known = graph_classification.known_labels(graphs, np.setdiff1d(np.arange(len(graphs)), test))
    predicted = build("gin-0", "graph", SMALL | {"epochs": 20}).fit(known, 0).predict([graphs[n] for n in test])
    assert (predicted == y[test]).mean() != (predicted == 1 - y[test]).mean()


def test_parts_of_the_labelled_graphs_hold_each_once_and_classes_evenly():
    labelled, y = torch.arange(100, 160), torch.tensor([0] * 40 + [1] * 20)
    parts = parts_of(labelled, y, 10, seed=3)
    assert sorted(torch.cat(parts).tolist()) == labelled.tolist()
    assert {(int((part < 140).sum()), int((part >= 140).sum())) for part in parts} == {(4, 2)}
    assert any((one != other).any() for one, other in zip(parts, parts_of(labelled, y, 10, seed=4)))


def test_without_any_label_there_is_nothing_to_train_on(graphs):
    with pytest.raises(DataError, match="None of the graphs has a label"):
        build("gin-0", "graph", SMALL).fit(graph_classification.without_labels(graphs), 0)
    with pytest.raises(TopoterError, match="predicts no classes"):
        build("sp", "graph", {}).fit(graphs, 0).predict(graphs)


@pytest.mark.parametrize("name", ["gcn", "gin-eps"])
def test_rings_and_paths_are_told_apart(name):
    """Node by node they differ at the ends only."""
    made = []
    for size in range(6, 26):
        nodes = torch.arange(size)
        ring = torch.stack([nodes, (nodes + 1) % size])
        for label, edges in enumerate((ring, ring[:, :-1])):
            made.append(Data(x=torch.ones(size, 1), edge_index=edges, y=torch.tensor([label])))
    known = graph_classification.known_labels(made, np.arange(len(made) - 8))
    fitted = build(name, "graph", {"hidden_channels": 8, "num_layers": 2, "epochs": 40, "patience": None}).fit(known, 0)
    assert (fitted.predict(made[-8:]) == np.array([0, 1] * 4)).mean() > 0.8
    assert fitted.losses[-1] < fitted.losses[0]


def test_the_rate_is_halved_also_after_a_training_goes_on():
    from topoter.training import TrainingSettings, TrainingState

    state = TrainingState.start(torch.nn.Linear(1, 1), TrainingSettings(learning_rate=0.5), {})
    rates = []
    for epochs in (0, 49, 50, 100):
        state.history = [None] * epochs
        LearningRate(lambda done: 0.5 ** (done // 50)).on_start(state)
        rates.append(state.optimizer.param_groups[0]["lr"])
    assert rates == [0.5, 0.5, 0.25, 0.125]


def test_the_numbers_of_weights_are_those_of_the_architecture():
    """Four layers of 32 on 7 features for two classes: perceptrons with one or two maps, norms, five classifiers."""
    norms, readout = 4 * 64, (7 + 1) * 2 + 4 * (32 + 1) * 2
    one = (7 * 32 + 32) + 3 * (32 * 32 + 32) + norms + readout
    two = one + 4 * (32 * 32 + 32) + 4 * 64
    expected = {"gcn": one, "graphsage": one, "gin-0": two, "gin-eps": two + 4}
    for name, count in expected.items():
        module = build(name, "graph", {}).module(7, 2, seed=0)
        assert sum(p.numel() for p in module.parameters()) == count, name


# ---- natural networks ------------------------------------------------------------------------------------------------


def dense_layer(layer: NaturalLayer, graph: nx.Graph, v: dict) -> dict:
    """The same, edge by edge and matrix by matrix."""
    near = {q: sorted({q, *graph[q]}) for q in graph}
    out = {(q, u): layer.own(v[q, u]) for q in graph for u in near[q]}
    for q in graph:
        for p in near[q]:
            members = sorted({*near[p], *near[q]})
            a = torch.from_numpy(nx.to_numpy_array(graph.subgraph(members), members)).float() + torch.eye(len(members))
            scale = a.sum(1).rsqrt()
            a = scale[:, None] * a * scale
            rows = []
            for u in members:
                own = v[p, u] if u in near[p] else torch.zeros(len(v[p, p]))
                rows.append(torch.cat([own, torch.tensor([float(u == p), float(u == q)])]))
            h = a @ layer.second(torch.relu(a @ layer.first(torch.stack(rows))))
            for place, u in enumerate(members):
                if u in near[q]:
                    out[q, u] = out[q, u] + h[place]
    return {key: torch.relu(layer.norm(value[None]))[0] for key, value in out.items()}


def test_a_natural_layer_is_its_slow_twin():
    graph = nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)])
    graph.add_node(5)
    adjacency, _ = Adjacency.from_edge_index(torch.tensor(list(graph.edges)).t(), 6)
    around = Surroundings.of(adjacency)
    torch.manual_seed(0)
    layer = NaturalLayer(3, 4).eval()
    with torch.no_grad():
        v = torch.randn(len(around.node), 3)
        found = layer(v, around)
        keys = list(zip(around.node.tolist(), around.near.tolist()))
        expected = dense_layer(layer, graph, dict(zip(keys, v)))
        torch.testing.assert_close(found, torch.stack([expected[key] for key in keys]))
    assert len(keys) == 2 * 5 + 6


def test_the_order_of_nodes_and_the_other_graphs_of_a_batch_make_no_difference(graphs):
    torch.manual_seed(0)
    module = NaturalNetwork(7, 8, 2, 2, pooling="sum", dropout=0.0, seed=0).eval()
    moved = []
    for graph in graphs[:6]:
        order = torch.randperm(graph.num_nodes)
        place = torch.argsort(order)
        moved.append(Data(x=graph.x[order], edge_index=place[graph.edge_index]))
    with torch.no_grad():
        whole = module.logits(*read(graphs[:6]).batch(torch.arange(6)))
        torch.testing.assert_close(module.logits(*read(moved).batch(torch.arange(6))), whole, atol=1e-4, rtol=1e-4)
        single = [module.logits(*read([graph]).batch(torch.tensor([0]))) for graph in graphs[:6]]
        torch.testing.assert_close(torch.cat(single), whole, atol=1e-4, rtol=1e-4)
