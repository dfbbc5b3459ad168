"""Graph isomorphism network, the paper's encoder of whole graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from topoter.encoders.base import Encoder, without_bias
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.weights import linear_layers


class GIN(Encoder):
    """Graph isomorphism layers with batch normalisation, as in InfoGraph: outputs of all layers concatenated.

    Each layer is BatchNorm(ReLU(MLP(h_i + sum of h_j over the neighbours))), the MLP being linear, ReLU, linear.
    """

    def __init__(self, in_channels: int, hidden_channels: int = 32, num_layers: int = 3) -> None:
        super().__init__()
        self.first = linear_layers([in_channels] + [hidden_channels] * num_layers)
        self.second = linear_layers([hidden_channels] * (num_layers + 1))
        norms = nn.ModuleList(nn.BatchNorm1d(hidden_channels) for _ in range(num_layers))
        self.norms = cast("Sequence[nn.BatchNorm1d]", norms)
        self.out_channels = hidden_channels * num_layers
        self.initialize()

    def project(self, x: Features) -> Tensor:
        return without_bias(self.first[0], x)

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        # The sum over neighbours and the first linear map commute, so the map comes first (and once).
        outputs: list[Tensor] = []
        for number, first in enumerate(self.first):
            if outputs:
                signal = without_bias(first, outputs[-1])
            outputs.append(self.layer(number, signal + adjacency.summed @ signal))
        return torch.cat(outputs, dim=1)

    def layer(self, number: int, sums: Tensor) -> Tensor:
        """A layer from its summed messages on."""
        hidden = torch.relu(sums + self.first[number].bias)
        output: Tensor = self.norms[number](torch.relu(self.second[number](hidden)))
        return output

    @torch.no_grad()
    def spread_thresholds(self, x: Features, adjacency: Adjacency, generator: torch.Generator) -> None:
        """Let every unit behind the sum over neighbours bend at the value of a node, drawn at random.

        Sums grow with the degree, while biases as PyTorch draws them put all thresholds near zero: without node
        features, nearly every unit is then dead or linear in the degree, and a graph shows little beyond its size.
        """
        h = x
        for number, first in enumerate(self.first):
            signal = without_bias(first, h)
            sums = signal + adjacency.summed @ signal
            units = torch.arange(sums.size(1))
            nodes = torch.randint(sums.size(0), (sums.size(1),), generator=generator)
            first.bias.copy_(-sums[nodes, units])
            h = self.layer(number, sums)
        for norm in self.norms:
            norm.reset_running_stats()
