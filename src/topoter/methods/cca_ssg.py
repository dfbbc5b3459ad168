"""CCA-SSG (Zhang et al., 2021): two views agree channel by channel, and no two channels say the same.

"From Canonical Correlation Analysis to Self-supervised Graph Neural Networks", NeurIPS 2021.
"""

from __future__ import annotations

import torch
from torch import Tensor

from topoter.methods.base import register
from topoter.methods.convolutions import Convolutions
from topoter.methods.pretrained import PretextModule, Pretrained
from topoter.methods.views import check_shares, draw_view
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import TrainingSettings


def correlation_loss(h: Tensor, h_other: Tensor, decorrelation: float) -> Tensor:
    """-tr(C12) + w (|C11 - I|^2 + |C22 - I|^2), with C the correlations [F, F] over the nodes."""
    z, z_other = ((view - view.mean(0)) / view.std(0).clamp(min=1e-12) for view in (h, h_other))
    num_nodes, channels = z.shape
    identity = torch.eye(channels)
    apart = sum((view.t() @ view / num_nodes - identity).square().sum() for view in (z, z_other))
    return -(z * z_other).sum() / num_nodes + decorrelation * apart


class CorrelatedViews(PretextModule):
    """Graph convolutions without an activation at the end, and the loss of two views."""

    def __init__(
        self, widths: list[int], seed: int, *, drop_edges: float, drop_features: float, decorrelation: float
    ) -> None:
        super().__init__(seed)
        self.encoder = Convolutions(widths, self.generator, last_activation=False)
        self.drop = drop_edges, drop_features
        self.decorrelation = decorrelation

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        views = [draw_view(x, adjacency, *self.drop, self.generator) for _ in range(2)]
        h, h_other = (self.encoder(x, *view) for view in views)
        return correlation_loss(h, h_other, self.decorrelation), {}


@register("cca-ssg", "node")
class CCASSG(Pretrained):
    """Two views agree, channels are uncorrelated: no negatives, no second encoder."""

    def __init__(
        self,
        *,
        out_channels: int = 512,
        hidden_channels: int = 512,
        num_layers: int = 2,
        drop_edges: float = 0.4,
        drop_features: float = 0.1,
        decorrelation: float = 1e-3,
        epochs: int = 50,
        learning_rate: float = 1e-3,
        feature_scaling: str = "sum",
    ) -> None:
        check_shares("CCASSG", drop_edges=drop_edges, drop_features=drop_features)
        self.widths = [hidden_channels] * (num_layers - 1) + [out_channels]
        self.options = {"drop_edges": drop_edges, "drop_features": drop_features, "decorrelation": decorrelation}
        self.settings = TrainingSettings(epochs, None, learning_rate, keep=None)
        self.feature_scaling = feature_scaling

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return CorrelatedViews([in_channels, *self.widths], seed, **self.options)
