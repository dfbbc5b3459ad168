"""What a graph is like as a whole: how its nodes' places are distributed, and which neighbourhoods occur how often.

    profile = shares of nodes with more than t neighbours, triangles, ... | sizes | features | neighbourhoods

Neighbourhoods are counted as in the Weisfeiler-Lehman kernel. A neighbourhood's number is a hash, the same in every
graph, so that new graphs need no dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from topoter.kernels.substructures import core_numbers, triangles_of_edges
from topoter.structure.adjacency import Adjacency

HOPS = 3  # how far neighbourhoods reach
BUCKETS = 2048  # into which neighbourhoods of a size are hashed
THRESHOLDS = 8  # of each number that describes a node's place
MOST_LABELS = 1024  # nodes with more different rows of features than this have no label, but measurements
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Places:
    """Numbers that describe where nodes [N, S] and edges [M, 1] stand in their graph, whatever their features."""

    nodes: np.ndarray
    edges: np.ndarray

    @classmethod
    def of(cls, adjacency: Adjacency) -> Places:
        edges, ptr = adjacency.edges.cpu().numpy(), starts(adjacency)
        matrix = adjacency.summed
        indptr, indices = matrix.indptr.cpu().numpy().astype(np.int64), matrix.indices.cpu().numpy().astype(np.int64)
        degree = np.diff(indptr)
        log_degree = np.log1p(degree)
        least, most, mean, deviation = _over_neighbours(indptr, indices, log_degree)
        shared = triangles_of_edges(edges, adjacency.num_nodes)
        triangles = sum(np.bincount(end, shared, adjacency.num_nodes) for end in edges) / 2
        clustering = 2 * triangles / np.maximum(degree * (degree - 1), 1)
        inverse = 1 / np.maximum(degree, 1)
        size = np.diff(ptr)
        places = (
            log_degree,
            *(least, most, mean, deviation),
            np.log1p(triangles),
            clustering,
            np.log1p(core_numbers(indptr, indices)),
            _over_neighbours(indptr, indices, inverse)[2] * (degree > 0),  # a walk of two steps is back again
            _over_neighbours(indptr, indices, mean)[2],
            _over_neighbours(indptr, indices, most)[1],
            _over_neighbours(indptr, indices, clustering)[2],
            degree / np.repeat(np.maximum(size - 1, 1), size),
        )
        # Rounded, so that the last bit never decides on which side of a threshold a node is.
        return cls(np.stack(places, axis=1).round(5), np.log1p(shared)[:, None].round(5))

    def thresholds(self) -> np.ndarray:
        """For each number the values that tell nodes apart best, [S + 1, T]; infinite where it has fewer values."""
        found = np.full((self.nodes.shape[1] + 1, THRESHOLDS), np.inf)
        for row, values in zip(found, [*self.nodes.T, *self.edges.T]):
            chosen = _thresholds(values)
            row[: len(chosen)] = chosen
        return found


def starts(adjacency: Adjacency) -> np.ndarray:
    """Where each graph of a batch starts, [G + 1]."""
    return np.array([0, adjacency.num_nodes]) if adjacency.ptr is None else adjacency.ptr.cpu().numpy()


def distributions(places: Places, adjacency: Adjacency, thresholds: np.ndarray) -> np.ndarray:
    """The share of a graph's nodes, and of its edges, that are above each threshold, [G, (S + 1) T]."""
    ptr = starts(adjacency)
    graph = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    shares = [_above(column, graph, len(ptr) - 1, row) for column, row in zip(places.nodes.T, thresholds)]
    shares.append(_above(places.edges[:, 0], graph[adjacency.edges[0].cpu().numpy()], len(ptr) - 1, thresholds[-1]))
    return np.concatenate(shares, axis=1)


def sizes(adjacency: Adjacency) -> np.ndarray:
    """Logarithms of the number of nodes, of edges, and of the largest degree, [G, 3]."""
    ptr = starts(adjacency)
    degree = np.diff(adjacency.summed.indptr.cpu().numpy())
    total, most = np.add.reduceat(degree, ptr[:-1]), np.maximum.reduceat(degree, ptr[:-1])
    return np.log1p(np.stack([np.diff(ptr), total, most], axis=1))


def labels_of_nodes(x: Tensor) -> np.ndarray:
    """A number for every node, the same for equal features, [N]."""
    bits = np.ascontiguousarray(x.cpu().numpy() + np.float32(0)).view(np.uint32)  # -0 and 0 are the same
    total = np.zeros(len(bits), dtype=np.uint64)
    for column, salt in zip(bits.T, np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * _ODD):
        total += _mixed(column.astype(np.uint64) ^ salt)
    return total


