"""What a linear encoder needs to know of transformed graphs: second moments, whatever the number of nodes.

With H = B W and B = S~^k X V, every correlation between columns of H and H~ is w' M w or w' C w, where M = E[B'B] is
the second moment within one transformed graph and C = E[B1'B2] that between two. Both are averaged over a few drawn
graphs, once; a training step then costs R^2 F instead of N R F and two propagations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from topoter.pretext.transformation import SAMPLERS, EdgeChange, Rate
from topoter.structure.adjacency import Adjacency
from topoter.structure.hops import propagate

_PAIRS = 2048  # whose rows are looked up at a time: they stay in a core's cache
_COLUMNS = 128
_KEPT = 1 << 22  # numbers: smaller views are kept, larger ones made twice, for memory


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

    def add(self, h: Tensor, pairs: Tensor, column: int = 0) -> None:
        """Those of some edges [2, m], by the signals of all nodes, or by their columns from `column` on."""
        self.edges += pairs.size(1) if column == 0 else 0
        here = self.signals[column : column + h.size(1)]
        for i, j in pairs.split(_PAIRS, dim=1):
            first, second = h.index_select(0, i), h.index_select(0, j)
            self.products += float(torch.dot(first.view(-1), second.view(-1)))
            self.squares += float(first.square().sum() + second.square().sum())
            here += (first.sum(0) + second.sum(0)).double().cpu()

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
    both = torch.empty_like(signal)  # B1 + B2, then B1 - B2
    for _ in range(draws):
        graphs = [_transformed(adjacency, rate, generator) for _ in range(2)]
        seen = list(_by_columns(graphs, signal, hops)) if signal.numel() <= _KEPT else None
        for sign in (1, -1):
            place = 0
            for first, second in seen or _by_columns(graphs, signal, hops):
                torch.add(first, second, alpha=sign, out=both[:, place : place + first.size(1)])
                if sign > 0:
                    for h, (_, gone) in zip((first, second), graphs):
                        ends.add(h, gone, place)
                place += first.size(1)
            # B1'B1 + B2'B2 and B1'B2 + B2'B1, by two products instead of four.
            product = both.t() @ both
            within += product
            between.add_(product, alpha=sign)
    scale = 1 / (4 * draws * num_nodes)
    return Moments(within * scale, between * scale, ends.agreement)


def _by_columns(
    graphs: Sequence[tuple[Adjacency, Tensor]], signal: Tensor, hops: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """B1 and B2, centred, a few columns at a time."""
    for columns in signal.split(_COLUMNS, dim=1):
        columns = columns.contiguous()
        first, second = (propagate(graph, columns, hops) for graph, _ in graphs)
        yield first - first.mean(0), second - second.mean(0)


def _transformed(adjacency: Adjacency, rate: Rate, generator: torch.Generator) -> tuple[Adjacency, Tensor]:
    """A transformed graph, and the edges that it lacks."""
    transformation = SAMPLERS["exact"](adjacency, rate, generator)
    return transformation.adjacency_t, transformation.pairs[:, transformation.pair_type == EdgeChange.DELETE]


def view(
    signal: Tensor, adjacency: Adjacency, hops: int, rate: Rate, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The signal on one transformed graph, and the edges that it lacks."""
    graph, gone = _transformed(adjacency, rate, generator)
    return propagate(graph, signal, hops), gone
