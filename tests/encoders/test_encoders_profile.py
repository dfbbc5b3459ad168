"""Profiles of whole graphs: what they count, that they hold for new graphs, and that weights follow what survives."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from topoter import TopoTER
from topoter.datasets import load_graphs
from topoter.encoders import Profile
from topoter.errors import UsageError
from topoter.kernels.substructures import (
    core_numbers,
    core_numbers_plain,
    triangles_of_edges,
    triangles_of_edges_plain,
)
from topoter.pretext.moments import DirectionMoments
from topoter.pretext.objectives import OBJECTIVES
from topoter.structure.adjacency import Adjacency
from topoter.structure.profiles import HOPS, Places, are_labels, labels_of_nodes, neighbourhood_counts
from topoter.training import Callback, Checkpoint, Interrupted

pytestmark = pytest.mark.usefixtures("one_thread")


def adjacency_of(graph: nx.Graph) -> Adjacency:
    edges = torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).t()
    return Adjacency.from_edge_index(edges, graph.number_of_nodes())[0]


@pytest.fixture(scope="module")
def molecules() -> list[Data]:
    return [Data(x=graph.x, edge_index=graph.edge_index) for graph in load_graphs("mutag")[:60]]


@pytest.fixture(scope="module")
def fitted(molecules: list[Data]) -> TopoTER:
    return TopoTER(level="graph").fit(molecules)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_triangles_and_cores_are_those_of_networkx_and_of_their_plain_twins(density: float) -> None:
    graph = nx.gnp_random_graph(30, density, seed=1)
    adjacency = adjacency_of(graph)
    edges = adjacency.edges.numpy()
    shared = [len(list(nx.common_neighbors(graph, *edge))) for edge in edges.T.tolist()]
    assert triangles_of_edges(edges, 30).tolist() == triangles_of_edges_plain(edges, 30).tolist() == shared
    arrays = [part.numpy().astype(np.int64) for part in (adjacency.summed.indptr, adjacency.summed.indices)]
    cores = list(nx.core_number(graph).values())
    assert core_numbers(*arrays).tolist() == core_numbers_plain(*arrays).tolist() == cores


def test_places_are_what_they_are_called() -> None:
    graph = nx.karate_club_graph()
    places = Places.of(adjacency_of(graph)).nodes
    degree = np.array([d for _, d in graph.degree])
    np.testing.assert_allclose(places[:, 0], np.log1p(degree), atol=1e-5)
    np.testing.assert_allclose(places[:, 6], list(nx.clustering(graph).values()), atol=1e-5)
    walk = nx.to_numpy_array(graph, weight=None) / degree[:, None]
    np.testing.assert_allclose(places[:, 8], np.diag(walk @ walk), atol=1e-5)
    np.testing.assert_allclose(places[:, 12], degree / 33, atol=1e-5)


def test_neighbourhoods_tell_apart_what_weisfeiler_lehman_does_and_no_more() -> None:
    shapes = [nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)), nx.path_graph(6)]
    circle, triangles, path = (neighbourhood_counts(np.zeros(6), adjacency_of(shape)) for shape in shapes)
    assert len(circle) == HOPS + 1
    assert all(np.array_equal(a, b) for a, b in zip(circle, triangles))
    assert np.array_equal(circle[0], path[0])
    assert not np.array_equal(circle[1], path[1])
    x = torch.tensor([[0.0], [-0.0], [1.0]])
    first, same, other = labels_of_nodes(x)
    assert first == same != other
    assert are_labels(torch.eye(4).repeat(10, 1))
    assert not are_labels(torch.ones(40, 1))
    assert not are_labels(torch.rand(40, 2, generator=torch.Generator().manual_seed(0)))


def test_a_graph_has_one_row_whatever_its_batch_and_the_order_of_its_nodes(fitted: TopoTER, molecules) -> None:
    z = fitted.transform(molecules)
    assert z.shape == (60, fitted.model_.encoder.out_channels)
    np.testing.assert_allclose(fitted.transform(molecules[7:8]), z[7:8], atol=1e-5)
    order = torch.randperm(molecules[7].num_nodes, generator=torch.Generator().manual_seed(0))
    turned = Data(x=molecules[7].x[order], edge_index=torch.argsort(order)[molecules[7].edge_index])
    np.testing.assert_allclose(fitted.transform([turned]), z[7:8], atol=1e-5)
    np.testing.assert_allclose(z.std(axis=0), z.std(), rtol=1e-2)  # a scaler changes nothing


def test_weights_follow_what_survives(fitted: TopoTER) -> None:
    encoder = fitted.model_.encoder
    assert isinstance(encoder, Profile)
    assert fitted.history_[-1].loss < fitted.history_[0].loss - 0.05
    rho = torch.tensor([0.9, 0.5, 0.0])
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([weight], 0.05)
    term = OBJECTIVES["graph-recovery"](3)
    for _ in range(200):
        optimizer.zero_grad()
        term.of_moments(weight, DirectionMoments(torch.ones(3), rho))[0].backward()
        optimizer.step()
    torch.testing.assert_close(weight.detach(), rho, atol=0.02, rtol=0)


def test_moments_between_views_are_their_correlations() -> None:
    views = torch.randn(3, 200, 4, generator=torch.Generator().manual_seed(0)) + torch.randn(200, 4)
    found = DirectionMoments.of(views)
    pairs = [np.corrcoef(views[i, :, 2], views[j, :, 2])[0, 1] for i, j in ((0, 1), (0, 2), (1, 2))]
    assert float(found.between[2]) == pytest.approx(np.mean(pairs), abs=1e-5)
    torch.testing.assert_close(found.within, torch.ones(4))


def test_saved_and_loaded_it_embeds_new_graphs_alike(fitted: TopoTER, molecules, tmp_path) -> None:
    fitted.save(tmp_path / "m.topoter")
    new = load_graphs("mutag")[100:104]
    again = TopoTER.load(tmp_path / "m.topoter")
    assert np.array_equal(again.transform(new), fitted.transform(new))


def test_a_stopped_training_goes_on_to_the_same_bits(molecules, tmp_path) -> None:
    class Stop(Callback):
        def on_epoch(self, state, record) -> None:
            if record.epoch == 3:
                raise Interrupted("Stopped.")

    def model() -> TopoTER:
        return TopoTER(level="graph", epochs=6)

    whole = model().fit_transform(molecules)
    with pytest.raises(Interrupted):
        model().fit(molecules, callbacks=[Checkpoint(tmp_path / "state", 0), Stop()])
    resumed = model().fit(molecules, callbacks=[Checkpoint(tmp_path / "state", resume=True)])
    assert resumed.transform(molecules).tobytes() == whole.tobytes()
    assert not np.array_equal(TopoTER(level="graph", epochs=0).fit_transform(molecules), whole)


def test_the_whole_objective_learns_of_nodes_pairs_and_graphs(molecules) -> None:
    model = TopoTER(level="graph", objective="full", hidden_channels=8, epochs=2).fit(molecules)
    found = model.history_[-1].metrics
    assert {"agreement", "graph_agreement", "pair_accuracy_add", "graph-mutual-information_loss"} <= set(found)
    message = "'profile' and the objective 'graph-recovery' go together"
    for wrong in ({"encoder": "profile", "objective": "paper"}, {"encoder": "gin", "objective": "graph-recovery"}):
        with pytest.raises(UsageError, match=message):
            TopoTER(level="graph", **wrong).fit(molecules)


def test_a_loader_or_a_batch_gives_one_row_per_graph(fitted: TopoTER, molecules) -> None:
    z = fitted.transform(molecules[:10])
    assert np.array_equal(fitted.transform(DataLoader(molecules[:10], batch_size=4)), z)
    assert np.array_equal(fitted.transform(Batch.from_data_list(molecules[:10])), z)


def test_atom_types_as_strings_become_columns_of_the_whole_set() -> None:
    def ring(*atoms: str) -> nx.Graph:
        graph = nx.cycle_graph(len(atoms))
        nx.set_node_attributes(graph, dict(enumerate(atoms)), "atom")
        return graph

    graphs = [ring("C", "C", "O"), ring("C", "C", "C", "N"), ring("O", "C", "C", "C", "C")] * 3
    model = TopoTER(level="graph", epochs=2).fit(graphs)
    assert model.n_features_in_ == 3
    z = model.transform(graphs)
    np.testing.assert_allclose(model.transform(graphs[2:3]), z[2:3], atol=1e-5)  # alone it has two kinds only
