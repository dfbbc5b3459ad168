"""Peers that make two views of one graph, each without some edges and some features, whose embeddings are to agree.

CCA-SSG (Zhang et al., 2021, "From Canonical Correlation Analysis to Self-supervised Graph Neural Networks"): they agree
channel by channel, and no two channels say the same. GRACE (Zhu et al., 2020, "Deep Graph Contrastive Representation
Learning"): a node's views are told from those of all other nodes. BGRL (Thakoor et al., 2022, "Large-Scale
Representation Learning on Graphs via Bootstrapping"): one predicts what a slowly following copy makes of the other.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.kernels.contrast import contrast as contrast_of_units
from topoter.methods.base import register
from topoter.methods.convolutions import Convolutions, glorot
from topoter.methods.gradients import PReLU, gram
from topoter.methods.pretrained import LearningRate, PretextModule, Pretrained, cosine
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training.callbacks import Callback
from topoter.weights import linear_layers

View = tuple[Adjacency, Tensor]  # the graph, and what multiplies each column of X


def draw_view(
    x: Features, adjacency: Adjacency, drop_edges: float, drop_features: float, generator: torch.Generator
) -> View:
    """A graph that lost a share of its edges, both directions at once, and whole columns of its features."""
    kept = torch.rand(adjacency.num_edges, generator=generator) >= drop_edges
    columns = torch.rand(x.shape[1], generator=generator) >= drop_features
    return (adjacency.keep(kept) if drop_edges > 0 else adjacency), columns.float()


@dataclass(kw_only=True)
class _OfViews(Pretrained):
    """Graph convolutions of two views; `drop_edges` and `drop_features` are shares, one for each view."""

    out_channels: int = 128
    hidden_channels: int | None = None  # of all layers but the last; None is twice as many
    num_layers: int = 2
    drop_edges: Sequence[float] | float = (0.2, 0.4)
    drop_features: Sequence[float] | float = (0.3, 0.4)
    learning_rate: float = 5e-4
    weight_decay: float = 1e-5

    shares = ("drop_edges", "drop_features")

    def widths(self, in_channels: int) -> list[int]:
        hidden = self.hidden_channels or 2 * self.out_channels
        return [in_channels, *[hidden] * (self.num_layers - 1), self.out_channels]


class _ViewsModule(PretextModule):
    """What draws both views; a number of its own for each, or one for both."""

    def __init__(self, method: _OfViews, seed: int) -> None:
        super().__init__(seed)
        edges, features = (
            share if isinstance(share, Sequence) else (share, share)
            for share in (method.drop_edges, method.drop_features)
        )
        self.drops = list(zip(edges, features))

    def views(self, x: Features, adjacency: Adjacency) -> list[View]:
        return [draw_view(x, adjacency, *drop, self.generator) for drop in self.drops]


def _two_layers(channels: Sequence[int], activation: nn.Module, generator: torch.Generator) -> nn.Sequential:
    first, second = linear_layers(channels)
    layers = nn.Sequential(first, activation, second)
    glorot(layers, generator)
    return layers


# ---- CCA-SSG ---------------------------------------------------------------------------------------------------------


def correlation_loss(h: Tensor, h_other: Tensor, decorrelation: float) -> Tensor:
    """-tr(C12) + w (|C11 - I|^2 + |C22 - I|^2), with C the correlations [F, F] over the nodes."""
    z, z_other = ((view - view.mean(0)) / view.std(0).clamp(min=1e-12) for view in (h, h_other))
    num_nodes, channels = z.shape
    identity = torch.eye(channels)
    apart = sum((gram(view) / num_nodes - identity).square().sum() for view in (z, z_other))
    return -(z * z_other).sum() / num_nodes + decorrelation * apart


@register("cca-ssg", "node")
@dataclass(kw_only=True)
class CCASSG(_OfViews):
    """Two views agree, channels are uncorrelated: no negatives, no second encoder."""

    out_channels: int = 512
    hidden_channels: int | None = 512
    drop_edges: Sequence[float] | float = 0.4
    drop_features: Sequence[float] | float = 0.1
    decorrelation: float = 1e-3
    epochs: int = 50
    learning_rate: float = 1e-3
    weight_decay: float = 0.0

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return CorrelatedViews(in_channels, self, seed)


class CorrelatedViews(_ViewsModule):
    """Graph convolutions without an activation at the end, and the loss of two views."""

    def __init__(self, in_channels: int, method: CCASSG, seed: int) -> None:
        super().__init__(method, seed)
        self.encoder = Convolutions(method.widths(in_channels), self.generator, last_activation=False)
        self.decorrelation = method.decorrelation

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        h, h_other = (self.encoder(x, *view) for view in self.views(x, adjacency))
        return correlation_loss(h, h_other, self.decorrelation), {}


# ---- GRACE -----------------------------------------------------------------------------------------------------------


def contrast(z: Tensor, z_other: Tensor, temperature: float) -> Tensor:
    """-log of a node's own other view against all nodes of both views, by cosine, mean over the nodes and views."""
    return contrast_of_units(functional.normalize(z, dim=1), functional.normalize(z_other, dim=1), temperature)


