"""GMI (Peng et al., 2020): embeddings tell of a node's own features, of its neighbours', and of its edges.

"Graph Representation Learning via Graphical Mutual Information Maximization", WWW 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.encoders import SGC
from topoter.kernels.pair_dots import pair_dots
from topoter.kernels.sparse import SparseOperator
from topoter.methods.base import register
from topoter.methods.gradients import PReLU
from topoter.methods.pretrained import PretextModule, Pretrained
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import Keep

WEIGHTS = (0.8, 1.0, 1.0)  # of the bounds: own features, neighbours', edges
STRANGERS = 5  # nodes that each one is told from


class Bilinear(nn.Module):
    """sigmoid(u_i^T M h_j + b): whether two vectors belong to the same node."""

    def __init__(self, first_channels: int, second_channels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(first_channels, second_channels))
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.xavier_uniform_(self.weight, generator=generator)

    def forward(self, first: Features, h: Tensor, others: Tensor) -> Tensor:
        """The bound of Jensen and Shannon on the mutual information, as a loss; `others` [K, N] are strangers."""
        seen = first @ self.weight  # u M, once for all pairs
        own = torch.sigmoid((seen * h).sum(1) + self.bias)
        nodes = torch.arange(h.size(0)).repeat_interleave(others.size(0))
        strange = torch.sigmoid(pair_dots(seen, h, torch.stack([others.t().flatten(), nodes])) + self.bias)
        return functional.softplus(-own).mean() + functional.softplus(strange).mean()


class GraphicalInformation(PretextModule):
    """One SGC layer with PReLU, as the paper gives every method, and three bounds."""

    def __init__(self, in_channels: int, out_channels: int, order: int, seed: int) -> None:
        super().__init__(seed)
        self.encoder = SGC(in_channels, out_channels, order, negative_slope=1.0)  # linear: the PReLU follows
        self.encoder.initialize("glorot", self.generator)
        self.activation, self.neighbour_activation = PReLU(), PReLU()
        self.of_features = Bilinear(in_channels, out_channels, self.generator)
        self.of_neighbours = Bilinear(out_channels, out_channels, self.generator)

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        signal = self.encoder.project(x)
        h = self.activation(self.encoder.propagate(signal, adjacency))
        around = self.neighbour_activation(mean_of_neighbours(adjacency) @ signal)
        own = self.of_features(x, h, self._strangers(adjacency.num_nodes))
        near = self.of_neighbours(around, h, self._strangers(adjacency.num_nodes))
        parts = own, near, self.edge_loss(h, adjacency)
        loss = sum(weight * part for weight, part in zip(WEIGHTS, parts))
        assert isinstance(loss, Tensor)
        return loss, {}

    def edge_loss(self, h: Tensor, adjacency: Adjacency) -> Tensor:
        """Cross entropy of A + I from inner products, connected pairs counting twice as much as all others together.

        The authors sum over all N^2 entries; ours takes as many disconnected pairs as there are edges, drawn anew each
        time, which has the same mean and fits in memory.
        """
        space = adjacency.pair_space
        disconnected = space.disconnected(torch.minimum(space.num_edges, space.num_disconnected), self.generator)
        edges = functional.softplus(-pair_dots(h, h, adjacency.edges))
        loops = functional.softplus(-h.square().sum(1))
        entries = 2 * edges.numel() + loops.numel()
        apart = functional.softplus(pair_dots(h, h, disconnected))
        every = adjacency.num_nodes**2
        share = (every - entries) / (every - entries / 2)  # of the disconnected entries, as the authors weigh them
        return 2 * (2 * edges.sum() + loops.sum()) / entries + share * apart.sum() / max(1, apart.numel())

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        h: Tensor = self.activation(self.encoder(x, adjacency))
        return h

    def _strangers(self, num_nodes: int) -> Tensor:
        """For every node others, never itself, [K, N]."""
        steps = torch.randint(1, max(2, num_nodes), (STRANGERS, num_nodes), generator=self.generator)
        return (torch.arange(num_nodes) + steps) % num_nodes


def mean_of_neighbours(adjacency: Adjacency) -> SparseOperator:
    """D^-1 A, with its transpose A D^-1; a node without edges has a row of zeros."""
    operator = adjacency.summed
    degree = torch.zeros(adjacency.num_nodes).index_add_(0, operator.row, operator.values)
    scale = torch.where(degree > 0, 1 / degree, torch.zeros_like(degree))
    by_column = replace(operator, values=operator.values * scale[operator.indices.long()], _row=None, _torch=None)
    by_row = operator.values * scale[operator.row]
    return replace(operator, values=by_row, transposed=by_column, _row=None, _torch=None)


@register("gmi", "node")
@dataclass(kw_only=True)
class GMI(Pretrained):
    """Graphical mutual information."""

    out_channels: int = 512
    order: int = 2
    epochs: int = 550
    patience: int | None = 20

    keep = Keep()

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return GraphicalInformation(in_channels, self.out_channels, self.order, seed)
