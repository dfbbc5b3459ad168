"""The ranking of missing edges: its blocks change nothing, edges never appear, blocks of nodes are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.errors import DataError
from topoter.graphs import as_data
from topoter.graphs.features import structural_features
from topoter.structure.adjacency import Adjacency
from topoter.tasks.link_ranking import best_pairs, rank_links
from topoter.tasks.link_reasons import reasons

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("block", [7, 64, 1000])
def test_the_best_pairs_are_those_of_the_dense_matrix(block):
    generator = torch.Generator().manual_seed(0)
    data = block_model(150, 3, 6.0, 4, seed=2)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, 150)
    z = torch.randint(-2, 3, (150, 3), generator=generator).float()  # few values: many ties
    pairs, score = best_pairs(z, z, adjacency, 40, block)
    dense = (z @ z.t()).numpy()
    dense[adjacency.edge_index[0], adjacency.edge_index[1]] = -np.inf
    i, j = np.triu_indices(150, 1)
    order = np.lexsort((i * 150 + j, -dense[i, j]))[:40]
    np.testing.assert_array_equal(pairs.numpy(), np.stack([i[order], j[order]]))
    np.testing.assert_array_equal(score.numpy(), dense[i, j][order])


def test_fewer_pairs_than_asked_for_are_all_given():
    adjacency, _ = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 4)
    pairs, _ = best_pairs(torch.eye(4), torch.eye(4), adjacency, 4, 2)
    assert sorted(map(tuple, pairs.t().tolist())) == [(0, 2), (0, 3), (1, 3), (2, 3)]


def test_missing_edges_are_found_inside_blocks():
    data = block_model(400, 8, 12.0, 16, seed=0, within=0.95, noise=0.5)
    model = TopoTER("sgc", out_channels=32, epochs=20).fit(data)
    ranked = rank_links(model, data, top=50)
    inside = (data.y[ranked.pairs[0]] == data.y[ranked.pairs[1]]).float().mean()
    assert inside > 0.9  # one pair in eight by chance
    assert ranked.auc > 80
    assert bool((ranked.score.diff() <= 0).all())
    known = set((data.edge_index[0] * 400 + data.edge_index[1]).tolist())
    assert not known & set((ranked.pairs[0] * 400 + ranked.pairs[1]).tolist())
    again = rank_links(model, data, top=50)
    assert torch.equal(ranked.score, again.score)


def test_nodes_are_alike_in_flags_that_both_have_and_in_numbers_on_either_side():
    x = torch.tensor([[1.0, 0.0, 9.0], [1.0, 0.0, 8.0], [0.0, 1.0, 2.0], [0.0, 1.0, 1.0], [0.0, 0.0, 5.0]])
    names = ["team=red", "team=blue", "age"]
    data = Data(x=x, edge_index=torch.tensor([[0, 1, 2, 3], [4, 4, 4, 4]]), feature_names=names)
    old, young, mixed = reasons(data, torch.tensor([[0, 2, 0], [1, 3, 4]]))
    assert set(old.alike) == {"team=red", "age"}  # not the team blue, in which both are not
    assert set(young.alike) == {"team=blue", "age"}
    assert mixed.alike == []
    assert (old.shared, old.neighbours) == (1, [4])


def test_graphs_without_enough_edges_or_free_pairs_are_refused():
    model = TopoTER("sgc", out_channels=4, epochs=1).fit(block_model(50, 2, 4.0, 3, seed=0))
    small = block_model(12, 2, 2.0, 3, seed=0)
    with pytest.raises(DataError, match="12 edges: too few"):
        rank_links(model, small)
    complete = Data(x=torch.ones(12, 3), edge_index=torch.combinations(torch.arange(12)).t())
    with pytest.raises(DataError, match="0 disconnected pairs"):
        rank_links(model, complete)


def test_degrees_do_not_tell_of_hidden_edges(monkeypatch):
    data = as_data(Data(edge_index=block_model(200, 4, 8.0, 4, seed=0).edge_index, num_nodes=200))
    model = TopoTER("sgc", out_channels=8, epochs=2).fit(data)
    embedded, transform = [], model.transform
    monkeypatch.setattr(model, "transform", lambda graph: embedded.append(graph) or transform(graph))
    rank_links(model, data)
    shown, whole = embedded
    assert shown.num_edges < 0.9 * whole.num_edges
    for graph in (shown, whole):
        assert torch.equal(graph.x, structural_features(graph.edge_index.numpy(), 200))
