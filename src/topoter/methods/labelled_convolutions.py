"""Semi-supervised systems whose propagation is fixed: GCN, SGC, and MixHop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from topoter.encoders import SGC as SimpleConvolution
from topoter.methods.base import register
from topoter.methods.convolutions import Convolutions, glorot
from topoter.methods.labelled import Labelled, Network, Noise
from topoter.methods.pretrained import LearningRate
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training.callbacks import Callback


class ConvolutionClassifier(Network):
    """Graph convolutions with ReLU and dropout between them."""

    def __init__(self, widths: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.convolutions = Convolutions(widths, generator, last_activation=False)

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise) -> Tensor:
        return self.convolutions.of_layers(x, adjacency, noise=noise)[-1]

    def decayed(self) -> list[nn.Parameter]:
        return list(self.convolutions.layers[0].parameters())


@register("gcn", "node")
@dataclass(kw_only=True)
class GCN(Labelled):
    """Graph convolutions (Kipf and Welling, 2017); only the first layer's weights decay, as in its code."""

    hidden_channels: int = 16
    num_layers: int = 2

    def network(self, in_channels: int, classes: int, adjacency: Adjacency, generator: torch.Generator) -> Network:
        hidden = [self.hidden_channels] * (self.num_layers - 1)
        return ConvolutionClassifier([in_channels, *hidden, classes], generator)


class PropagatedClassifier(Network):
    """Logistic regression on (D^-1/2 (A + I) D^-1/2)^k X."""

    def __init__(self, in_channels: int, classes: int, order: int, generator: torch.Generator) -> None:
        super().__init__()
        self.convolution = SimpleConvolution(in_channels, classes, order, negative_slope=1.0)
        glorot(self.convolution, generator)

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise) -> Tensor:
        h: Tensor = self.convolution(x, adjacency)
        return h


@register("sgc", "node")
@dataclass(kw_only=True)
class SGC(Labelled):
    """Simple graph convolution (Wu et al., 2019): a linear classifier of propagated features."""

    order: int = 2
    feature_dropout: float = 0.0
    dropout: float = 0.0

    def network(self, in_channels: int, classes: int, adjacency: Adjacency, generator: torch.Generator) -> Network:
        return PropagatedClassifier(in_channels, classes, self.order, generator)


class MixHopLayer(nn.Module):
    """The powers of the propagation side by side, each with weights of its own: [H W_0, S H W_1, S^2 H W_2, ...].

    Equal to PyG's `MixHopConv` without bias. Powers of width 0 are left out.

    Args:
        widths: the channels of power 0, 1, 2, ...
    """

    def __init__(self, in_channels: int, widths: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.powers = [power for power, width in enumerate(widths) if width > 0]
        self.weights = nn.ParameterList(torch.empty(in_channels, widths[power]) for power in self.powers)
        for weight in self.weights:
            nn.init.xavier_uniform_(weight, generator=generator)

    def forward(self, h: Features, adjacency: Adjacency) -> Tensor:
        parts = []
        for power, weight in zip(self.powers, self.weights):
            part = h @ weight
            for _ in range(power):
                part = adjacency.normalized @ part
            parts.append(part)
        return torch.cat(parts, dim=1)


class MixHopClassifier(Network):
    """Two MixHop layers; the second gives every power's logits, and learned shares add them up."""

    def __init__(
        self, in_channels: int, hidden: Sequence[int], classes: int, last: Sequence[int], generator: torch.Generator
    ) -> None:
        super().__init__()
        self.first = MixHopLayer(in_channels, hidden, generator)
        self.norm = nn.BatchNorm1d(
            sum(hidden), track_running_stats=False
        )  # as the authors have it, also when predicting
        self.second = MixHopLayer(sum(hidden), [classes * list(last).count(power) for power in range(3)], generator)
        self.shares = nn.Parameter(torch.zeros(len(last)))
        self.classes = classes

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise) -> Tensor:
        h = torch.relu(self.norm(self.first(x, adjacency)))
        by_power = self.second(noise(h), adjacency).view(h.size(0), -1, self.classes)
        return (by_power * torch.softmax(self.shares, 0).unsqueeze(1)).sum(1)

    def decayed(self) -> list[nn.Parameter]:
        return [*self.first.parameters(), *self.second.parameters()]


@register("mixhop", "node")
@dataclass(kw_only=True)
class MixHop(Labelled):
    """MixHop (Abu-El-Haija et al., 2019): neighbours at several distances, mixed; by plain gradient descent.

    Args:
        hidden_channels: of power 0, 1 and 2 in the first layer.
        last_powers: those that the second layer looks at; one that is named twice has twice the weights.
        slow_down_every: epochs after which the learning rate falls by a hundredth of what it was first.
    """

    hidden_channels: Sequence[int] = (20, 20, 20)
    last_powers: Sequence[int] = (0, 1, 2)
    slow_down_every: int = 40
    learning_rate: float = 0.5

    def network(self, in_channels: int, classes: int, adjacency: Adjacency, generator: torch.Generator) -> Network:
        return MixHopClassifier(in_channels, self.hidden_channels, classes, self.last_powers, generator)

    def optimizer(self, network: Network) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameter_groups(network), lr=self.learning_rate)

    def callbacks(self) -> list[Callback]:
        return [LearningRate(lambda done: max(0.01, 1 - 0.01 * (done // self.slow_down_every)))]
