"""Graph convolutions, the paper's encoder of links."""

from __future__ import annotations

import torch
from torch import Tensor

from topoter.encoders.base import Encoder, without_bias
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.weights import linear_layers


class GCN(Encoder):
    """Graph convolutions D^-1/2 (A + I) D^-1/2 H W + b, with ReLU between layers and none at the end."""

    def __init__(self, in_channels: int, out_channels: int, num_layers: int = 2, hidden_channels: int = 64) -> None:
        super().__init__()
        widths = [in_channels] + [hidden_channels] * (num_layers - 1) + [out_channels]
        self.layers = linear_layers(widths)
        self.out_channels = out_channels
        self.initialize()

    def project(self, x: Features) -> Tensor:
        return without_bias(self.layers[0], x)

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        h = adjacency.normalized @ signal + self.layers[0].bias
        for layer in self.layers[1:]:
            h = adjacency.normalized @ without_bias(layer, torch.relu(h)) + layer.bias
        return h
