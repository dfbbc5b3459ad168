"""Parts of a graph, from memory and from disk: exactly the edges between the nodes of the part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from own_graphs import imported

from topoter.datasets import block_model
from topoter.graphs import GraphDirectory
from topoter.structure.adjacency import Adjacency
from topoter.structure.large_graph import LargeGraph


def dense(adjacency: Adjacency) -> np.ndarray:
    a = np.zeros((adjacency.num_nodes, adjacency.num_nodes))
    weight = 1.0 if adjacency.weight is None else adjacency.weight.numpy()
    a[tuple(adjacency.edges.numpy())] = weight
    return a + a.T


@pytest.mark.parametrize("kernels", ["fast", "plain"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_has_the_edges_between_its_nodes(monkeypatch: pytest.MonkeyPatch, kernels: str, weighted: bool) -> None:
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    data = block_model(80, 4, 6.0, 5, 0)
    if weighted:
        data.edge_weight = (data.edge_index.sum(0) % 7).float()
    whole, _ = Adjacency.from_edge_index(data.edge_index, 80, data.get("edge_weight"))
    graph, _ = LargeGraph.from_data(data)
    for seed in range(5):
        size = [0, 1, 17, 40, 80][seed]
        nodes = np.sort(np.random.default_rng(seed).choice(80, size, replace=False))
        x, part = graph.part(nodes)
        assert np.array_equal(dense(part), dense(whole)[np.ix_(nodes, nodes)])
        assert (part.keys.diff() > 0).all(), "edges are sorted"
        assert torch.equal(x, data.x[nodes])
        assert (graph._position == -1).all()


def test_disk_and_memory_hold_the_same_graph(tmp_path: Path) -> None:
    data = block_model(60, 3, 6.0, 4, 1)
    stored = LargeGraph.from_directory(GraphDirectory.open(imported(tmp_path, data)))
    graph, cleaning = LargeGraph.from_data(data)
    assert str(cleaning) == ""
    assert np.array_equal(stored.indptr, graph.indptr)
    assert np.array_equal(stored.indices, graph.indices)
    assert np.allclose(stored.features, graph.features)
    nodes = np.arange(0, 60, 2)
    before = stored.part(nodes)
    stored.release()
    after = stored.part(nodes)
    assert torch.equal(before[0], after[0])
    assert torch.equal(before[1].edges, after[1].edges)
