"""How well edges that were hidden are told from pairs that never were connected: a look at I(dA; H~ | H).

It needs no labels and costs little, so it judges what another term trains: when to stop, above all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from scipy.stats import rankdata
from torch import Tensor

from topoter.pretext.transformation import EdgeChange, Rate, exact, hide
from topoter.structure.adjacency import Adjacency
from topoter.structure.hops import propagate

MOST_PAIRS = 1000  # of each kind, in each draw
_OF_PAIRS = ("first", "second", "label")


def area_under_curve(scores: Tensor, label: Tensor) -> float:
    """AUC in percent from ranks alone: cheap enough for every few epochs."""
    ranks = rankdata(scores.numpy())  # equal scores get the mean of their ranks
    connected = label.numpy() > 0
    num_connected = int(connected.sum())
    above = ranks[connected].sum() - num_connected * (num_connected + 1) / 2
    return 100 * float(above) / (num_connected * (len(ranks) - num_connected))


@dataclass(frozen=True)
class HiddenEdges:
    """Pairs whose edge was hidden and pairs never connected, by the propagated signal of their two ends [P, R].

    `mean` [R] is that of all nodes of the graph that they are drawn from.
    """

    first: Tensor
    second: Tensor
    label: Tensor
    mean: Tensor

    @classmethod
    def draw(
        cls, signal: Tensor, adjacency: Adjacency, hops: int, share: float, rate: Rate, generator: torch.Generator
    ) -> HiddenEdges:
        """The pairs, seen from a transformation of the graph without the hidden edges, at the rate of training.

        It is H~ that must foretell them. On the graph itself the start looks too good, and training would
        stop too soon.
        """
        hiding = hide(adjacency, share, generator)
        hidden = hiding.pair_type == EdgeChange.DELETE
        chosen = torch.cat([_some(kind.nonzero().view(-1)) for kind in (hidden, ~hidden)])
        pairs, visible = hiding.pairs[:, chosen], hiding.adjacency_t
        h = propagate(exact(visible, rate, generator).adjacency_t, signal, hops)
        return cls(h[pairs[0]], h[pairs[1]], hidden[chosen].float().cpu(), h.mean(0))

    def some(self, most: int) -> HiddenEdges:
        """So many of each kind at most."""
        kept = torch.cat([_some((self.label == kind).nonzero().view(-1), most) for kind in (1, 0)])
        return HiddenEdges(self.first[kept], self.second[kept], self.label[kept], self.mean)

    @classmethod
    def joined(cls, of_parts: Sequence[HiddenEdges], mean: Tensor, generator: torch.Generator) -> HiddenEdges:
        """Those of a graph from those of its parts, given the mean over all nodes.

        Unconnected pairs get ends of any parts: two nodes of one part have more in common, and are harder to tell.
        """
        first, second, label = (torch.cat([getattr(one, name) for one in of_parts]) for name in _OF_PAIRS)
        if len(of_parts) > 1:
            apart = (label == 0).nonzero().view(-1).to(second.device)
            order = torch.randperm(apart.numel(), generator=generator).to(second.device)
            second[apart] = second[apart[order]]
        return cls(first, second, label, mean)


@torch.no_grad()
def mean_auc(draws: Sequence[HiddenEdges], weight: Tensor) -> float:
    """For H = B W, by the inner products of H's rows; in percent, the mean over the draws."""
    products = weight @ weight.t()  # (b W)(b' W)' = b (W W') b'
    scores = ((((draw.first - draw.mean) @ products) * (draw.second - draw.mean)).sum(1).cpu() for draw in draws)
    return fmean(area_under_curve(score, draw.label) for score, draw in zip(scores, draws))


def _some(places: Tensor, most: int = MOST_PAIRS) -> Tensor:
    """All of them, or as many as are looked at, from all over the list."""
    count = min(places.numel(), most)
    return places[torch.arange(count, device=places.device) * places.numel() // max(count, 1)]
