"""Planted errors are found: nodes with another group's features, edges between groups, edges that were taken out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from topoter import DataError, TopoTER
from topoter.graphs import as_data
from topoter.tasks.anomalies import find_anomalies

pytestmark = pytest.mark.usefixtures("one_thread")
GROUPS, NODES, FALSE, ODD = 6, 360, 30, 12


def planted(seed: int = 0) -> tuple[Data, np.ndarray, set[int], set[tuple[int, int]]]:
    """Groups that edges and features agree on, but for some false edges, and some nodes with others' features."""
    rng = np.random.default_rng(seed)
    group = np.arange(NODES) % GROUPS
    edge = np.triu((rng.random((NODES, NODES)) < 0.15) & (group[:, None] == group[None]), 1)
    false: set[tuple[int, int]] = set()
    while len(false) < FALSE:
        a, b = sorted(rng.integers(0, NODES, 2).tolist())
        if group[a] != group[b]:
            false.add((a, b))
            edge[a, b] = True
    odd = rng.permutation(NODES)[:ODD]
    looks = group.copy()
    looks[odd] = (looks[odd] + rng.integers(1, GROUPS, ODD)) % GROUPS
    x = np.eye(GROUPS)[looks] @ rng.normal(size=(GROUPS, 12)) + 0.6 * rng.normal(size=(NODES, 12))
    ends = torch.from_numpy(np.stack(np.nonzero(edge | edge.T)))
    data = Data(x=torch.from_numpy(x.astype(np.float32)), edge_index=ends, num_nodes=NODES)
    return data, group, set(odd.tolist()), false


@pytest.mark.parametrize("model", [TopoTER("sgc", out_channels=32, epochs=60), TopoTER()], ids=["sgc", "default"])
def test_planted_errors_are_found(model: TopoTER) -> None:
    data, group, odd, false = planted()
    model.fit(data)
    found = find_anomalies(model, data, top=100)
    assert len(odd & set(found.odd_nodes(ODD).tolist())) >= 0.9 * ODD
    worst = [tuple(found.edges[:, edge].tolist()) for edge in found.false_edges(FALSE).tolist()]
    right = [pair for pair in worst if pair in false or odd & set(pair)]
    assert len(right) >= 0.9 * FALSE
    missing = found.missing.pairs.numpy()
    assert (group[missing[0]] == group[missing[1]]).mean() > 0.95
    assert found.degree.sum() == data.num_edges
    again = find_anomalies(model, data, top=100)
    assert torch.equal(again.node_error, found.node_error)


def test_a_graph_without_features_is_judged_by_its_edges() -> None:
    data, _, _, _ = planted()
    bare = as_data(Data(edge_index=data.edge_index, num_nodes=NODES))
    model = TopoTER("sgc", out_channels=8, epochs=5)
    found = find_anomalies(model.fit(bare), bare, top=10)
    assert found.node_error.isfinite().all()


def test_too_few_edges() -> None:
    path = Data(x=torch.randn(9, 3), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), num_nodes=9)
    with pytest.raises(DataError, match="The graph has 4 edges: too few to tell which are odd"):
        find_anomalies(TopoTER("sgc", epochs=1, out_channels=4).fit(path), path)
