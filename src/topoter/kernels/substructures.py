"""Triangles of every edge and core number of every node, in time linear in edges times the smaller degree."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from topoter.kernels import mode
from topoter.kernels.compiled import compile_kernel, run


def triangles_of_edges(edges: np.ndarray, num_nodes: int) -> np.ndarray:
    """How many triangles hold each edge, [M]: the common neighbours of its two ends."""
    if mode() == "plain":
        return triangles_of_edges_plain(edges, num_nodes)
    degree = np.bincount(edges.ravel(), minlength=num_nodes)
    # Every edge points to the end of higher degree: then a hub has few edges that leave it.
    swap = degree[edges[0]] > degree[edges[1]]
    low, high = np.where(swap, edges[::-1], edges)
    order = np.argsort(low, kind="stable")
    indptr = np.concatenate([[0], np.bincount(low, minlength=num_nodes).cumsum()])
    count: np.ndarray = run("triangle", _triangles, indptr, high[order], order)
    return count


def triangles_of_edges_plain(edges: np.ndarray, num_nodes: int) -> np.ndarray:
    """The twin: entries of A A at the edges."""
    if not edges.size:
        return np.zeros(0, dtype=np.int64)
    ones = np.ones(edges.shape[1])
    half = sparse.coo_matrix((ones, (edges[0], edges[1])), shape=(num_nodes, num_nodes)).tocsr()
    whole = half + half.T
    return np.asarray((whole @ whole)[edges[0], edges[1]]).ravel().astype(np.int64)


def core_numbers(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The largest k such that a node is in a part of the graph where all have k neighbours, [N]."""
    peel = core_numbers_plain if mode() == "plain" else _run_cores
    return peel(indptr, indices)


def _run_cores(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    core: np.ndarray = run("core", _cores, indptr, indices)
    return core


def core_numbers_plain(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The twin: nodes are taken away round by round."""
    num_nodes = len(indptr) - 1
    row = np.repeat(np.arange(num_nodes), np.diff(indptr))
    core, left, k = np.zeros(num_nodes, dtype=np.int64), np.ones(num_nodes, dtype=bool), 0
    while left.any():
        degree = np.bincount(row[left[row] & left[indices]], minlength=num_nodes)
        gone = left & (degree <= k)
        core[gone], left = k, left & ~gone
        k += not gone.any()
    return core


@compile_kernel()
def _triangles(indptr, target, edge):  # type: ignore[no-untyped-def]
    num_nodes = indptr.shape[0] - 1
    count = np.zeros(edge.shape[0], dtype=np.int64)
    mark = np.full(num_nodes, -1, dtype=np.int64)
    for u in range(num_nodes):
        for p in range(indptr[u], indptr[u + 1]):
            mark[target[p]] = edge[p]
        for p in range(indptr[u], indptr[u + 1]):
            v = target[p]
            for q in range(indptr[v], indptr[v + 1]):
                across = mark[target[q]]
                if across >= 0:
                    count[edge[p]] += 1
                    count[edge[q]] += 1
                    count[across] += 1
        for p in range(indptr[u], indptr[u + 1]):
            mark[target[p]] = -1
    return count


@compile_kernel()
def _cores(indptr, indices):  # type: ignore[no-untyped-def]
    """Batagelj and Zaversnik (2003): nodes sorted by degree in bins, and moved down a bin as neighbours go."""
    num_nodes = indptr.shape[0] - 1
    degree = indptr[1:] - indptr[:-1]
    most = 0
    for node in range(num_nodes):
        most = max(most, degree[node])
    start = np.zeros(most + 2, dtype=np.int64)
    for node in range(num_nodes):
        start[degree[node] + 1] += 1
    for value in range(1, most + 2):
        start[value] += start[value - 1]
    place = np.empty(num_nodes, dtype=np.int64)
    order = np.empty(num_nodes, dtype=np.int64)
    cursor = start.copy()
    for node in range(num_nodes):
        place[node] = cursor[degree[node]]
        order[place[node]] = node
        cursor[degree[node]] += 1
    for position in range(num_nodes):
        node = order[position]
        for p in range(indptr[node], indptr[node + 1]):
            other = indices[p]
            if degree[other] > degree[node]:
                first = start[degree[other]]
                swapped = order[first]
                order[place[other]], order[first] = swapped, other
                place[swapped], place[other] = place[other], first
                start[degree[other]] += 1
                degree[other] -= 1
    return degree
