"""What the model asks of an encoder H = E(X, A), whose weights are shared by A and A~.

An encoder works in two steps, so that what does not depend on the graph is computed once for A and A~:

    signal = encoder.project(x)               # X W of the first layer
    h      = encoder.propagate(signal, A)     # the rest

`x` is a dense tensor [N, C] or a `SparseOperator` (the same matrix, kept sparse).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from topoter.errors import unknown_name
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.weights import INITIALIZERS


class Encoder(nn.Module):
    """An encoder; a new one is a subclass in a file of its own, named in `topoter.encoders.ENCODERS`."""

    out_channels: int
    pools = False  # whether its rows are graphs already, not nodes
    variances: Tensor | None = None  # of the embedding's columns, if they are principal axes; known after a fit only
    remembers_nodes = False  # whether what it says of a node depends on which node it was in the fitted graph

    @property
    def trained_channels(self) -> int:
        """The width of H, what objectives look at; the embedding may hold more beside it."""
        return self.out_channels

    def project(self, x: Features) -> Tensor:
        """The part of the first layer that does not look at the graph, X W."""
        raise NotImplementedError

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        """The representations H [N, F] on one graph, from the projected features."""
        raise NotImplementedError

    def fused_delta(self, signal: Tensor, before: Adjacency, after: Adjacency) -> Tensor | None:
        """dH by a kernel that does both graphs at once, or `None` where there is none."""
        return None

    def remember(self, nodes: Tensor) -> None:
        """Keep the keys [N] of the nodes it was fitted on, to know them again in a graph that has changed."""

    def forward(self, x: Features, adjacency: Adjacency | Tensor, nodes: Tensor | None = None) -> Tensor:
        """H = E(X, A); `adjacency` may be given as PyG's edge_index, `nodes` are the keys of its nodes."""
        if isinstance(adjacency, Tensor):
            num_nodes = x.shape[0]
            adjacency, _ = Adjacency.from_edge_index(adjacency, num_nodes)
        return self.propagate(self.project(x), adjacency)

    def of_few(self, x: Features, adjacency: Adjacency, count: int) -> Tensor:
        """The embeddings of the first `count` nodes, given all that they see of a graph that is not at hand."""
        h: Tensor = self(x, adjacency)
        return h[:count]

    def initialize(self, init: str = "default", generator: torch.Generator | None = None, gain: float = 1.0) -> None:
        """Draw all weights anew from one generator (seed 0 if none is given), never from global random state.

        The first layer's weights are then multiplied by `gain`: how far apart representations lie decides how far
        e_ij is from uniform, so it is a setting of the method and not only of its optimisation.
        """
        generator = generator or torch.Generator().manual_seed(0)
        if init not in INITIALIZERS:
            raise unknown_name("init", init, INITIALIZERS)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                INITIALIZERS[init](module.weight, generator)
                if module.bias is not None:
                    bound = 1 / math.sqrt(module.in_features)
                    nn.init.uniform_(module.bias, -bound, bound, generator=generator)
            elif isinstance(module, nn.BatchNorm1d):
                module.reset_parameters()
        first = next((module for module in self.modules() if isinstance(module, nn.Linear)), None)
        if first is not None:
            with torch.no_grad():
                first.weight *= gain

    def spread_thresholds(self, x: Features, adjacency: Adjacency, generator: torch.Generator) -> None:
        """Set each ReLU's threshold to the value of a random node of an example, where an encoder needs it.

        Nothing is done where sums over neighbours are normalised, as in SGC and GCN: they do not grow with the degree.
        """

    def adapt(self, x: Features, adjacency: Adjacency, generator: torch.Generator) -> None:
        """Take from the graph to be trained on what does not follow from its number of features, before training."""

    def finish(self, x: Features, adjacency: Adjacency) -> None:
        """Take from the same graph what depends on the trained weights, after training."""


def without_bias(linear: nn.Linear, x: Features) -> Tensor:
    """X W; the bias comes after propagation."""
    return x @ linear.weight.t()
