"""A graph of which parts are cut out, wherever it is: mapped from a graph directory, or in memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from topoter.graphs.directory import GraphDirectory
from topoter.kernels import mode
from topoter.kernels.subgraphs import induced_edges
from topoter.structure.adjacency import Adjacency, Cleaning

if TYPE_CHECKING:
    from torch_geometric.data import Data

ROWS = 4096  # scattered ones that are copied before their pages are let go
ENTRIES = 1 << 23  # neighbours that are looked at before their pages are let go


@dataclass(frozen=True, eq=False)
class LargeGraph:
    """An undirected simple graph as lists of neighbours, with features.

    Args:
        indptr, indices: where each node's neighbours start [N + 1], and who they are, ascending [2M].
        features: [N, C], any float type.
        weight: of each entry of `indices`, or None.
    """

    indptr: np.ndarray
    indices: np.ndarray
    features: np.ndarray
    weight: np.ndarray | None = None

    @classmethod
    def from_directory(cls, directory: GraphDirectory) -> LargeGraph:
        return cls(directory.indptr, directory.indices, directory.features, directory.weight)

    @classmethod
    def from_data(cls, data: Data) -> tuple[LargeGraph, Cleaning]:
        """A graph in memory, made undirected and simple; and what had to be changed for that."""
        adjacency, cleaning = Adjacency.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
        operator = adjacency.summed
        row = torch.repeat_interleave(operator.indptr.diff())
        order = torch.argsort(row * data.num_nodes + operator.indices)
        indices, x = operator.indices[order].numpy(), data.x.to_dense().float().numpy()
        weight = None if adjacency.weight is None else operator.values[order].numpy()
        return cls(operator.indptr.numpy(), indices, x, weight), cleaning

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        return len(self.indices) // 2

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @cached_property
    def _position(self) -> np.ndarray:
        """Of every node its place in the part that is being cut out; -1 for all in between."""
        return np.full(self.num_nodes, -1, dtype=np.int32)

    def part(self, nodes: np.ndarray) -> tuple[Tensor, Adjacency]:
        """Some nodes (ascending) with their features [n, C] as float32, and all edges between them.

        One part at a time: not to be called by two threads at once.
        """
        self._position[nodes] = np.arange(len(nodes), dtype=np.int32)
        cut = induced_edges if mode() == "fast" else _induced_edges_plain
        arrays = (np.asarray(self.indptr), np.asarray(self.indices))
        edges, entries = cut(nodes, self._position, *arrays)
        self._position[nodes] = -1
        weight = None if self.weight is None else torch.from_numpy(np.asarray(self.weight[entries], dtype=np.float32))
        return self.rows(nodes), Adjacency(torch.from_numpy(edges), len(nodes), weight)

    def adjacency(self) -> Adjacency:
        """All edges, in memory."""
        row = np.repeat(np.arange(self.num_nodes), np.diff(self.indptr))
        first = row < self.indices
        edges = torch.from_numpy(np.stack([row[first], self.indices[first].astype(np.int64)]))
        weight = None if self.weight is None else torch.from_numpy(np.asarray(self.weight[first], dtype=np.float32))
        return Adjacency(edges, self.num_nodes, weight)

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Nodes from a first to before a last one, that have about `ENTRIES` neighbours together."""
        cuts = np.searchsorted(self.indptr, np.arange(ENTRIES, len(self.indices), ENTRIES)).tolist()
        for start, stop in zip([0, *cuts], [*cuts, self.num_nodes]):
            if stop > start:
                yield start, stop
            self.release()

    def edge_keys(self) -> Iterator[Tensor]:
        """`Adjacency.keys`, in pieces."""
        for start, stop in self.stretches():
            row = np.repeat(np.arange(start, stop), np.diff(self.indptr[start : stop + 1]))
            neighbour = self.indices[self.indptr[start] : self.indptr[stop]].astype(np.int64)
            first = row < neighbour
            yield torch.from_numpy(row[first] * self.num_nodes + neighbour[first])

    def rows(self, nodes: np.ndarray) -> Tensor:
        """The features of some nodes as float32, [n, C].

        Scattered rows bring pages of others along, sixteen for each on Linux: they are let go as the rows are copied.
        """
        x = np.empty((len(nodes), self.num_features), dtype=np.float32)
        for start in range(0, len(nodes), ROWS):
            x[start : start + ROWS] = self.features[nodes[start : start + ROWS]]
            release(self.features)
        return torch.from_numpy(x)

    def degrees(self, nodes: np.ndarray) -> np.ndarray:
        """The sum of the weights of each node's edges; without weights, how many they are."""
        if self.weight is None:
            return self.indptr[nodes + 1] - self.indptr[nodes]
        entries, row = neighbours_of(nodes, np.asarray(self.indptr))
        return np.bincount(row, weights=self.weight[entries], minlength=len(nodes))

    def release(self) -> None:
        """Let go of what was mapped so far: the system keeps the pages as long as nothing else needs the room."""
        for array in (self.indptr, self.indices, self.features, self.weight):
            release(array)


def release(array: np.ndarray | None) -> None:
    """Let go of the pages of a mapped array."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def neighbours_of(nodes: np.ndarray, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the neighbours of some nodes stand in the lists, one after the other, and the place of the node of each."""
    start, stop = indptr[nodes], indptr[nodes + 1]
    counts = stop - start
    row = np.repeat(np.arange(len(nodes)), counts)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(nodes) else counts
    return np.arange(len(row)) - np.repeat(first - start, counts), row


def _induced_edges_plain(
    nodes: np.ndarray, position: np.ndarray, indptr: np.ndarray, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The twin of `kernels.subgraphs.induced_edges`."""
    entries, row = neighbours_of(nodes, indptr)
    place = position[indices[entries]].astype(np.int64)
    kept = place > row
    return np.stack([row[kept], place[kept]]), entries[kept]
