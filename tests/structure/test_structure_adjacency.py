"""Adjacency: what cleaning changes and counts, and that its operators are the dense formulas."""

from __future__ import annotations

import pytest
import torch

from dense_oracle import dense_adjacency, dense_propagation, random_graph
from topoter.errors import DataError
from topoter.structure.adjacency import Adjacency, Cleaning

KERNELS = pytest.mark.parametrize("kernels", ["fast", "plain"])


def clean(edges: list[tuple[int, int]], num_nodes: int, weight: list[float] | None = None):
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t()
    return Adjacency.from_edge_index(edge_index, num_nodes, None if weight is None else torch.tensor(weight))


@pytest.mark.parametrize(
    ("edges", "kept", "cleaning"),
    [
        ([(0, 1), (1, 0), (1, 2), (2, 1)], [(0, 1), (1, 2)], Cleaning(0, 0, 0)),
        ([(1, 0), (2, 1)], [(0, 1), (1, 2)], Cleaning(0, 0, 2)),
        ([(2, 2), (0, 1), (1, 0), (0, 0), (2, 2)], [(0, 1)], Cleaning(3, 0, 0)),
        ([(0, 1), (0, 1), (1, 0), (0, 1)], [(0, 1)], Cleaning(0, 2, 0)),
        ([(3, 0), (3, 0), (2, 3), (3, 2), (1, 1)], [(0, 3), (2, 3)], Cleaning(1, 1, 1)),
        ([], [], Cleaning(0, 0, 0)),
    ],
)
def test_cleaning_gives_sorted_simple_edges_and_counts_what_it_changed(edges, kept, cleaning):
    adjacency, found = clean(edges, 4)
    assert adjacency.edges.t().tolist() == [list(edge) for edge in kept]
    assert adjacency.edges.shape == (2, len(kept))
    assert found == cleaning


def test_cleaning_says_what_it_did():
    assert str(Cleaning(0, 0, 0)) == ""
    assert str(Cleaning(1200, 0, 3)) == "dropped 1,200 self-loops, read 3 one-way edges as undirected"
    assert str(Cleaning(0, 2, 0)) == "merged 2 duplicate edges"


def test_of_several_weights_the_largest_is_kept_and_loops_take_theirs_with_them():
    edges = [(0, 1), (2, 2), (1, 0), (1, 2), (0, 1)]
    adjacency, _ = clean(edges, 3, [0.5, 9.0, 2.0, 0.25, 1.0])
    assert adjacency.edges.tolist() == [[0, 1], [1, 2]]
    assert adjacency.weight.tolist() == [2.0, 0.25]
    assert adjacency.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
    assert adjacency.edge_weight.tolist() == [2.0, 0.25, 2.0, 0.25]


@pytest.mark.parametrize(("edge", "text"), [((1, 3), "(1, 3)"), ((-1, 0), "(-1, 0)")])
def test_an_edge_to_a_node_that_does_not_exist_is_named(edge, text):
    with pytest.raises(DataError) as caught:
        clean([(0, 1), (1, 2), edge, (7, 7)], 3)
    assert str(caught.value) == (
        f"Edge 2 {text} points to a node that does not exist: the graph has 3 nodes, numbered from 0."
    )


@KERNELS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("num_nodes", [3, 9, 40])
def test_operators_equal_the_dense_formula(monkeypatch, kernels, weighted, num_nodes):
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    adjacency = random_graph(num_nodes, 0.3, seed=num_nodes, weighted=weighted)
    a = dense_adjacency(adjacency)
    h = torch.randn(num_nodes, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        (adjacency.normalized @ h).double(), dense_propagation(a) @ h.double(), rtol=1e-5, atol=1e-6
    )
    torch.testing.assert_close((adjacency.summed @ h).double(), a @ h.double(), rtol=1e-5, atol=1e-6)


@KERNELS
def test_gradients_flow_through_the_operators(monkeypatch, kernels):
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    adjacency = random_graph(12, 0.4, seed=1, weighted=True)
    a = dense_adjacency(adjacency)
    grad = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    for operator, dense in ((adjacency.normalized, dense_propagation(a)), (adjacency.summed, a)):
        h = torch.randn(12, 3, requires_grad=True)
        (operator @ h).backward(grad)
        torch.testing.assert_close(h.grad.double(), dense.t() @ grad.double(), rtol=1e-5, atol=1e-6)


@KERNELS
def test_a_graph_without_edges_propagates_nothing(monkeypatch, kernels):
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    adjacency, _ = clean([], 3)
    h = torch.arange(6.0).view(3, 2)
    assert torch.equal(adjacency.normalized @ h, h)
    assert torch.equal(adjacency.summed @ h, torch.zeros(3, 2))


def test_flipping_leaves_the_original_alone_and_gives_new_edges_weight_one():
    adjacency, _ = clean([(0, 1), (1, 2), (2, 3)], 4, [0.5, 0.25, 0.125])
    before = adjacency.edges.clone(), adjacency.weight.clone()
    pairs = torch.tensor([[0, 0], [2, 3]])
    changed = adjacency.flip(torch.tensor([False, True, False]), pairs, torch.tensor([False, True]))
    expected = torch.zeros(4, 4, dtype=torch.float64)
    expected[0, 1], expected[2, 3], expected[0, 3] = 0.5, 0.125, 1.0
    assert torch.equal(dense_adjacency(changed), expected + expected.t())
    assert torch.equal(adjacency.edges, before[0])
    assert torch.equal(adjacency.weight, before[1])
