"""New nodes beside a large graph: all that their representations depend on, with the degrees of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError
from topoter.kernels.sparse import SparseOperator
from topoter.structure.adjacency import Adjacency
from topoter.structure.large_graph import LargeGraph, neighbours_of


class Part(Adjacency):
    """A part of a larger graph, normalised by the degrees that its nodes have there.

    Args:
        degree: of each node in the whole graph, itself not counted [N].
    """

    def __init__(self, edges: Tensor, num_nodes: int, weight: Tensor | None, degree: Tensor) -> None:
        super().__init__(edges, num_nodes, weight)
        self.degree = degree

    @cached_property
    def normalized(self) -> SparseOperator:
        part = self._operator(self_loops=True)
        weight = torch.ones(self.num_edges) if self.weight is None else self.weight
        own = torch.zeros(self.num_nodes).index_add_(0, self.edge_index[0], weight.repeat(2))
        ratio = ((1 + own) / (1 + self.degree)).sqrt()
        values = part.values * ratio[part.row] * ratio[part.indices.long()]
        return SparseOperator(part.indptr, part.indices, values, self.num_nodes)


@dataclass(frozen=True)
class Neighbourhood:
    """New nodes first, then the nodes of the graph around them.

    Args:
        nodes: numbers of the latter in the graph [m].
        adjacency: all edges between those n + m.
        neighbours: how many each has in the whole graph, the new nodes counted [n + m].
    """

    nodes: np.ndarray
    adjacency: Part
    neighbours: np.ndarray


def around_new_nodes(graph: LargeGraph, new: Adjacency, num_new: int, hops: int) -> Neighbourhood:
    """What the representations of new nodes depend on: every node of the graph within so many hops of them.

    A node that far away still counts, scaled by its degree, but not who else it is connected to.

    Args:
        new: the edges that come with the new nodes, which are numbered from 0, those of the graph after them.
    """
    low, high = new.edges.numpy()
    known = np.unique(high[high >= num_new]) - num_new
    found = frontier = known
    for _ in range(hops - 1):
        entries, _ = neighbours_of(frontier, np.asarray(graph.indptr))
        frontier = np.setdiff1d(graph.indices[entries].astype(np.int64), found)
        found = np.union1d(found, frontier)
    entries, _ = neighbours_of(found, np.asarray(graph.indptr))
    listed = graph.indices[entries]
    if len(listed) and (listed.min() < 0 or listed.max() >= graph.num_nodes):
        raise DataError("The graph is damaged: it has a neighbour that does not exist. Import the files again.")
    _, part = graph.part(found)
    total = num_new + len(found)
    high = np.where(high >= num_new, num_new + np.searchsorted(found, high - num_new), high)
    edges = torch.cat([torch.from_numpy(np.stack([low, high])), num_new + part.edges], dim=1)
    weights = [
        torch.ones(one.num_edges) if one.weight is None else one.weight for one in (new, part)
    ]  # edges without a weight count as 1 beside those that have one
    weight = None if new.weight is None and part.weight is None else torch.cat(weights)
    joined, _ = Adjacency.from_edge_index(edges, total, weight)
    ends = np.concatenate([low, high])
    added = np.bincount(ends, weights=weights[0].repeat(2).numpy(), minlength=total)
    degree = np.concatenate([np.zeros(num_new), graph.degrees(found)]) + added
    neighbours = np.concatenate([np.zeros(num_new), np.diff(graph.indptr)[found]]) + np.bincount(ends, minlength=total)
    whole = Part(joined.edges, total, joined.weight, torch.from_numpy(degree).float())
    return Neighbourhood(found, whole, neighbours)
