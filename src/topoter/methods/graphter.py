"""GraphTER (Gao et al., 2020), the authors' method before TopoTER: what was done to the features of each node?

"GraphTER: Unsupervised Learning of Graph Transformation Equivariant Representations via Auto-Encoding Node-wise
Transformations", CVPR 2020. It was published for clouds of points, whose coordinates are moved. Here words take the
place of coordinates: the features of a share of the nodes are scaled, and moved along a few random directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.encoders import SGC
from topoter.methods.base import register
from topoter.methods.convolutions import glorot
from topoter.methods.pretrained import PretextModule, Pretrained
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.weights import linear_layers


@register("graphter", "node")
@dataclass(kw_only=True)
class GraphTER(Pretrained):
    """Node-wise transformations of the features, found again.

    Args:
        share: of the nodes that are transformed.
        strength: the largest a and t; V has rows of the mean length of a feature vector.
        directions: how many rows V has.
    """

    out_channels: int = 512
    order: int = 2
    share: float = 0.25
    strength: float = 0.5
    directions: int = 3
    decoder_channels: int = 256

    shares = ("share",)

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return NodewiseTransformations(in_channels, self, seed)


class NodewiseTransformations(PretextModule):
    """One SGC layer, shared by the features before and after, and a decoder of the transformation from both.

    x~_i = (1 + a_i) x_i + t_i V, with a and t uniform in [-strength, strength] for the nodes that are transformed, and
    0 for all others; the decoder finds (a_i, t_i) by least squares.
    """

    def __init__(self, in_channels: int, method: GraphTER, seed: int) -> None:
        super().__init__(seed)
        out_channels, directions = method.out_channels, method.directions
        self.encoder = SGC(in_channels, out_channels, method.order, negative_slope=0.1)
        self.encoder.initialize("glorot", self.generator)
        first, second = linear_layers([2 * out_channels, method.decoder_channels, 1 + directions])
        self.decoder = nn.Sequential(first, nn.ReLU(), second)
        glorot(self.decoder, self.generator)
        v = torch.randn(directions, in_channels, generator=self.generator)
        self.register_buffer("directions", functional.normalize(v, dim=1))
        self.directions: Tensor
        self.share, self.strength = method.share, method.strength

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        parameters = self.draw(adjacency.num_nodes)
        signal = self.encoder.project(x)
        # The transformation is linear, so it can be done behind W: X stays as it is, sparse where it was.
        moved = (1 + parameters[:, :1]) * signal + parameters[:, 1:] @ (
            _length(x) * self.encoder.project(self.directions)
        )
        h, h_t = (self.encoder.propagate(each, adjacency) for each in (signal, moved))
        found = self.decoder(torch.cat([h, h_t], dim=1))
        return functional.mse_loss(found, parameters / self.strength), {}

    def draw(self, num_nodes: int) -> Tensor:
        """(a_i, t_i) of every node [N, 1 + directions]."""
        chosen = torch.rand(num_nodes, 1, generator=self.generator) < self.share
        drawn = torch.rand(num_nodes, 1 + self.directions.size(0), generator=self.generator)
        return self.strength * (2 * drawn - 1) * chosen


def _length(x: Features) -> float:
    """The root of the mean squared length of a row."""
    entries = x if isinstance(x, Tensor) else x.values
    return float((entries.square().sum() / x.shape[0]).sqrt())
