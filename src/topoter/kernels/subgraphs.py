"""Loops over the neighbour lists of a graph that may be on disk: parts cut out of it, and its nodes grouped."""

from __future__ import annotations

import numpy as np

from topoter.kernels import mode
from topoter.kernels.compiled import compile_kernel, run


def induced_edges(
    nodes: np.ndarray, position: np.ndarray, indptr: np.ndarray, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The edges between some nodes: as places in `nodes` [2, m], i < j, sorted, and where in `indices` each is [m].

    Args:
        nodes: ascending node numbers.
        position: of every node of the graph its place in `nodes`, or -1.
    """
    edges, entries = run("subgraphs", _induced_edges, nodes, position, indptr, indices)
    return edges, entries


def stream_partition(indptr: np.ndarray, indices: np.ndarray, parts: int, capacity: int, passes: int) -> np.ndarray:
    """Each node in turn goes where most of its neighbours are, less gladly the fuller it is there; int32 [N].

    Linear deterministic greedy (Stanton and Kliot, 2012), streamed again with what the pass before decided
    (Nishimura and Ugander, 2013). Linear in nodes and edges; holds two numbers per node.
    """
    arguments = (indptr, indices, parts, capacity, passes)
    if mode() == "plain":  # the same loop, not compiled
        plain: np.ndarray = _stream_partition.py_func(*arguments)
        return plain
    part: np.ndarray = run("partition", _stream_partition, *arguments)
    return part


@compile_kernel()
def _induced_edges(nodes, position, indptr, indices):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(nodes.shape[0]):
        for entry in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            if position[indices[entry]] > i:
                count += 1
    edges = np.empty((2, count), dtype=np.int64)
    entries = np.empty(count, dtype=np.int64)
    count = 0
    for i in range(nodes.shape[0]):
        for entry in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            j = position[indices[entry]]
            if j > i:
                edges[0, count] = i
                edges[1, count] = j
                entries[count] = entry
                count += 1
    return edges, entries


@compile_kernel()
def _stream_partition(indptr, indices, parts, capacity, passes):  # type: ignore[no-untyped-def]
    num_nodes = indptr.shape[0] - 1
    part = np.full(num_nodes, -1, dtype=np.int32)
    size = np.zeros(parts, dtype=np.int64)
    near = np.zeros(parts, dtype=np.int64)  # neighbours of the node at hand in each part
    seen = np.empty(parts, dtype=np.int64)
    for number in range(passes):
        opened = 0  # the part that nodes without placed neighbours go to
        if number > 0:
            size[:] = 0
        for node in range(num_nodes):
            touched = 0
            for entry in range(indptr[node], indptr[node + 1]):
                group = part[indices[entry]]
                if group >= 0:
                    if near[group] == 0:
                        seen[touched] = group
                        touched += 1
                    near[group] += 1
            best, best_score = -1, 0
            for place in range(touched):
                group = seen[place]
                score = near[group] * (capacity - size[group])  # whole numbers: the same order everywhere
                if score > best_score or (score == best_score and best >= 0 and group < best):
                    best, best_score = group, score
                near[group] = 0
            if best < 0:
                while size[opened] >= capacity:
                    opened += 1
                best = opened
            part[node] = best
            size[best] += 1
    return part
