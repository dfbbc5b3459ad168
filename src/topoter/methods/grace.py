"""GRACE (Zhu et al., 2020): a node's two views are told from the views of all other nodes.

"Deep Graph Contrastive Representation Learning", ICML workshop 2020.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.methods.base import register
from topoter.methods.convolutions import Convolutions, glorot
from topoter.methods.pretrained import PretextModule, Pretrained
from topoter.methods.views import check_shares, draw_view
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import TrainingSettings
from topoter.weights import linear_layers


def contrast(z: Tensor, z_other: Tensor, temperature: float) -> Tensor:
    """-log of a node's own other view against all nodes of both views, by cosine, mean over the nodes and views."""
    z, z_other = functional.normalize(z, dim=1), functional.normalize(z_other, dim=1)
    between = z @ z_other.t() / temperature
    own = torch.arange(z.size(0))
    losses = []
    for logits, view in ((between, z), (between.t(), z_other)):
        within = (view @ view.t() / temperature).fill_diagonal_(-torch.inf)
        losses.append((torch.logsumexp(torch.cat([logits, within], dim=1), dim=1) - logits[own, own]).mean())
    return (losses[0] + losses[1]) / 2


class ContrastedViews(PretextModule):
    """Graph convolutions, a projection of two layers, and the contrast of two views.

    Args:
        contrasted: how many nodes a step contrasts with each other, drawn anew each time; the cost is their square.
    """

    def __init__(
        self,
        widths: list[int],
        seed: int,
        *,
        activation: str,
        drop_edges: Sequence[float],
        drop_features: Sequence[float],
        temperature: float,
        contrasted: int | None,
    ) -> None:
        super().__init__(seed)
        self.encoder = Convolutions(widths, self.generator, activation=activation)
        width = widths[-1]
        first, second = linear_layers([width, width, width])
        self.projection = nn.Sequential(first, nn.ELU(), second)
        glorot(self.projection, self.generator)
        self.drops = list(zip(drop_edges, drop_features))
        self.temperature, self.contrasted = temperature, contrasted

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        views = [draw_view(x, adjacency, *drop, self.generator) for drop in self.drops]
        h, h_other = (self.encoder(x, *view) for view in views)
        if self.contrasted is not None and self.contrasted < adjacency.num_nodes:
            nodes = torch.randperm(adjacency.num_nodes, generator=self.generator)[: self.contrasted]
            h, h_other = h.index_select(0, nodes), h_other.index_select(0, nodes)
        return contrast(self.projection(h), self.projection(h_other), self.temperature), {}


@register("grace", "node")
class GRACE(Pretrained):
    """Contrast of nodes between two views."""

    def __init__(
        self,
        *,
        out_channels: int = 128,
        num_layers: int = 2,
        hidden_channels: int | None = None,
        activation: str = "relu",
        drop_edges: Sequence[float] = (0.2, 0.4),
        drop_features: Sequence[float] = (0.3, 0.4),
        temperature: float = 0.4,
        contrasted: int | None = None,
        epochs: int = 200,
        learning_rate: float = 5e-4,
        weight_decay: float = 1e-5,
        feature_scaling: str = "sum",
    ) -> None:
        check_shares("GRACE", drop_edges=drop_edges, drop_features=drop_features)
        self.widths = [hidden_channels or 2 * out_channels] * (num_layers - 1) + [out_channels]
        self.options = {
            "activation": activation,
            "drop_edges": drop_edges,
            "drop_features": drop_features,
            "temperature": temperature,
            "contrasted": contrasted,
        }
        self.settings = TrainingSettings(epochs, None, learning_rate, weight_decay, keep=None)
        self.feature_scaling = feature_scaling

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return ContrastedViews([in_channels, *self.widths], seed, **self.options)  # type: ignore[arg-type]
