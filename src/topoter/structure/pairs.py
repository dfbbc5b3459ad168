"""The node pairs of a graph, numbered, and how some of them are drawn: exactly, uniformly, without rejection."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from topoter.kernels import mode
from topoter.kernels.buffers import empty
from topoter.kernels.pairs import pairs_of_ranks, spread_gaps


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
    invert = count * 2 > size
    wanted = torch.where(invert, size - count, count)
    chosen = torch.empty(0, dtype=torch.int64)
    missing = wanted
    while int(missing.sum()) > 0:
        chosen = union_of_sorted(chosen, sorted_draws(first, size, missing, generator))
        missing = wanted - (torch.searchsorted(chosen, first + size) - torch.searchsorted(chosen, first))
    if not bool(invert.any()):
        return chosen
    inverted_size = torch.where(invert, size, 0)
    group = torch.repeat_interleave(inverted_size)
    everything = first[group] + torch.arange(group.numel()) - (inverted_size.cumsum(0) - inverted_size)[group]
    left = everything[~torch.isin(everything, chosen)]
    of_inverted = invert[_stretch_of(chosen, first)]
    return union_of_sorted(chosen[~of_inverted], left)


def sorted_draws(first: Tensor, size: Tensor, count: Tensor, generator: torch.Generator) -> Tensor:
    """`count[g]` independent uniform numbers from each range [first[g], first[g] + size[g]), sorted, in linear time.

    Nothing is sorted: the gaps between n sorted uniform numbers, and to both ends, are n + 1 exponential ones, divided
    by their sum. (Sizes are below 2^53, so a double holds every number exactly.)
    """
    # NumPy, because PyTorch would deal such short operations out to threads, which then spin while compiled code runs.
    gaps = random_unit(int(count.sum()) + count.numel(), generator).numpy()
    np.log(np.subtract(1.0, gaps, out=gaps), out=gaps)  # minus the gaps; the sign cancels
    spread = spread_gaps if mode() == "fast" else spread_gaps_plain
    return spread(torch.from_numpy(gaps), first, size, count)


def spread_gaps_plain(gaps: Tensor, first: Tensor, size: Tensor, count: Tensor) -> Tensor:
    """The twin of `kernels.pairs.spread_gaps`."""
    end = (count + 1).cumsum(0) - 1  # of each range's gaps
    reached = gaps.cumsum(0)
    before = torch.cat([reached.new_zeros(1), reached[end[:-1]]])
    stretch = size / (reached[end] - before)
    inside = torch.ones(reached.numel(), dtype=torch.bool)
    inside[end] = False
    group = torch.repeat_interleave(count)
    drawn = ((reached[inside] - before[group]) * stretch[group]).long()
    return drawn.clamp_(min=0).minimum(size[group] - 1).add_(first[group])


def union_of_sorted(a: Tensor, b: Tensor) -> Tensor:
    """Two sorted lists of integers as one, every number once; few of them new or repeated, so what is right is copied.

    `a` has no repeats.
    """
    known, new = a.numpy(), b.numpy()
    new = np.delete(new, 1 + np.flatnonzero(new[1:] == new[:-1]))
    if known.size == 0:
        return torch.from_numpy(new)
    place = np.searchsorted(known, new)
    is_new = known[np.minimum(place, known.size - 1)] != new
    return torch.from_numpy(np.insert(known, place[is_new], new[is_new]))


def random_below(limit: Tensor, generator: torch.Generator) -> Tensor:
    """A uniform integer below each limit (limits are below 2^53, so a double holds every one exactly)."""
    return (random_unit(limit.numel(), generator) * limit).long().minimum(limit - 1)


def random_unit(count: int, generator: torch.Generator) -> Tensor:
    """Uniform numbers from [0, 1), with all bits of a double."""
    drawn = empty(count, dtype=torch.float64)
    _fast_stream(generator).random(out=drawn.numpy())
    return drawn


def _fast_stream(generator: torch.Generator) -> np.random.Generator:
    """A stream of random numbers that the next draw of `generator` decides, several times as fast as itself."""
    seed = int(torch.randint(1 << 62, (), generator=generator))
    return np.random.Generator(np.random.SFC64(seed))


def _stretch_of(position: Tensor, starts: Tensor) -> Tensor:
    """The last stretch that starts at or before each position (so never an empty one)."""
    if starts.numel() == 1:
        return torch.zeros_like(position)
    return torch.searchsorted(starts, position, right=True) - 1
