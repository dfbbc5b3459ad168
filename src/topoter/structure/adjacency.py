"""The graph as the method sees it: undirected, without loops or duplicates, edges sorted, products cached."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from topoter.errors import DataError
from topoter.kernels import mode, use_compiled
from topoter.kernels.adjacency import symmetric_csr
from topoter.kernels.pairs import flip_pairs
from topoter.kernels.sparse import SparseOperator
from topoter.structure.pairs import PairSpace


@dataclass(frozen=True)
class Cleaning:
    """What had to be changed to make the input edges an undirected simple graph."""

    self_loops: int
    duplicates: int
    one_way: int

    def __str__(self) -> str:
        parts = []
        if self.self_loops:
            parts.append(f"dropped {self.self_loops:,} self-loops")
        if self.duplicates:
            parts.append(f"merged {self.duplicates:,} duplicate edges")
        if self.one_way:
            parts.append(f"read {self.one_way:,} one-way edges as undirected")
        return ", ".join(parts)


class Adjacency:
    """An undirected simple graph A.

    Args:
        edges: every edge once as (i, j) with i < j, sorted by i then j, int64 [2, M].
        num_nodes: N.
        weight: a weight for every edge, float [M]; `None` means 1 everywhere.
        ptr: where each graph of a batch starts, int64 [G + 1]; `None` means one graph. No pair crosses graphs.
    """

    def __init__(self, edges: Tensor, num_nodes: int, weight: Tensor | None = None, ptr: Tensor | None = None) -> None:
        self.edges = edges
        self.num_nodes = num_nodes
        self.weight = weight
        self.ptr = ptr

    @classmethod
    def from_edge_index(
        cls, edge_index: Tensor, num_nodes: int, weight: Tensor | None = None, ptr: Tensor | None = None
    ) -> tuple[Adjacency, Cleaning]:
        """Clean any list of edges: both directions or one, duplicates and self-loops allowed.

        Of several weights for one pair the largest is kept, so that listing an edge in both directions
        does not double it.
        """
        if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= num_nodes):
            bad = int(((edge_index < 0) | (edge_index >= num_nodes)).any(0).nonzero()[0])
            source, target = edge_index[:, bad].tolist()
            raise DataError(
                f"Edge {bad} ({source}, {target}) points to a node that does not exist: "
                f"the graph has {num_nodes} nodes, numbered from 0."
            )
        loops = edge_index[0] == edge_index[1]
        source, target = edge_index[:, ~loops].long()
        directed, directed_count = torch.unique(source * num_nodes + target, return_counts=True)
        low, high = torch.minimum(source, target), torch.maximum(source, target)
        keys, inverse = torch.unique(low * num_nodes + high, return_inverse=True)
        if weight is not None:
            kept = weight.new_zeros(keys.numel())
            weight = kept.scatter_reduce(0, inverse, weight[~loops], "amax", include_self=False)
        both_ways = directed.numel() - keys.numel()
        cleaning = Cleaning(
            self_loops=int(loops.sum()),
            duplicates=int((directed_count - 1).sum()),
            one_way=keys.numel() - both_ways,
        )
        edges = torch.stack([keys // num_nodes, keys % num_nodes]) if num_nodes else keys.new_zeros(2, 0)
        return cls(edges, num_nodes, weight, ptr), cleaning

    @property
    def num_edges(self) -> int:
        """M, every undirected edge counted once."""
        return self.edges.size(1)

    @property
    def device(self) -> torch.device:
        return self.edges.device

    @cached_property
    def edge_index(self) -> Tensor:
        """Both directions of every edge, as PyG's layers take them, [2, 2M]."""
        return torch.cat([self.edges, self.edges.flip(0)], dim=1)

    @cached_property
    def edge_weight(self) -> Tensor | None:
        """The weights that go with `edge_index`, [2M]."""
        return None if self.weight is None else torch.cat([self.weight, self.weight])

    @cached_property
    def pair_space(self) -> PairSpace:
        """All node pairs, numbered, from which disconnected ones are drawn."""
        return PairSpace(self.edges, self.num_nodes, self.ptr)

    @cached_property
    def normalized(self) -> SparseOperator:
        """D^-1/2 (A + I) D^-1/2, with D the degrees of A + I: what SGC and GCN propagate with."""
        return self._operator(self_loops=True)

    @cached_property
    def summed(self) -> SparseOperator:
        """A itself: what GIN sums its neighbours with."""
        return self._operator(self_loops=False)

    def _operator(self, self_loops: bool) -> SparseOperator:
        build = symmetric_csr if use_compiled(self.edges.new_empty(0, dtype=torch.float32)) else _symmetric_csr_plain
        indptr, indices, values = build(self.edges, self.weight, self.num_nodes, self_loops)
        return SparseOperator(indptr, indices, values, self.num_nodes)

    @cached_property
    def keys(self) -> Tensor:
        """One number per edge, i * N + j; increasing."""
        return self.edges[0] * self.num_nodes + self.edges[1]

    def flip(self, flip_edge: Tensor, pairs: Tensor, flip_pair: Tensor) -> Adjacency:
        """A~: without the edges where `flip_edge` [M], and with those of the disconnected `pairs` [2, K] (sorted) where
        `flip_pair` [K], at weight 1."""
        flip = flip_pairs if self.device.type == "cpu" and mode() == "fast" else _flip_pairs_plain
        edges, weight = flip(self.edges, self.weight, flip_edge, pairs, flip_pair)
        return Adjacency(edges, self.num_nodes, weight, self.ptr)

    def keep(self, kept: Tensor) -> Adjacency:
        """The same nodes, and the edges where `kept` [M]."""
        weight = None if self.weight is None else self.weight[kept]
        return Adjacency(self.edges[:, kept], self.num_nodes, weight, self.ptr)

    def to(self, device: torch.device | str) -> Adjacency:
        moved = [None if tensor is None else tensor.to(device) for tensor in (self.weight, self.ptr)]
        return Adjacency(self.edges.to(device), self.num_nodes, *moved)


