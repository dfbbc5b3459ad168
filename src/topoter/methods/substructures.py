"""The small parts that graphs are made of: refined labels, shortest paths and graphlets, counted in every graph."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from topoter.structure.graph_sets import GraphSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_geometric.data import Data

GRAPHLET_SIZES = (3, 4, 5)
_BLOCK = 100_000  # sets of nodes that are looked up at a time


def node_labels(graph_set: GraphSet) -> np.ndarray:
    """A number for every node [N]: nodes with equal features have the same."""
    _, labels = torch.unique(graph_set.x, dim=0, return_inverse=True)
    return labels.numpy()


def refined_labels(graph_set: GraphSet, iterations: int) -> np.ndarray:
    """Weisfeiler and Lehman's labels of every node [N, iterations + 1], the features' own first.

    Two nodes get the same label if they had the same before, and their neighbours too. Neighbours are compared by the
    sum of random 64-bit numbers, one for each label, which is the same for other labels once in about 10^19 times.
    """
    edges = graph_set.adjacency.edge_index.numpy()
    num_nodes = graph_set.adjacency.num_nodes
    generator = np.random.default_rng(0)  # which numbers makes no difference
    columns = [node_labels(graph_set)]
    for _ in range(iterations):
        labels = columns[-1]
        names = generator.integers(-(2**63), 2**63 - 1, size=labels.max() + 1)
        sums = np.zeros(num_nodes, np.int64)
        np.add.at(sums, edges[0], names[labels[edges[1]]])  # wraps around, whatever the order
        _, refined = np.unique(np.stack([labels, sums], axis=1), axis=0, return_inverse=True)
        columns.append(refined.ravel())
    return np.stack(columns, axis=1)


def matrices(graph_set: GraphSet) -> Iterator[tuple[slice, sparse.csr_matrix]]:
    """The nodes and the adjacency matrix of one graph after another."""
    for number in range(len(graph_set)):
        first, last = graph_set.nodes[number : number + 2].tolist()
        start, stop = graph_set.edges[number : number + 2].tolist()
        i, j = (graph_set.adjacency.edges[:, start:stop] - first).numpy()
        ones = np.ones(2 * len(i), np.int8)
        shape = (last - first, last - first)
        yield (
            slice(first, last),
            sparse.csr_matrix((ones, (np.concatenate([i, j]), np.concatenate([j, i]))), shape=shape),
        )


def shortest_paths(graph_set: GraphSet) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each graph the source of every shortest path, and a number for its two ends' labels and its length."""
    labels = node_labels(graph_set)
    kinds = int(labels.max()) + 1
    for nodes, matrix in matrices(graph_set):
        distance = shortest_path(matrix, unweighted=True)
        source, target = np.nonzero(np.isfinite(distance) & (distance > 0))
        ends = labels[nodes][source] * kinds + labels[nodes][target]
        yield source, distance[source, target].astype(np.int64) * kinds**2 + ends


def count(words: Sequence[np.ndarray]) -> tuple[sparse.csr_matrix, np.ndarray]:
    """How often each word is in each document [documents, words], and which words these are."""
    known, column = np.unique(np.concatenate(words), return_inverse=True)
    row = np.repeat(np.arange(len(words)), [len(document) for document in words])
    shape = (len(words), len(known))
    return sparse.csr_matrix((np.ones(len(row)), (row, column.ravel())), shape=shape), known


# ---- graphlets -------------------------------------------------------------------------------------------------------


@cache
def graphlet_of(size: int) -> np.ndarray:
    """Which graphlet the edges among `size` nodes form: its number, by a bit for every pair of nodes."""
    pairs = list(combinations(range(size), 2))
    place = {pair: bit for bit, pair in enumerate(pairs)}
    bits = (np.arange(1 << len(pairs))[:, None] >> np.arange(len(pairs))) & 1
    smallest = np.full(len(bits), 1 << len(pairs))
    for order in permutations(range(size)):
        moved = [place[min(order[i], order[j]), max(order[i], order[j])] for i, j in pairs]
        smallest = np.minimum(smallest, bits[:, moved] @ (1 << np.arange(len(pairs))))
    _, number = np.unique(smallest, return_inverse=True)
    return number.ravel()


def graphlets(matrix: sparse.csr_matrix, size: int, samples: int, generator: np.random.Generator) -> np.ndarray:
    """How many sets of `size` nodes form each graphlet, of all sets if they are no more than `samples`, else of these.

    Sets are drawn uniformly, whether their nodes are connected or not (Shervashidze et al., 2009).
    """
    kinds = int(graphlet_of(size).max()) + 1
    found = np.zeros(kinds)
    dense = matrix.toarray().astype(bool)
    for chosen in _node_sets(len(dense), size, samples, generator):
        found += np.bincount(graphlet_of(size)[pattern(dense, chosen)], minlength=kinds)
    return found


def pattern(dense: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The edges among each set of nodes [S, size], a bit for every pair."""
    pairs = combinations(range(chosen.shape[1]), 2)
    bits = [dense[chosen[:, i], chosen[:, j]].astype(np.int64) << bit for bit, (i, j) in enumerate(pairs)]
    return np.sum(bits, axis=0)


def _node_sets(num_nodes: int, size: int, samples: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    if num_nodes < size:
        return
    if comb(num_nodes, size) <= samples:
        yield np.array(list(combinations(range(num_nodes), size)))
        return
    while samples:
        drawn = min(samples, _BLOCK)
        yield sample_sets(num_nodes, size, drawn, generator)
        samples -= drawn


def sample_sets(num_nodes: int, size: int, samples: int, generator: np.random.Generator) -> np.ndarray:
    """Sets of different nodes [samples, size]; a draw that holds a node twice is drawn again."""
    chosen = generator.integers(num_nodes, size=(samples, size))
    while True:
        ordered = np.sort(chosen, axis=1)
        twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(twice):
            return chosen
        chosen[twice] = generator.integers(num_nodes, size=(len(twice), size))


def read(graphs: list[Data]) -> GraphSet:
    """A set of graphs as this file takes it."""
    from topoter.structure.graph_sets import read_graph_set

    return GraphSet.from_graphs(read_graph_set(graphs))[0]