@register("grace", "node")
@dataclass(kw_only=True)
class GRACE(_OfViews):
    """Contrast of nodes between two views.

    Args:
        contrasted: how many nodes a step contrasts with each other, drawn anew each time; the cost is their square.
    """

    activation: str = "relu"
    temperature: float = 0.4
    contrasted: int | None = None

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return ContrastedViews(in_channels, self, seed)


class ContrastedViews(_ViewsModule):
    """Graph convolutions, a projection of two layers, and the contrast of two views."""

    def __init__(self, in_channels: int, method: GRACE, seed: int) -> None:
        super().__init__(method, seed)
        self.encoder = Convolutions(method.widths(in_channels), self.generator, activation=method.activation)
        self.projection = _two_layers([method.out_channels] * 3, nn.ELU(), self.generator)
        self.temperature, self.contrasted = method.temperature, method.contrasted

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        h, h_other = (self.encoder(x, *view) for view in self.views(x, adjacency))
        if self.contrasted is not None and self.contrasted < adjacency.num_nodes:
            nodes = torch.randperm(adjacency.num_nodes, generator=self.generator)[: self.contrasted]
            h, h_other = h.index_select(0, nodes), h_other.index_select(0, nodes)
        return contrast(self.projection(h), self.projection(h_other), self.temperature), {}


# ---- BGRL ------------------------------------------------------------------------------------------------------------


@register("bgrl", "node")
@dataclass(kw_only=True)
class BGRL(_OfViews):
    """Bootstrapped views: no negatives.

    Args:
        momentum: how much the copy keeps of itself at the first step; it grows to 1 at the last.
        warm_up: epochs in which the learning rate rises.
    """

    out_channels: int = 256
    hidden_channels: int | None = 512
    predictor_channels: int = 512
    momentum: float = 0.99
    epochs: int = 1000
    warm_up: int = 100

    def callbacks(self, module: PretextModule) -> list[Callback]:
        return [LearningRate(cosine(self.epochs, self.warm_up))]

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return BootstrappedViews(in_channels, self, seed)


class BootstrappedViews(_ViewsModule):
    """An encoder with a predictor, and the encoder's copy that both views are compared with."""

    def __init__(self, in_channels: int, method: BGRL, seed: int) -> None:
        super().__init__(method, seed)
        width = method.out_channels
        self.encoder = Convolutions(method.widths(in_channels), self.generator, activation="prelu", batch_norm=True)
        self.predictor = _two_layers([width, method.predictor_channels, width], PReLU(), self.generator)
        self.target = copy.deepcopy(self.encoder).requires_grad_(False)
        glorot(self.target, self.generator)  # it starts elsewhere, or there would be nothing to predict
        self.momentum, self.epochs = method.momentum, method.epochs
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.steps: Tensor

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        if self.training:
            self.follow()
        views = self.views(x, adjacency)
        predicted = [self.predictor(self.encoder(x, *view)) for view in views]
        with torch.no_grad():
            wanted = [self.target(x, *view) for view in views]
        agreement = [functional.cosine_similarity(predicted[i], wanted[1 - i], dim=1).mean() for i in (0, 1)]
        return 2 - agreement[0] - agreement[1], {}

    @torch.no_grad()
    def follow(self) -> None:
        """Move the copy towards the encoder, once for every step that the encoder has made."""
        if self.steps > 0:
            kept = 1 - (1 - self.momentum) * cosine(self.epochs)(int(self.steps))
            for own, followed in zip(self.target.parameters(), self.encoder.parameters()):
                own.lerp_(followed, 1 - kept)
        self.steps += 1
