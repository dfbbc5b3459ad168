"""Layers for sets of graphs as in "How powerful are graph neural networks?" (Xu et al., 2019), and their features.

One module for four of its rows: what is summed up over a node and its neighbours, and how many linear maps follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from topoter.errors import unknown_name
from topoter.kernels.neighbour_max import neighbour_max
from topoter.methods.convolutions import ACTIVATIONS
from topoter.methods.substructures import read
from topoter.structure.adjacency import Adjacency
from topoter.structure.graph_sets import Batch, GraphSet

if TYPE_CHECKING:
    from torch_geometric.data import Data

Noise = Callable[[Tensor], Tensor]


def sum_up(h: Tensor, adjacency: Adjacency, epsilon: Tensor | float = 0.0) -> Tensor:
    """(1 + epsilon) h_i plus the sum of h_j over the neighbours."""
    neighbours: Tensor = adjacency.summed @ h
    return (1 + epsilon) * h + neighbours


def average(h: Tensor, adjacency: Adjacency, epsilon: Tensor | float = 0.0) -> Tensor:
    """The mean over a node and its neighbours."""
    degree = adjacency.summed.indptr.diff().to(h).unsqueeze(1)
    return sum_up(h, adjacency) / (degree + 1)


def largest(h: Tensor, adjacency: Adjacency, epsilon: Tensor | float = 0.0) -> Tensor:
    """The maximum over a node and its neighbours, channel by channel."""
    return neighbour_max(adjacency.summed, h)


AGGREGATIONS: dict[str, Callable[..., Tensor]] = {"sum": sum_up, "mean": average, "max": largest}


class GraphLayers(nn.Module):
    """activation(BatchNorm(MLP(aggregated h))), layer by layer; every layer's output is returned.

    Args:
        aggregation: a name in `AGGREGATIONS`.
        depth: linear maps in an MLP; between them batch normalisation and the activation.
        epsilon: learn how much a node weighs beside its neighbours; of sums only.
        last: whether the last layer is normalised and activated as well.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        *,
        out_channels: int | None = None,
        aggregation: str = "sum",
        depth: int = 2,
        activation: str = "relu",
        epsilon: bool = False,
        last: bool = True,
    ) -> None:
        super().__init__()
        if aggregation not in AGGREGATIONS:
            raise unknown_name("aggregation", aggregation, AGGREGATIONS)
        self.aggregate = AGGREGATIONS[aggregation]
        self.epsilon = nn.Parameter(torch.zeros(num_layers)) if epsilon else None
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels or hidden_channels]
        self.maps = nn.ModuleList(
            _mlp([before, *[hidden_channels] * (depth - 1), after], activation) for before, after in pairwise(widths)
        )
        ends = [nn.Sequential(nn.BatchNorm1d(width), ACTIVATIONS[activation]()) for width in widths[1:]]
        if not last:
            ends[-1] = nn.Sequential()
        self.ends = nn.ModuleList(ends)

    def forward(self, x: Tensor, adjacency: Adjacency, noise: Noise | None = None) -> list[Tensor]:
        """Of each layer the nodes' representations [N, F]; `noise` goes before each of them, in training."""
        h, outputs = x, []
        for number, (mlp, end) in enumerate(zip(self.maps, self.ends)):
            h = h if noise is None else noise(h)
            h = end(mlp(self.aggregate(h, adjacency, 0.0 if self.epsilon is None else self.epsilon[number])))
            outputs.append(h)
        return outputs


def _mlp(widths: Sequence[int], activation: str) -> nn.Sequential:
    steps: list[nn.Module] = []
    for number, (before, after) in enumerate(pairwise(widths)):
        if number:
            steps += [nn.BatchNorm1d(before), ACTIVATIONS[activation]()]
        steps.append(nn.Linear(before, after))
    return nn.Sequential(*steps)


# ---- features --------------------------------------------------------------------------------------------------------


class OneHotDegrees(GraphSet):
    """A set whose nodes have no features but their degree, made one-hot batch by batch: whole it could be gigabytes.

    Args:
        width: how many degrees are told apart; all larger ones are the last.
    """

    def __init__(self, adjacency: Adjacency, width: int) -> None:
        degree = adjacency.summed.indptr.diff()
        super().__init__(degree.clamp(max=width - 1).unsqueeze(1), adjacency)
        self.width = width

    def batch(self, which: Tensor, device: torch.device | str = "cpu") -> Batch:
        degree, adjacency = super().batch(which, device)
        return nn.functional.one_hot(cast("Tensor", degree).squeeze(1), self.width).float(), adjacency


class NodeFeatures:
    """Reads sets of graphs with the features that nodes have, or where all are alike, with one-hot degrees.

    Args:
        graphs: the set that decides: whether nodes have features, and the largest degree.
        most: degrees told apart at most.
    """

    def __init__(self, graphs: list[Data], most: int = 400) -> None:
        self.first = read(graphs)
        x = self.first.x
        alike = bool((x == x[:1]).all())
        degrees = self.first.adjacency.summed.indptr.diff()
        self.width = min(int(degrees.max()), most) + 1 if alike else x.size(1)
        self.alike = alike
        self.first = self._featured(self.first)

    def __call__(self, graphs: list[Data]) -> GraphSet:
        return self._featured(read(graphs))

    def _featured(self, graph_set: GraphSet) -> GraphSet:
        return OneHotDegrees(graph_set.adjacency, self.width) if self.alike else graph_set
