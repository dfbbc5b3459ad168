"""Semi-supervised systems that learn how much each neighbour counts: GAT and MoNet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.methods.attention import Attention, neighbours
from topoter.methods.base import register
from topoter.methods.convolutions import glorot
from topoter.methods.labelled import Labelled, Network, Noise
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.weights import linear_layers


class AttentionClassifier(Network):
    """Attention with heads side by side, ELU, and at the end the mean of heads; dropout everywhere."""

    def __init__(self, in_channels: int, classes: int, method: GAT, generator: torch.Generator) -> None:
        super().__init__()
        channels, heads = method.hidden_channels, method.heads
        widths = [in_channels] + [heads * channels] * (method.num_layers - 1)
        hidden = [Attention(width, channels, heads, generator) for width in widths[:-1]]
        self.layers = nn.ModuleList([*hidden, Attention(widths[-1], classes, method.last_heads, generator, mean=True)])

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise) -> Tensor:
        *hidden, last = self.layers
        h: Features = x
        for number, layer in enumerate(hidden):
            h = functional.elu(layer(h if number == 0 else noise(h), adjacency, noise))  # type: ignore[arg-type]
        logits: Tensor = last(noise(h) if hidden else h, adjacency, noise)  # type: ignore[arg-type]
        return logits


@register("gat", "node")
@dataclass(kw_only=True)
class GAT(Labelled):
    """Graph attention (Velickovic et al., 2018)."""

    hidden_channels: int = 8
    heads: int = 8
    last_heads: int = 1
    num_layers: int = 2
    feature_dropout: float = 0.6
    dropout: float = 0.6
    learning_rate: float = 5e-3

    def network(self, in_channels: int, classes: int, adjacency: Adjacency, generator: torch.Generator) -> Network:
        return AttentionClassifier(in_channels, classes, self, generator)


class GaussianMixture(nn.Module):
    """1/d_i sum_k sum_j w_k(u_ij) W_k h_j over A + I, with w_k a Gaussian on learned coordinates u of an edge.

    Given coordinates, equal to PyG's `GMMConv` without its root weight. Ours are tanh(B (d_i^-1/2, d_j^-1/2) + c), by
    the degrees d of A + I, as the paper has them.

    Args:
        kernels: how many Gaussians.
    """

    def __init__(self, in_channels: int, out_channels: int, kernels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.kernels = kernels
        self.weight = nn.Parameter(torch.empty(in_channels, kernels * out_channels))
        nn.init.xavier_uniform_(self.weight, generator=generator)
        self.coordinates = linear_layers([2, 2])[0]
        glorot(self.coordinates, generator)
        self.mu = nn.Parameter(torch.empty(kernels, 2).normal_(0, 0.1, generator=generator))
        self.inverse_sigma = nn.Parameter(torch.ones(kernels, 2))
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, h: Features, adjacency: Adjacency) -> Tensor:
        pattern = neighbours(adjacency)
        scale = _degree(adjacency).rsqrt()
        u = torch.tanh(self.coordinates(torch.stack([scale[pattern.column], scale[pattern.row]], dim=1)))
        return self.mix(h @ self.weight, adjacency, u)

    def mix(self, signal: Tensor, adjacency: Adjacency, u: Tensor) -> Tensor:
        """From W h of all kernels [N, K * C] and coordinates of the entries [E, 2]."""
        w = torch.exp(-0.5 * ((u.unsqueeze(1) - self.mu) * self.inverse_sigma).square().sum(2))  # [E, K]
        mixed = neighbours(adjacency).weighted_sum(w, signal).view(signal.size(0), self.kernels, -1).sum(1)
        return mixed / _degree(adjacency).unsqueeze(1) + self.bias


def _degree(adjacency: Adjacency) -> Tensor:
    return adjacency.normalized.indptr.diff().float()


class MixtureClassifier(Network):
    """Gaussian mixtures with ReLU and dropout between them."""

    def __init__(self, widths: Sequence[int], kernels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GaussianMixture(a, b, kernels, generator) for a, b in pairwise(widths))

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise) -> Tensor:
        h: Tensor = self.layers[0](x, adjacency)
        for layer in self.layers[1:]:
            h = layer(noise(torch.relu(h)), adjacency)
        return h


@register("monet", "node")
@dataclass(kw_only=True)
class MoNet(Labelled):
    """Mixture model network (Monti et al., 2017)."""

    hidden_channels: int = 16
    kernels: int = 3
    num_layers: int = 2

    def network(self, in_channels: int, classes: int, adjacency: Adjacency, generator: torch.Generator) -> Network:
        hidden = [self.hidden_channels] * (self.num_layers - 1)
        return MixtureClassifier([in_channels, *hidden, classes], self.kernels, generator)
