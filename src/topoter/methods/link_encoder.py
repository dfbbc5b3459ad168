"""The encoders of link prediction, and the noise that keeps them from learning edges by heart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.encoders import GCN, Encoder
from topoter.encoders.base import without_bias
from topoter.errors import unknown_name
from topoter.kernels.sparse import SparseOperator
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.hops import propagate

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "elu": functional.elu}


class LinkEncoder(GCN):
    """Two graph convolutions D^-1/2 (A + I) D^-1/2 H W + b.

    Args:
        activation: between them, a name in `ACTIVATIONS`; the paper's is ReLU.
        batch_norm: bring every hidden channel to mean 0 and variance 1 over the nodes of the graph at hand, also in
            evaluation: a graph of which most edges are hidden has other means than the whole one, and averages over
            training steps would fit neither.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, activation: str, batch_norm: bool
    ) -> None:
        if activation not in ACTIVATIONS:
            raise unknown_name("activation", activation, ACTIVATIONS)
        super().__init__(in_channels, out_channels, num_layers=2, hidden_channels=hidden_channels)
        self.activation = ACTIVATIONS[activation]
        self.norm = nn.BatchNorm1d(hidden_channels, track_running_stats=False) if batch_norm else nn.Identity()

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        return self.second(self.first(signal, adjacency), adjacency)

    def first(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        """The hidden representations, after the activation, [N, hidden]."""
        return self.activation(self.norm(adjacency.normalized @ signal + self.layers[0].bias))

    def second(self, hidden: Tensor, adjacency: Adjacency) -> Tensor:
        """H [N, F]."""
        last = self.layers[1]
        h: Tensor = adjacency.normalized @ (hidden @ last.weight.t()) + last.bias
        return h

    def noisy(self, signal: Tensor, adjacency: Adjacency, noise: Callable[[Tensor], Tensor]) -> Tensor:
        """H as training sees it."""
        return self.second(noise(self.first(signal, adjacency)), adjacency)

    @torch.no_grad()
    def recentre(self, x: Features, adjacency: Adjacency) -> None:
        """Shift and scale the last layer: the mean of H becomes 0, its mean squared length 1.

        TopoTER sees H only as the difference of two graphs, so a vector that all nodes share costs it nothing and may
        grow without end. To an inner product that vector says that all pairs are edges.
        """
        h = self(x, adjacency)
        last, mean = self.layers[1], h.mean(0)
        scale = (h - mean).square().sum(1).mean().clamp(min=1e-12).rsqrt()
        last.weight *= scale
        last.bias.sub_(mean).mul_(scale)


class LinkHops(Encoder):
    """Several hops side by side: H = [X W_0 | S X W_1 | S^2 X W_2], each channel of mean 0 and variance 1.

    Args:
        out_channels: F, of all hops together.
    """

    hops = (0, 1, 2)

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        width = out_channels // len(self.hops)
        self.layer = nn.Linear(in_channels, width * len(self.hops), bias=False)
        self.out_channels = self.layer.out_features
        self.norm = nn.BatchNorm1d(self.out_channels, track_running_stats=False)

    def project(self, x: Features) -> Tensor:
        return without_bias(self.layer, x)

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        parts = [propagate(adjacency, part, k) for k, part in zip(self.hops, signal.chunk(len(self.hops), dim=1))]
        h: Tensor = self.norm(torch.cat(parts, dim=1))
        return h

    def noisy(self, signal: Tensor, adjacency: Adjacency, noise: Callable[[Tensor], Tensor]) -> Tensor:
        """H as training sees it."""
        return noise(self.propagate(signal, adjacency))

    @torch.no_grad()
    def start_at(self, directions: Tensor, x: Features, adjacency: Adjacency) -> None:
        """Begin with what pre-training found: at every hop the principal axes of S^k X `directions`."""
        width = self.layer.out_features // len(self.hops)
        columns = []
        for k in self.hops:
            h = propagate(adjacency, x @ directions, k)
            h = h - h.mean(0)
            _, axes = torch.linalg.eigh((h.t() @ h).double())
            found = directions @ axes.flip(1)[:, :width].float()
            found = torch.cat(
                [found, self.layer.weight.t()[:, found.size(1) : width]], dim=1
            )  # fewer axes than channels
            columns.append(found / found.norm(dim=0).mean().clamp(min=1e-12))
        self.layer.weight.copy_(torch.cat(columns, dim=1).t())


class LinkHopsAndLayers(LinkHops):
    """The same hops beside two graph convolutions: H = [X W_0 | S X W_1 | S^2 X W_2 | GCN(X, A)].

    Hops are linear and keep apart what a node says and what its neighbours say; layers bend in between.

    Args:
        out_channels: F, of which the layers have a quarter.
        hidden_channels: between the two layers.
        activation: likewise.
    """

    def __init__(self, in_channels: int, out_channels: int, hidden_channels: int, activation: str) -> None:
        width = out_channels // (len(self.hops) + 1)
        super().__init__(in_channels, width * len(self.hops))
        self.layers = LinkEncoder(in_channels, hidden_channels, width, activation, batch_norm=True)
        self.widths = [self.out_channels, hidden_channels]
        self.out_channels += width

    def project(self, x: Features) -> Tensor:
        weight = torch.cat([self.layer.weight, self.layers.layers[0].weight])
        signal: Tensor = x @ weight.t()  # one product for both
        return signal

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        hops, layers = signal.split(self.widths, dim=1)
        return torch.cat([super().propagate(hops, adjacency), self.layers.propagate(layers, adjacency)], dim=1)

    def noisy(self, signal: Tensor, adjacency: Adjacency, noise: Callable[[Tensor], Tensor]) -> Tensor:
        hops, layers = signal.split(self.widths, dim=1)
        linear = noise(super().propagate(hops, adjacency))
        return torch.cat([linear, self.layers.noisy(layers, adjacency, noise)], dim=1)


class Dropout:
    """Entries set to 0 at random, from a generator of its own.

    Sixteen random bits decide an entry, which takes a fifth of the time of PyTorch's dropout on a CPU.
    """

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def mask(self, size: int, share: float) -> Tensor:
        """As many numbers, 0 for the share that is dropped, and what keeps the mean for the others."""
        bound = round(share * (1 << 16))
        kept = self.generator.integers(0, 1 << 16, size=size, dtype=np.uint16) >= bound
        return torch.from_numpy(kept).float().mul_((1 << 16) / ((1 << 16) - bound))

    def __call__(self, values: Tensor, share: float) -> Tensor:
        return values if share <= 0 else values * self.mask(values.numel(), share).view_as(values)


class NoisyFeatures:
    """A feature matrix of which, at every call, another share of the entries is dropped; sparse stays sparse."""

    def __init__(self, x: Features) -> None:
        self.x = x
        if isinstance(x, SparseOperator):
            # The transpose, which the backward pass needs, holds the same entries column by column.
            self.column_order = torch.argsort(x.indices.long() * x.shape[0] + x.row)

    def drop(self, dropout: Dropout, share: float) -> Features:
        x = self.x
        if share <= 0:
            return x
        if isinstance(x, Tensor):
            return dropout(x, share)
        assert x.transposed is not None
        values = dropout(x.values, share)
        transposed = replace(x.transposed, values=values[self.column_order], _row=None, _torch=None)
        return replace(x, values=values, transposed=transposed, _row=None, _torch=None)