def are_labels(x: Tensor) -> bool:
    """Whether features are few and recurring, as atom types are, and tell nodes apart."""
    different = len(np.unique(labels_of_nodes(x)))
    return 1 < different <= min(MOST_LABELS, len(x) // 4)


def feature_means(x: Tensor, adjacency: Adjacency) -> np.ndarray:
    """Mean and deviation of features within a graph, [G, 2 C]."""
    ptr, values = starts(adjacency), x.cpu().numpy().astype(np.float64)
    size = np.maximum(np.diff(ptr), 1)[:, None]
    mean, square = (np.add.reduceat(each, ptr[:-1]) / size for each in (values, values**2))
    return np.concatenate([mean, np.sqrt(np.maximum(square - mean**2, 0))], axis=1)


def neighbourhood_counts(label: np.ndarray, adjacency: Adjacency) -> list[np.ndarray]:
    """How often each neighbourhood of 0 to `HOPS` hops occurs: roots of counts in rows of length one, [G, B] each."""
    ptr = starts(adjacency)
    graph = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)).astype(np.int64)
    indptr, indices = (
        part.cpu().numpy().astype(np.int64) for part in (adjacency.summed.indptr, adjacency.summed.indices)
    )
    number, found = _mixed(label.astype(np.uint64) + _ODD), []
    for hop in range(HOPS + 1):
        if hop:  # a sum, because neighbours have no order
            message = _mixed(number * np.uint64(3) + np.uint64(hop))[indices]
            number = _mixed(number * _ODD + _sums(indptr, message))
        bucket = (number % np.uint64(BUCKETS)).astype(np.int64)
        counts = np.bincount(graph * BUCKETS + bucket, minlength=(len(ptr) - 1) * BUCKETS).reshape(-1, BUCKETS)
        roots = np.sqrt(counts).astype(np.float32)
        found.append(roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-9))
    return found


def leading(table: np.ndarray, rank: int) -> tuple[Tensor, Tensor]:
    """The mean of a table's rows [B], and its leading directions [B, rank], zero where it has fewer."""
    mean = table.mean(axis=0)
    centred = torch.from_numpy(table - mean)
    wide = centred.size(1) > centred.size(0)
    values, vectors = torch.linalg.eigh((centred @ centred.t() if wide else centred.t() @ centred).double())
    values, vectors = values.flip(0)[:rank], vectors.flip(1)[:, :rank]
    kept = values > 1e-6 * values.max().clamp(min=1e-6)
    values, vectors = values[kept], vectors[:, kept]
    if wide:
        vectors = (centred.t().double() @ vectors) * values.rsqrt()
    basis = torch.zeros(table.shape[1], rank)
    basis[:, : vectors.size(1)] = vectors.float()
    return torch.from_numpy(mean), basis


def _thresholds(values: np.ndarray) -> np.ndarray:
    """Every value but the last where they are few; else quantiles, half of nodes and half of the values that occur."""
    different = np.unique(values)
    if len(different) <= THRESHOLDS:
        return different[:-1]
    at = np.linspace(0, 1, THRESHOLDS // 2 + 2)[1:-1]
    return np.unique(np.concatenate([np.quantile(values, at), np.quantile(different, at)]).round(5))


def _above(values: np.ndarray, graph: np.ndarray, graphs: int, thresholds: np.ndarray) -> np.ndarray:
    """The share of each graph's values that exceed each threshold, [G, T]."""
    width = len(thresholds) + 1
    place = np.searchsorted(thresholds, values, side="left")
    counts = np.bincount(graph * width + place, minlength=graphs * width).reshape(-1, width)
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    return above[:, 1:] / np.maximum(above[:, :1], 1)


def _over_neighbours(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Least, most, mean and deviation of a number over each node's neighbours; the node's own where it has none."""
    degree = np.diff(indptr)
    some = degree > 0
    first, theirs, count = indptr[:-1][some], values[indices].astype(np.float64), degree[some]
    found = [values.astype(np.float64) for _ in range(3)] + [np.zeros(len(values))]
    if some.any():
        mean = np.add.reduceat(theirs, first) / count
        square = np.add.reduceat(theirs**2, first) / count
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        both = (np.minimum.reduceat(theirs, first), np.maximum.reduceat(theirs, first), mean, deviation)
        for column, of_some in zip(found, both):
            column[some] = of_some
    return tuple(found)


def _sums(indptr: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of stretches, modulo 2^64; 0 of an empty one."""
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
    difference: np.ndarray = total[indptr[1:]] - total[indptr[:-1]]
    return difference


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers that look random, the same for the same (splitmix64); products wrap around."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = numbers ^ (numbers >> np.uint64(31))
    return mixed
