"""Partitions: every node in one part, parts about as large, few edges between them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from topoter.datasets import block_model
from topoter.structure.large_graph import LargeGraph
from topoter.structure.partition import SLACK, cut_share, partition, stream

PARTS = 4


@pytest.fixture(scope="module")
def graph() -> LargeGraph:
    return LargeGraph.from_data(block_model(400, PARTS, 20.0, PARTS, 0, within=0.95))[0]


@pytest.mark.parametrize("way", ["metis", "stream"])
def test_blocks_are_found(graph: LargeGraph, way: str) -> None:
    find = {"metis": partition, "stream": stream}[way]
    part = find(graph, PARTS)
    assert part.shape == (400,)
    sizes = np.bincount(part, minlength=PARTS)
    assert sizes.min() > 0
    assert sizes.max() <= SLACK * 400 / PARTS + 1
    # Five in a hundred edges lie between blocks; by chance it would be 75.
    assert cut_share(graph, part) < 0.1
    assert np.array_equal(part, find(graph, PARTS)), "same seed, same parts"


def test_metis_is_used_up_to_a_fixed_size(graph: LargeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not np.array_equal(partition(graph, PARTS), stream(graph, PARTS))
    monkeypatch.setattr("topoter.structure.partition.METIS_ENTRIES", len(graph.indices) - 1)
    assert np.array_equal(partition(graph, PARTS), stream(graph, PARTS))


def test_the_compiled_loop_decides_as_the_plain_one(graph: LargeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = stream(graph, PARTS, passes=3)
    monkeypatch.setenv("TOPOTER_KERNELS", "plain")
    assert np.array_equal(compiled, stream(graph, PARTS, passes=3))


def test_share_of_edges_between_parts(graph: LargeGraph) -> None:
    part = np.arange(400) % PARTS
    row = np.repeat(np.arange(400), np.diff(graph.indptr))
    assert cut_share(graph, part) == np.mean(part[row] != part[graph.indices])
    assert cut_share(graph, np.zeros(400, dtype=int)) == 0


@pytest.mark.parametrize("parts", [1, 3, 10, 25])
def test_odd_graphs(parts: int) -> None:
    star = torch.stack([torch.zeros(9, dtype=torch.long), torch.arange(1, 10)])
    for edges in (star, torch.zeros(2, 0, dtype=torch.long)):
        graph, _ = LargeGraph.from_data(Data(x=torch.ones(10, 1), edge_index=edges))
        for part in (stream(graph, parts), partition(graph, 1)):
            assert ((part >= 0) & (part < parts)).all()
