"""Simple graph convolution, the paper's encoder of nodes."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from topoter.encoders.base import Encoder, without_bias
from topoter.errors import invalid_parameter
from topoter.kernels import use_compiled
from topoter.kernels.sgc_delta import sgc_delta
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.weights import linear_layers


class SGC(Encoder):
    """Simple graph convolution: LeakyReLU((D^-1/2 (A + I) D^-1/2)^k X W + b), once or in several layers.

    Args:
        order: k, how often each layer propagates.
        num_layers: layers; all but the last have `hidden_channels`.
        negative_slope: of the LeakyReLU after every layer (the paper: 0.1).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        order: int = 2,
        num_layers: int = 1,
        hidden_channels: int = 64,
        negative_slope: float = 0.1,
    ) -> None:
        super().__init__()
        if not 0 <= negative_slope <= 1:
            raise invalid_parameter("negative_slope", "TopoTER", "between 0 and 1", negative_slope)
        widths = [in_channels] + [hidden_channels] * (num_layers - 1) + [out_channels]
        self.layers = linear_layers(widths)
        self.order = order
        self.negative_slope = negative_slope
        self.out_channels = out_channels
        self.initialize()

    def project(self, x: Features) -> Tensor:
        return without_bias(self.layers[0], x)

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        h = signal
        for number, layer in enumerate(self.layers):
            if number > 0:
                h = without_bias(layer, h)
            for _ in range(self.order):
                h = adjacency.normalized @ h
            h = functional.leaky_relu(h + layer.bias, self.negative_slope)
        return h

    def fused_delta(self, signal: Tensor, before: Adjacency, after: Adjacency) -> Tensor | None:
        if len(self.layers) > 1 or not use_compiled(signal):
            return None
        bias = self.layers[0].bias
        return sgc_delta(signal, bias, before.normalized, after.normalized, self.order, self.negative_slope)