def _symmetric_csr_plain(
    edges: Tensor, weight: Tensor | None, num_nodes: int, self_loops: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The twin of `kernels.adjacency.symmetric_csr`: any device, by sorting."""
    source, target = torch.cat([edges, edges.flip(0)], dim=1)
    values = torch.ones(edges.size(1), device=edges.device) if weight is None else weight.float()
    values = torch.cat([values, values])
    if self_loops:
        nodes = torch.arange(num_nodes, device=edges.device)
        source, target = torch.cat([source, nodes]), torch.cat([target, nodes])
        values = torch.cat([values, values.new_ones(num_nodes)])
        scale = values.new_zeros(num_nodes).index_add_(0, source, values).rsqrt()
        values = scale[source] * values * scale[target]
    order = torch.argsort(source * num_nodes + target)
    indptr = source.new_zeros(num_nodes + 1)
    torch.cumsum(torch.bincount(source, minlength=num_nodes), 0, out=indptr[1:])
    return indptr, target[order].int(), values[order]


def _flip_pairs_plain(
    edges: Tensor, weight: Tensor | None, flip_edge: Tensor, pairs: Tensor, flip_pair: Tensor
) -> tuple[Tensor, Tensor | None]:
    """The twin of `kernels.pairs.flip_pairs`: any device; both lists are sorted, so each pair's place is searched."""
    kept, added = edges[:, ~flip_edge], pairs[:, flip_pair]
    factor = 1 + max((int(part[1].max()) for part in (kept, added) if part.numel()), default=0)
    place = torch.searchsorted(kept[0] * factor + kept[1], added[0] * factor + added[1])
    place += torch.arange(place.numel(), device=place.device)
    is_added = torch.zeros(kept.size(1) + added.size(1), dtype=torch.bool, device=place.device)
    is_added[place] = True
    flipped = edges.new_empty(2, is_added.numel())
    flipped[:, is_added], flipped[:, ~is_added] = added, kept
    if weight is None:
        return flipped, None
    flipped_weight = weight.new_ones(is_added.numel())
    flipped_weight[~is_added] = weight[~flip_edge]
    return flipped, flipped_weight
