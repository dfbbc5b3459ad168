"""Encoders H = E(X, A): SGC, GCN, GIN, or any PyG module, all with shared weights for A and A~.

An encoder works in two steps, so that what does not depend on the graph is computed once for A and A~:

    signal = encoder.project(x)               # X W of the first layer
    h      = encoder.propagate(signal, A)     # the rest

`x` is a dense tensor [N, C] or a `SparseOperator` (the same matrix, kept sparse).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.adjacency import Adjacency
from topoter.errors import UsageError, invalid_parameter, unknown_name, whole_number
from topoter.kernels import use_compiled
from topoter.kernels.sgc_delta import sgc_delta
from topoter.kernels.sparse import SparseOperator

Features = Tensor | SparseOperator


def _kaiming(weight: Tensor, generator: torch.Generator) -> None:
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)


INITIALIZERS: dict[str, Callable[[Tensor, torch.Generator], Any]] = {
    "default": _kaiming,  # what nn.Linear and PyG's SGConv do
    "spread": _kaiming,  # and then the biases by the data, see `Encoder.spread_thresholds`
    "glorot": lambda weight, generator: nn.init.xavier_uniform_(weight, generator=generator),
    "orthogonal": lambda weight, generator: nn.init.orthogonal_(weight, generator=generator),
}


class Encoder(nn.Module):
    """What the model asks of an encoder."""

    out_channels: int

    def project(self, x: Features) -> Tensor:
        """The part of the first layer that does not look at the graph, X W."""
        raise NotImplementedError

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        """The representations H [N, F] on one graph, from the projected features."""
        raise NotImplementedError

    def fused_delta(self, signal: Tensor, before: Adjacency, after: Adjacency) -> Tensor | None:
        """dH by a kernel that does both graphs at once, or `None` where there is none."""
        return None

    def forward(self, x: Features, adjacency: Adjacency | Tensor) -> Tensor:
        """H = E(X, A); `adjacency` may be given as PyG's edge_index."""
        if isinstance(adjacency, Tensor):
            num_nodes = x.shape[0]
            adjacency, _ = Adjacency.from_edge_index(adjacency, num_nodes)
        return self.propagate(self.project(x), adjacency)

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
        """Set the biases of a fresh encoder so that its ReLUs bend where the nodes of an example lie.

        Nothing is done where sums over neighbours are normalised, as in SGC and GCN: they do not grow with the degree.
        """


def linear_layers(widths: Sequence[int]) -> Sequence[nn.Linear]:
    """Linear layers from each width to the next, not filled yet: global random state stays as it is."""
    layers = nn.ModuleList(nn.utils.skip_init(nn.Linear, a, b) for a, b in pairwise(widths))
    return cast("Sequence[nn.Linear]", layers)


def _affine(linear: nn.Linear, x: Features) -> Tensor:
    """X W without the bias, which comes after propagation."""
    return x @ linear.weight.t()


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
        widths = [in_channels] + [hidden_channels] * (num_layers - 1) + [out_channels]
        self.layers = linear_layers(widths)
        self.order = order
        self.negative_slope = negative_slope
        self.out_channels = out_channels
        self.initialize()

    def project(self, x: Features) -> Tensor:
        return _affine(self.layers[0], x)

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        h = signal
        for number, layer in enumerate(self.layers):
            if number > 0:
                h = _affine(layer, h)
            for _ in range(self.order):
                h = adjacency.normalized @ h
            h = functional.leaky_relu(h + layer.bias, self.negative_slope)
        return h

    def fused_delta(self, signal: Tensor, before: Adjacency, after: Adjacency) -> Tensor | None:
        if len(self.layers) > 1 or not use_compiled(signal):
            return None
        bias = self.layers[0].bias
        return sgc_delta(signal, bias, before.normalized, after.normalized, self.order, self.negative_slope)


class GCN(Encoder):
    """Graph convolutions D^-1/2 (A + I) D^-1/2 H W + b, with ReLU between layers and none at the end."""

    def __init__(self, in_channels: int, out_channels: int, num_layers: int = 2, hidden_channels: int = 64) -> None:
        super().__init__()
        widths = [in_channels] + [hidden_channels] * (num_layers - 1) + [out_channels]
        self.layers = linear_layers(widths)
        self.out_channels = out_channels
        self.initialize()

    def project(self, x: Features) -> Tensor:
        return _affine(self.layers[0], x)

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        h = adjacency.normalized @ signal + self.layers[0].bias
        for layer in self.layers[1:]:
            h = adjacency.normalized @ _affine(layer, torch.relu(h)) + layer.bias
        return h


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
        return _affine(self.first[0], x)

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        # The sum over neighbours and the first linear map commute, so the map comes first (and once).
        outputs: list[Tensor] = []
        for number, first in enumerate(self.first):
            if outputs:
                signal = _affine(first, outputs[-1])
            outputs.append(self._layer(number, signal + adjacency.summed @ signal))
        return torch.cat(outputs, dim=1)

    def _layer(self, number: int, sums: Tensor) -> Tensor:
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
            signal = _affine(first, h)
            sums = signal + adjacency.summed @ signal
            units = torch.arange(sums.size(1))
            nodes = torch.randint(sums.size(0), (sums.size(1),), generator=generator)
            first.bias.copy_(-sums[nodes, units])
            h = self._layer(number, sums)
        for norm in self.norms:
            norm.reset_running_stats()


class ModuleEncoder(Encoder):
    """Any PyG module `module(x, edge_index) -> [N, F]` as an encoder; nothing is shared between A and A~."""

    def __init__(self, module: nn.Module, out_channels: int) -> None:
        super().__init__()
        self.module = module
        self.out_channels = out_channels

    def project(self, x: Features) -> Tensor:
        if isinstance(x, SparseOperator):
            raise UsageError("A PyG module as encoder takes dense features: pass features='dense'.")
        return x

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        if adjacency.weight is None:
            h: Tensor = self.module(signal, adjacency.edge_index)
        elif "edge_weight" in inspect.signature(self.module.forward).parameters:
            h = self.module(signal, adjacency.edge_index, edge_weight=adjacency.edge_weight)
        else:
            raise UsageError(
                f"The graph has edge weights, but {type(self.module).__name__}.forward takes no edge_weight: "
                "drop the weights or pass an encoder that uses them."
            )
        return h


ENCODERS: dict[str, type[Encoder]] = {"sgc": SGC, "gcn": GCN, "gin": GIN}


def build_encoder(
    name: str,
    in_channels: int,
    *,
    out_channels: int,
    order: int,
    num_layers: int,
    hidden_channels: int,
    negative_slope: float,
) -> Encoder:
    """An encoder by its name, taking of these parameters those it has."""
    if name not in ENCODERS:
        raise unknown_name("encoder", name, ENCODERS)
    out_channels, hidden_channels = (
        whole_number("out_channels", out_channels, 1),
        whole_number("hidden_channels", hidden_channels, 1),
    )
    order, num_layers = whole_number("order", order, 1), whole_number("num_layers", num_layers, 1)
    if not 0 <= negative_slope <= 1:
        raise invalid_parameter("negative_slope", "TopoTER", "between 0 and 1", negative_slope)
    if name == "gin":
        return GIN(in_channels, hidden_channels, num_layers)
    if name == "gcn":
        return GCN(in_channels, out_channels, num_layers, hidden_channels)
    return SGC(in_channels, out_channels, order, num_layers, hidden_channels, negative_slope)
