"""The node pairs of a graph, numbered, and how some of them are drawn: exactly, uniformly, without rejection."""

from __future__ import annotations

import torch
from torch import Tensor

from topoter.kernels import mode
from topoter.kernels.buffers import empty
from topoter.kernels.pairs import pairs_of_ranks, union_of_sorted


class PairSpace:
    """All pairs i < j within the graphs of a batch, numbered graph by graph, row by row.

    Sampling happens on the CPU with an explicit generator, so that one seed means one sequence on any device.
    """

    def __init__(self, edges: Tensor, num_nodes: int, ptr: Tensor | None = None) -> None:
        self.ptr = torch.tensor([0, num_nodes]) if ptr is None else ptr.cpu()
        size = self.ptr[1:] - self.ptr[:-1]
        self.num_pairs = size * (size - 1) // 2
        self.offset = self.num_pairs.cumsum(0) - self.num_pairs
        self.device = edges.device
        edges = edges.cpu()
        graph = self.graph_of_node(edges[0])
        self.num_edges = torch.bincount(graph, minlength=size.numel())
        self.num_disconnected = self.num_pairs - self.num_edges
        # How many disconnected pairs come before each edge; increasing.
        self.disconnected_before_edge = self.number(edges, graph) - torch.arange(edges.size(1))

    def graph_of_node(self, node: Tensor) -> Tensor:
        """Which graph of the batch each node is in."""
        return _stretch_of(node, self.ptr[:-1])

    def number(self, pairs: Tensor, graph: Tensor) -> Tensor:
        """The number of each pair; increasing in (i, j)."""
        start = self.ptr[graph]
        size = self.ptr[graph + 1] - start
        i, j = pairs - start
        return self.offset[graph] + i * (2 * size - i - 1) // 2 + (j - i - 1)

    def pair(self, number: Tensor, graph: Tensor) -> Tensor:
        """The pair with each number: the inverse of `number`."""
        start = self.ptr[graph]
        size = self.ptr[graph + 1] - start
        rest = number - self.offset[graph]
        edge_of_row = 2 * size - 1
        i = ((edge_of_row - (edge_of_row.double() ** 2 - 8.0 * rest.double()).sqrt()) / 2).long()
        # The square root may be off by one row for numbers near 2^53: put it right in integers.
        i -= (i * (2 * size - i - 1) // 2 > rest).long()
        i += ((i + 1) * (2 * size - i - 2) // 2 <= rest).long()
        j = rest - i * (2 * size - i - 1) // 2 + i + 1
        return torch.stack([i + start, j + start])

    def disconnected(self, count: Tensor, generator: torch.Generator) -> Tensor:
        """`count[g]` different disconnected pairs of each graph g, every choice equally likely, sorted.

        The r-th disconnected pair is found without looking at the others: pair number r plus the number of
        edges before it. So no draw is ever rejected for hitting an edge.
        """
        first = self.num_disconnected.cumsum(0) - self.num_disconnected
        rank = sample_distinct(first, self.num_disconnected, count, generator)
        find = pairs_of_ranks if mode() == "fast" else self.pairs_of_ranks_plain
        return find(rank, self.disconnected_before_edge, self.ptr).to(self.device)

    def pairs_of_ranks_plain(self, rank: Tensor, disconnected_before_edge: Tensor, ptr: Tensor) -> Tensor:
        """The twin of `kernels.pairs.pairs_of_ranks`, by search and square root."""
        number = rank + torch.searchsorted(disconnected_before_edge, rank, right=True)
        return self.pair(number, _stretch_of(number, self.offset))


def sample_distinct(first: Tensor, size: Tensor, count: Tensor, generator: torch.Generator) -> Tensor:
    """`count[g]` different numbers from each range [first[g], first[g] + size[g]), uniformly, sorted.

    As many numbers are drawn as are missing, repeats are dropped, and what is missing then is drawn again: no number
    is ever preferred. Where more than half of a range is wanted, the numbers to leave out are drawn instead.
    """
    unite = union_of_sorted if mode() == "fast" else union_of_sorted_plain
    invert = count * 2 > size
    wanted = torch.where(invert, size - count, count)
    chosen = torch.empty(0, dtype=torch.int64)
    missing = wanted
    while int(missing.sum()) > 0:
        chosen = unite(chosen, sorted_draws(first, size, missing, generator))
        missing = wanted - (torch.searchsorted(chosen, first + size) - torch.searchsorted(chosen, first))
    if not bool(invert.any()):
        return chosen
    inverted_size = torch.where(invert, size, 0)
    group = torch.repeat_interleave(inverted_size)
    everything = first[group] + torch.arange(group.numel()) - (inverted_size.cumsum(0) - inverted_size)[group]
    left = everything[~torch.isin(everything, chosen)]
    of_inverted = invert[_stretch_of(chosen, first)]
    return unite(chosen[~of_inverted], left)


def sorted_draws(first: Tensor, size: Tensor, count: Tensor, generator: torch.Generator) -> Tensor:
    """`count[g]` independent uniform numbers from each range [first[g], first[g] + size[g]), sorted, in linear time.

    Nothing is sorted: the gaps between n sorted uniform numbers, and to both ends, are n + 1 exponential ones, divided
    by their sum. (Sizes are below 2^53, so a double holds every number exactly.)
    """
    end = (count + 1).cumsum(0) - 1  # of each range's gaps
    gaps = random_unit(int(end[-1]) + 1, generator).neg_().log1p_().neg_()
    reached = gaps.cumsum_(0)
    before = torch.cat([reached.new_zeros(1), reached[end[:-1]]])
    stretch = size / (reached[end] - before)
    if count.numel() == 1:
        drawn = empty(int(count), dtype=torch.int64).copy_(reached[:-1].mul_(stretch))
        return drawn.clamp_(max=int(size) - 1).add_(first)
    group = torch.repeat_interleave(count)
    inside = torch.ones(reached.numel(), dtype=torch.bool)
    inside[end] = False
    offset = ((reached[inside] - before[group]) * stretch[group]).long()
    return first[group] + offset.clamp_(min=0).minimum(size[group] - 1)


def union_of_sorted_plain(a: Tensor, b: Tensor) -> Tensor:
    """The twin of `kernels.pairs.union_of_sorted`, by sorting."""
    return torch.cat([a, b]).unique()


def random_below(limit: Tensor, generator: torch.Generator) -> Tensor:
    """A uniform integer below each limit (limits are below 2^53, so a double holds every one exactly)."""
    return (random_unit(limit.numel(), generator) * limit).long().minimum(limit - 1)


def random_unit(count: int, generator: torch.Generator) -> Tensor:
    """Uniform numbers from [0, 1), with all bits of a double."""
    return empty(count, dtype=torch.float64).uniform_(generator=generator)


def _stretch_of(position: Tensor, starts: Tensor) -> Tensor:
    """The last stretch that starts at or before each position (so never an empty one)."""
    if starts.numel() == 1:
        return torch.zeros_like(position)
    return torch.searchsorted(starts, position, right=True) - 1
