"""What a linear encoder needs to know of transformed graphs: second moments, whatever the number of nodes.

With H = B W and B = S~^k X V, every correlation between columns of H and H~ is w' M w or w' C w, where M = E[B'B] is
the second moment within one transformed graph and C = E[B1'B2] that between two. Both are averaged over a few drawn
graphs, once; a training step then costs R^2 F instead of N R F and two propagations.
"""

from __future__ import annotations

from collections.abc import Iterable
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
        agreement: the mean product of the two ends of a deleted edge, over the mean square: 0 where neighbours'
            features have nothing in common, 1 where they are the same.
    """

    within: Tensor
    between: Tensor
    agreement: float


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
    together = 0.0
    for _ in range(draws):
        first, second = (_centred(*view(signal, adjacency, hops, rate, generator), signal) for _ in range(2))
        for h, gone in (first, second):
            if gone.size(1):
                together += products_of_ends(h, gone) / gone.size(1)
        # B1'B1 + B2'B2 and B1'B2 + B2'B1 by two products instead of four, in the place of B1 and B2.
        total = first[0].add_(second[0])
        apart = second[0].mul_(-2).add_(total)
        within_and_between, within_less_between = total.t() @ total, apart.t() @ apart
        within += within_and_between + within_less_between
        between += within_and_between - within_less_between
    squares = float(within.diagonal().sum()) / (2 * num_nodes)
    scale = 1 / (4 * draws * num_nodes)
    return Moments(within * scale, between * scale, max(together / max(squares, 1e-30), 0.0))


def view(
    signal: Tensor, adjacency: Adjacency, hops: int, rate: Rate, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The signal on one transformed graph, and the edges that it lacks."""
    transformation = SAMPLERS["exact"](adjacency, rate, generator)
    h = propagate(transformation.adjacency_t, signal, hops)
    return h, transformation.pairs[:, transformation.pair_type == EdgeChange.DELETE]


def products_of_ends(h: Tensor, pairs: Tensor) -> float:
    """The sum over pairs of the products of their two rows."""
    ends = ((h.index_select(0, i), h.index_select(0, j)) for i, j in pairs.split(_PAIRS, dim=1))
    return sum(float(torch.dot(first.view(-1), second.view(-1))) for first, second in ends)


def _centred(h: Tensor, gone: Tensor, signal: Tensor) -> tuple[Tensor, Tensor]:
    return (h - h.mean(0) if h is signal else h.sub_(h.mean(0))), gone  # without hops it is the signal itself
