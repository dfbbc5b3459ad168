"""What a linear encoder needs to know of transformed graphs: second moments, whatever the number of nodes.

With H = B W and B = S~^k X V, every correlation between columns of H and H~ is w' M w or w' C w, where M = E[B'B] is
the second moment within one transformed graph and C = E[B1'B2] that between two. Both are averaged over a few drawn
graphs, once; a training step then costs R^2 F instead of N R F and two propagations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from topoter.pretext.transformation import SAMPLERS, EdgeChange, Rate
from topoter.structure.adjacency import Adjacency
from topoter.structure.hops import propagate

_PAIRS = 512  # whose rows are looked up at a time: they stay in a core's cache


@dataclass(frozen=True)
class Moments:
    """Second moments of centred signals on transformed graphs.

    Args:
        within: M, [R, R].
        between: C, of two graphs drawn apart, symmetric, [R, R].
        agreement: of the two ends of deleted edges (`EndSums`).
    """

    within: Tensor
    between: Tensor
    agreement: float


class EndSums:
    """What the signals of the two ends of edges have in common, from sums over edges that come in any portions."""

    def __init__(self, width: int) -> None:
        self.edges, self.products, self.squares = torch.zeros(3, dtype=torch.float64)
        self.signals = torch.zeros(width, dtype=torch.float64)

    def add(self, h: Tensor, pairs: Tensor) -> None:
        """Those of some edges [2, m], by the signals h [N, R] of all nodes."""
        for i, j in pairs.split(_PAIRS, dim=1):
            first, second = h.index_select(0, i), h.index_select(0, j)
            self.edges += len(i)
            self.products += float(torch.dot(first.view(-1), second.view(-1)))
            self.squares += float(first.square().sum() + second.square().sum())
            self.signals += (first.sum(0) + second.sum(0)).double().cpu()

    def merge(self, other: EndSums) -> None:
        self.edges += other.edges
        self.products += other.products
        self.squares += other.squares
        self.signals += other.signals

    def total(self, over: Callable[[Tensor], Tensor]) -> None:
        """Add up those of several processes."""
        self.edges, self.products, self.squares = over(torch.stack([self.edges, self.products, self.squares]))
        self.signals = over(self.signals)

    @property
    def agreement(self) -> float:
        """The correlation of the two ends (Newman's assortativity, of vectors): 0 where they have nothing in common.

        Over edges and not over nodes: smoothed signals grow with the degree, and most ends of edges are nodes of a high
        degree. Measured from the mean over nodes, all of them look alike where there are hubs.
        """
        edges = self.edges.clamp(min=1)
        mean = self.signals / (2 * edges)
        alike, spread = self.products / edges - mean @ mean, self.squares / (2 * edges) - mean @ mean
        return max(float(alike / spread.clamp(min=1e-30)), 0.0)


@dataclass(frozen=True)
class DirectionMoments:
    """Of one number per direction and graph: second moments within a transformed graph, and between two, [K]."""

    within: Tensor
    between: Tensor

    @classmethod
    def of(cls, views: Iterable[Tensor]) -> DirectionMoments:
        """From a set's directions [G, K] under several transformations, each pair of which counts."""
        total, squares, count = torch.zeros(()), torch.zeros(()), 0
        for view in views:
            view = (view - view.mean(0)).double()
            view = view / view.square().mean(0).clamp(min=1e-18).sqrt()
            total, squares, count = total + view, squares + view.square(), count + 1
        between = (total.square() - squares).mean(0) / max(count * (count - 1), 1)
        return cls((squares.mean(0) / max(count, 1)).float(), between.float())


@torch.no_grad()
def draw_moments(
    signal: Tensor, adjacency: Adjacency, hops: int, rate: Rate, draws: int, generator: torch.Generator
) -> Moments:
    """Moments of S~^k `signal` over `draws` pairs of transformed graphs."""
    num_nodes, width = signal.shape
    within, between = (torch.zeros(width, width, device=signal.device) for _ in range(2))
    ends = EndSums(width)
    for _ in range(draws):
        first, second = (_centred(*view(signal, adjacency, hops, rate, generator), signal) for _ in range(2))
        for h, gone in (first, second):
            ends.add(h, gone)
        # B1'B1 + B2'B2 and B1'B2 + B2'B1 by two products instead of four, in the place of B1 and B2.
        total = first[0].add_(second[0])
        apart = second[0].mul_(-2).add_(total)
        within_and_between, within_less_between = total.t() @ total, apart.t() @ apart
        within += within_and_between + within_less_between
        between += within_and_between - within_less_between
    scale = 1 / (4 * draws * num_nodes)
    return Moments(within * scale, between * scale, ends.agreement)


def view(
    signal: Tensor, adjacency: Adjacency, hops: int, rate: Rate, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The signal on one transformed graph, and the edges that it lacks."""
    transformation = SAMPLERS["exact"](adjacency, rate, generator)
    h = propagate(transformation.adjacency_t, signal, hops)
    return h, transformation.pairs[:, transformation.pair_type == EdgeChange.DELETE]


def _centred(h: Tensor, gone: Tensor, signal: Tensor) -> tuple[Tensor, Tensor]:
    return (h - h.mean(0) if h is signal else h.sub_(h.mean(0))), gone  # without hops it is the signal itself
