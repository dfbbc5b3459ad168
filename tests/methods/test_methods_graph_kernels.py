"""Graph kernels against GraKeL's own classes, NetworkX and counts by hand."""

from __future__ import annotations

import warnings
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from topoter.datasets import load_graphs
from topoter.methods import build
from topoter.methods.deep_graph_kernels import PARTS, DeepGraphKernel, deep_kernel
from topoter.methods.graph_kernels import graphlet_shares, normalized
from topoter.methods.substructures import (
    count,
    graphlet_of,
    graphlets,
    matrices,
    node_labels,
    read,
    refined_labels,
    sample_sets,
    shortest_paths,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def graphs():
    return load_graphs("mutag")[:25]


@pytest.fixture
def for_grakel(graphs):
    from grakel import Graph

    converted = []
    for graph in graphs:
        neighbours = {node: [] for node in range(graph.num_nodes)}
        for i, j in graph.edge_index.t().tolist():
            neighbours[i].append(j)
        converted.append(Graph(neighbours, node_labels=dict(enumerate(graph.x.argmax(1).tolist()))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield converted


def kernel(name, graphs, **parameters):
    return build(name, "graph", parameters).fit(graphs, 0).kernel


def star_and_path():
    star, path = torch.tensor([[0, 0, 0], [1, 2, 3]]), torch.tensor([[0, 1, 2], [1, 2, 3]])
    return [Data(x=torch.ones(5, 1), edge_index=edges) for edges in (star, path)]  # node 4 is alone in both


# ---- parts -----------------------------------------------------------------------------------------------------------


def test_there_are_as_many_graphlets_as_graphs():
    """4, 11 and 34 graphs of 3, 4 and 5 nodes, up to isomorphism."""
    assert [len(np.unique(graphlet_of(size))) for size in (3, 4, 5)] == [4, 11, 34]


def test_graphlets_are_those_that_networkx_finds(graphs):
    (_, matrix), *_ = matrices(read([graphs[3]]))
    found = graphlets(matrix, 4, 10**6, np.random.default_rng(0))
    whole = nx.from_scipy_sparse_array(matrix)
    kinds: list[tuple[nx.Graph, int]] = []
    for chosen in combinations(range(matrix.shape[0]), 4):
        part = whole.subgraph(chosen)
        place = next((n for n, (known, _) in enumerate(kinds) if nx.is_isomorphic(known, part)), len(kinds))
        kinds[place : place + 1] = [(part, kinds[place][1] + 1 if place < len(kinds) else 1)]
    assert sorted(counted for _, counted in kinds) == sorted(found[found > 0].astype(int))


def test_sampled_graphlets_have_the_shares_of_all(graphs):
    graph_set = read(graphs[:3])
    every = graphlet_shares(graph_set, 10**6, np.random.default_rng(0))
    drawn = graphlet_shares(graph_set, 4000, np.random.default_rng(1))
    assert np.abs(every - drawn).max() < 0.04
    assert every.sum(axis=1) == pytest.approx([3] * 3)
    sets = sample_sets(6, 5, 2000, np.random.default_rng(0))
    assert all(len(set(row)) == 5 for row in sets.tolist())


def test_refined_labels_are_counted_as_in_the_kernel_of_grakel(graphs, for_grakel):
    from grakel import VertexHistogram, WeisfeilerLehman

    graph_set = read(graphs)
    labels = refined_labels(graph_set, 3)
    parts = np.split(labels, graph_set.nodes[1:-1].tolist())
    ours = sum((counts @ counts.T).toarray() for counts in (count([p[:, i] for p in parts])[0] for i in range(4)))
    theirs = WeisfeilerLehman(n_iter=3, base_graph_kernel=VertexHistogram).fit_transform(for_grakel)
    np.testing.assert_array_equal(ours, theirs)


def test_the_parts_of_a_star_and_of_a_path_by_hand():
    """Lengths of shortest paths, each in both directions: 3 and 3 pairs, 3 and 2 and 1 pairs."""
    graph_set = read(star_and_path())
    assert node_labels(graph_set).tolist() == [0] * 10
    counts, lengths = count([words for _, words in shortest_paths(graph_set)])
    assert lengths.tolist() == [1, 2, 3]
    assert counts.toarray().tolist() == [[6, 6, 0], [6, 4, 2]]
    star, path = (refined_labels(graph_set, 1)[nodes, 1] for nodes in (slice(0, 5), slice(5, 10)))
    assert (star[0], star[1], star[4]) not in [(path[0], path[1], path[4])]
    assert star[1] == path[0] != path[1] == path[2] != star[0]
    assert star[4] == path[4]  # both alone


# ---- kernels ---------------------------------------------------------------------------------------------------------


def test_shortest_paths_are_those_of_grakel(graphs, for_grakel):
    from grakel import ShortestPath

    theirs = ShortestPath(normalize=True).fit_transform(for_grakel)
    np.testing.assert_allclose(kernel("sp", graphs), theirs, rtol=1e-6)


def test_isolated_nodes_are_no_obstacle():
    assert kernel("sp", star_and_path())[0, 1] == pytest.approx((36 + 24) / np.sqrt((36 + 36) * (36 + 16 + 4)))
    empty = [Data(x=torch.ones(3, 1), edge_index=torch.empty(2, 0, dtype=torch.int64)), *star_and_path()]
    assert kernel("sp", empty)[0].tolist() == [1, 0, 0]
    assert np.isfinite(kernel("gk", empty, samples=50)).all()


def test_wedges_are_pairs_of_edges_at_a_node(graphs):
    """Three connected nodes of a graph without triangles: two edges that meet. (GraKeL's own count has some twice.)"""
    for _, matrix in matrices(read(graphs)):
        degree = np.asarray(matrix.sum(axis=1)).ravel().astype(int)
        found = graphlets(matrix, 3, 10**6, np.random.default_rng(0))
        triangle, wedge = graphlet_of(3)[[0b111, 0b011]]
        assert (found[triangle], found[wedge]) == (0, sum(d * (d - 1) // 2 for d in degree))


def test_a_random_walk_kernel_is_the_sum_over_all_walks(graphs):
    """Walks of the product graph, whose nodes are pairs with the same label, by their length."""
    few, decay = graphs[:3], 0.02
    ours = kernel("rw", few, decay=decay)
    found = np.empty((3, 3))
    for a, first in enumerate(few):
        for b, second in enumerate(few):
            dense = [torch.zeros(g.num_nodes, g.num_nodes).index_put((*g.edge_index,), torch.tensor(1.0)).numpy()
                     for g in (first, second)]  # fmt: skip
            same = (first.x @ second.x.t()).numpy().ravel() > 0
            walks = np.ones(int(same.sum()))
            product = np.kron(*dense)[np.ix_(same, same)].astype(np.float64)
            found[a, b] = (~same).sum()  # GraKeL counts walks without a step from any pair
            for _ in range(60):
                found[a, b] += walks.sum()
                walks = decay * product @ walks
    np.testing.assert_allclose(ours, normalized(found), rtol=1e-4)


def test_the_multiscale_laplacian_takes_features_and_degrees_where_there_are_none(graphs):
    few = graphs[:6]
    plain = [Data(x=torch.ones(g.num_nodes, 1), edge_index=g.edge_index) for g in few]
    parameters = {"levels": 1, "rank": 3, "sampled_nodes": 10}
    one, other = kernel("mlg", few, **parameters), kernel("mlg", plain, **parameters)
    np.testing.assert_allclose(np.diagonal(one), 1)
    assert not np.allclose(one, other)
    np.testing.assert_array_equal(other, kernel("mlg", plain, **parameters))  # the same seed
    assert np.abs(other - 1).max() > 0.01  # degrees tell the graphs apart


# ---- deep graph kernels ----------------------------------------------------------------------------------------------


def test_a_deep_kernel_is_the_double_sum_over_parts():
    counts = sparse.csr_matrix(np.array([[2.0, 0, 1], [0, 1, 1]]))
    vectors = np.array([[1.0, 0], [0.6, 0.8], [0, 1]])
    similarity = vectors @ vectors.T
    expected = np.zeros((2, 2))
    for a in range(2):
        for b in range(2):
            for i in range(3):
                for j in range(3):
                    expected[a, b] += counts[a, i] * similarity[i, j] * counts[b, j]
    np.testing.assert_allclose(deep_kernel(counts, vectors), normalized(expected))
    # With a direction of its own for every part it is the kernel that counts.
    np.testing.assert_allclose(deep_kernel(counts, np.eye(3)), normalized((counts @ counts.T).toarray()))


@pytest.mark.parametrize("parts", PARTS)
def test_sentences_hold_parts_that_occur_together(graphs, parts):
    words, sentences = PARTS[parts](read(graphs), 7, np.random.default_rng(0))
    assert len(words) == len(graphs)
    if parts == "graphlets":
        assert len(sentences) == 7 * len(graphs)
        return
    assert sum(map(len, sentences)) == sum(map(len, words))
    assert len(sentences) == sum(graph.num_nodes for graph in graphs)


def test_parts_that_occur_together_become_alike():
    """Words 0 and 1 share their sentences, 2 and 3 theirs."""
    generator = np.random.default_rng(0)
    sentences = [np.array([0, 1] if row % 2 else [2, 3])[generator.permutation(2)].repeat(3) for row in range(400)]
    vectors = DeepGraphKernel(epochs=20).vectors(sentences, np.arange(4), seed=0)
    similarity = vectors @ vectors.T
    assert min(similarity[0, 1], similarity[2, 3]) > max(similarity[0, 2], similarity[1, 3])
