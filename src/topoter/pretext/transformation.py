"""Topology transformations: which node pairs are flipped, and what happened to each pair looked at.

(A, r) -> A~, pairs, types. The paper's form (`exact`) takes all M connected pairs and as many disconnected ones,
drawn anew each time, and flips exactly round(r * M) of each. Two further forms stand in the same registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, UsageError, invalid_parameter
from topoter.kernels import mode
from topoter.kernels.pairs import join_pairs, mark_smallest
from topoter.structure.adjacency import Adjacency
from topoter.structure.pairs import random_below, random_unit


class EdgeChange(IntEnum):
    """What a transformation does to a node pair; the numbers are the paper's order and the decoder's classes."""

    ADD = 0
    DELETE = 1
    KEEP_DISCONNECTED = 2
    KEEP_CONNECTED = 3


@dataclass(frozen=True)
class TopologyTransformation:
    """A graph before and after, and the pairs whose change is to be predicted.

    Shapes: pairs [2, P] with i < j, pair_type [P] holding `EdgeChange` values.
    """

    adjacency: Adjacency
    adjacency_t: Adjacency
    pairs: Tensor
    pair_type: Tensor

    @classmethod
    def flip(
        cls, adjacency: Adjacency, disconnected: Tensor, flip_disconnected: Tensor, flip_connected: Tensor
    ) -> TopologyTransformation:
        """Flip the marked ones of some disconnected pairs [2, K] and of all edges [2, M]."""
        join = join_pairs if adjacency.device.type == "cpu" and mode() == "fast" else join_pairs_plain
        pairs, pair_type = join(disconnected, flip_disconnected, adjacency.edges, flip_connected)
        return cls(
            adjacency=adjacency,
            adjacency_t=adjacency.flip(flip_connected, disconnected, flip_disconnected),
            pairs=pairs,
            pair_type=pair_type,
        )


@dataclass(frozen=True)
class Transition:
    """A transformation that was observed, not drawn: one graph at two times.

    Looked at are all pairs that are connected at either time, and disconnected pairs that stay so, drawn anew each
    time: as many as edges that stay, or as are added where those are more, so that no type is rare.

    Args:
        before, after: the graph at both times, over the same nodes.
        hidden: numbers i * N + j of pairs that are never looked at, because they are held out; sorted.
    """

    before: Adjacency
    after: Adjacency
    hidden: Tensor | None = None

    def sample(self, generator: torch.Generator) -> TopologyTransformation:
        """The pairs of one step."""
        _, known_type = self._changes
        kept, added = (int((known_type == kind).sum()) for kind in (EdgeChange.KEEP_CONNECTED, EdgeChange.ADD))
        return self._with(generator, max(kept, added, 1))

    def all_pairs(self) -> TopologyTransformation:
        """Every pair of nodes, for graphs small enough."""
        return self._with(torch.Generator(), int(self._either.pair_space.num_disconnected.sum()))

    @cached_property
    def _either(self) -> Adjacency:
        """The pairs that are connected at one time at least, or hidden: what is left stays disconnected."""
        num_nodes = self.before.num_nodes
        parts = [self.before.keys, self.after.keys] + ([] if self.hidden is None else [self.hidden])
        keys = torch.cat(parts).unique()
        return Adjacency(torch.stack([keys // num_nodes, keys % num_nodes]), num_nodes)

    @cached_property
    def _changes(self) -> tuple[Tensor, Tensor]:
        """The pairs connected at one time at least, without the hidden ones, and what happened to them."""
        keys = self._either.keys
        is_before, is_after = torch.isin(keys, self.before.keys), torch.isin(keys, self.after.keys)
        seen = is_before | is_after
        if self.hidden is not None:
            seen &= ~torch.isin(keys, self.hidden)
        kind = torch.where(
            is_before & is_after,
            int(EdgeChange.KEEP_CONNECTED),
            torch.where(is_after, int(EdgeChange.ADD), int(EdgeChange.DELETE)),
        )
        return self._either.edges[:, seen], kind[seen]

    def _with(self, generator: torch.Generator, count: int) -> TopologyTransformation:
        space = self._either.pair_space
        disconnected = space.disconnected(torch.minimum(torch.tensor([count]), space.num_disconnected), generator)
        pairs, kind = self._changes
        apart = kind.new_full((disconnected.size(1),), int(EdgeChange.KEEP_DISCONNECTED))
        return TopologyTransformation(
            self.before, self.after, torch.cat([pairs, disconnected], dim=1), torch.cat([kind, apart])
        )


Rate = float | Sequence[float]  # r, or two: one for adding, one for deleting
Sampler = Callable[[Adjacency, Rate, torch.Generator], TopologyTransformation]


def adding_and_deleting(rate: Rate) -> tuple[float, float]:
    """The shares of disconnected pairs that are connected, and of connected ones that are separated."""
    values = tuple(rate) if isinstance(rate, (list, tuple)) else (rate, rate)
    if len(values) != 2 or not all(isinstance(r, (int, float, np.number)) and 0 <= float(r) <= 1 for r in values):
        raise invalid_parameter("perturbation_rate", "TopoTER", "between 0 and 1", rate)
    return float(values[0]), float(values[1])


def exact(adjacency: Adjacency, rate: Rate, generator: torch.Generator) -> TopologyTransformation:
    """The paper's transformation: |S0| = |S1| = M, exactly round(r * M) flipped of each.

    Where a graph has fewer than M disconnected pairs all of them are taken, at the same rate; in a batch every
    graph gets as many disconnected pairs as it has edges, and no pair crosses two graphs.
    """
    add, delete = adding_and_deleting(rate)
    space = adjacency.pair_space
    disconnected = space.disconnected(torch.minimum(space.num_edges, space.num_disconnected), generator)
    return TopologyTransformation.flip(
        adjacency,
        disconnected,
        _exact_share(disconnected.size(1), add, generator, adjacency.device),
        _exact_share(adjacency.num_edges, delete, generator, adjacency.device),
    )


def bernoulli(adjacency: Adjacency, rate: Rate, generator: torch.Generator) -> TopologyTransformation:
    """The general form A~ = A xor Sigma, Sigma ~ B(p): every pair of nodes is flipped with probability p.

    Looked at are all connected pairs, all that were added, and so many that were kept apart that each graph
    has as many disconnected pairs as edges, or all it has.
    """
    add, delete = adding_and_deleting(rate)
    space = adjacency.pair_space
    added = torch.binomial(
        space.num_disconnected.double(), torch.full((), add, dtype=torch.float64), generator=generator
    ).long()
    count = torch.minimum(torch.maximum(space.num_edges, added), space.num_disconnected)
    disconnected = space.disconnected(count, generator)
    # A uniform subset of a uniform subset: within each graph, the first `added` pairs after a shuffle.
    order = torch.randperm(disconnected.size(1), generator=generator)
    graph = torch.repeat_interleave(count)[order]
    order = order[torch.argsort(graph, stable=True)]
    rank = torch.arange(disconnected.size(1)) - torch.repeat_interleave(count.cumsum(0) - count, count)
    flip_disconnected = torch.zeros(disconnected.size(1), dtype=torch.bool)
    flip_disconnected[order] = rank < torch.repeat_interleave(added, count)
    flip_connected = torch.rand(adjacency.num_edges, generator=generator) < delete
    device = adjacency.device
    return TopologyTransformation.flip(adjacency, disconnected, flip_disconnected.to(device), flip_connected.to(device))


def paired(adjacency: Adjacency, rate: Rate, generator: torch.Generator) -> TopologyTransformation:
    """As the authors' code does: each edge (i, j) is coupled with a disconnected pair (i, k), one coin for both.

    The disconnected pairs are thus drawn in proportion to degree, and the counts are random. Edges for whose
    left end no partner is found in a few tries are left without one.
    """
    coin, other = adding_and_deleting(rate)
    if coin != other:
        raise UsageError(f"The sampler 'paired' has one coin for an edge and its partner, so one rate. Got {rate!r}.")
    first = adjacency.edges[0].cpu()
    num_nodes = adjacency.num_nodes
    space = adjacency.pair_space
    graph = space.graph_of_node(first)
    lows, sizes = space.ptr[graph], (space.ptr[1:] - space.ptr[:-1])[graph]
    keys = adjacency.keys.cpu()
    partner = torch.full_like(first, -1)
    for _ in range(16):
        missing = partner < 0
        drawn = lows[missing] + random_below(sizes[missing], generator)
        i, k = torch.minimum(first[missing], drawn), torch.maximum(first[missing], drawn)
        bad = (i == k) | torch.isin(i * num_nodes + k, keys)
        partner[missing] = torch.where(bad, -1, drawn)
    found = partner >= 0
    flip = torch.rand(first.numel(), generator=generator) < coin
    disconnected = torch.stack([torch.minimum(first, partner)[found], torch.maximum(first, partner)[found]])
    unique, index = torch.unique(disconnected[0] * num_nodes + disconnected[1], return_inverse=True)
    # Two edges may have drawn the same pair: it is flipped if either coin says so, in whatever order they come.
    coins = torch.zeros(unique.numel(), dtype=torch.int64)
    flip_disconnected = coins.scatter_reduce(0, index, flip[found].long(), "amax").bool()
    device = adjacency.device
    return TopologyTransformation.flip(
        adjacency,
        torch.stack([unique // num_nodes, unique % num_nodes]).to(device),
        flip_disconnected.to(device),
        flip.to(device),
    )


SAMPLERS: dict[str, Sampler] = {"exact": exact, "bernoulli": bernoulli, "paired": paired}


def hide_edges(adjacency: Adjacency, share: float, generator: torch.Generator) -> tuple[Adjacency, Tensor]:
    """The graph without a random share of its edges, and those edges; all are kept and given at share 0."""
    if share <= 0:
        return adjacency, adjacency.edges
    count = min(max(round(share * adjacency.num_edges), 1), adjacency.num_edges)
    hidden = torch.zeros(adjacency.num_edges, dtype=torch.bool)
    hidden[torch.randperm(adjacency.num_edges, generator=generator)[:count]] = True
    return adjacency.keep(~hidden), adjacency.edges[:, hidden]


def hide(adjacency: Adjacency, share: float, generator: torch.Generator) -> TopologyTransformation:
    """Edges are deleted, none added; looked at are those that were deleted, and as many disconnected pairs.

    At share 0 nothing is deleted, and all edges are looked at.
    """
    visible, connected = hide_edges(adjacency, share, generator)
    space = adjacency.pair_space
    count = torch.minimum(torch.tensor([connected.size(1)]), space.num_disconnected)
    disconnected = space.disconnected(count, generator)
    kind = EdgeChange.DELETE if share > 0 else EdgeChange.KEEP_CONNECTED
    pair_type = torch.cat(
        [
            torch.full((connected.size(1),), int(kind)),
            torch.full((disconnected.size(1),), int(EdgeChange.KEEP_DISCONNECTED)),
        ]
    )
    return TopologyTransformation(adjacency, visible, torch.cat([connected, disconnected], dim=1), pair_type)


def check_transformable(adjacency: Adjacency, rate: Rate) -> None:
    """Raise unless this graph has something to transform at this rate."""
    adding_and_deleting(rate)
    if adjacency.num_edges == 0:
        raise DataError(
            f"The graph has {adjacency.num_nodes} nodes and no edges between different nodes: "
            "there is no topology to transform. Check the edge list, or pass a graph with edges."
        )


def _exact_share(count: int, rate: float, generator: torch.Generator, device: torch.device) -> Tensor:
    """Mark exactly round(rate * count) of `count` things, all choices equally likely: those with the smallest keys."""
    mark = mark_smallest if mode() == "fast" else mark_smallest_plain
    wanted = round(rate * count)
    if wanted == 0:
        return torch.zeros(count, dtype=torch.bool, device=device)
    while True:
        marked = mark(random_unit(count, generator), wanted)
        if np.count_nonzero(marked.numpy()) == wanted:  # else two keys at the border were equal
            return marked.to(device)


def join_pairs_plain(
    disconnected: Tensor, flip_disconnected: Tensor, connected: Tensor, flip_connected: Tensor
) -> tuple[Tensor, Tensor]:
    """The twin of `kernels.pairs.join_pairs`, on any device."""
    add, delete, keep_disconnected, keep_connected = torch.arange(len(EdgeChange), device=connected.device)
    pair_type = torch.cat(
        [
            torch.where(flip_disconnected, add, keep_disconnected),
            torch.where(flip_connected, delete, keep_connected),
        ]
    )
    return torch.cat([disconnected, connected], dim=1), pair_type


def mark_smallest_plain(keys: Tensor, wanted: int) -> Tensor:
    """The twin of `kernels.pairs.mark_smallest`, by sorting."""
    return keys <= keys.sort().values[wanted - 1]
