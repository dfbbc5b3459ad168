"""BGRL (Thakoor et al., 2022): predict what a slowly following copy of the encoder makes of another view.

"Large-Scale Representation Learning on Graphs via Bootstrapping", ICLR 2022.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.methods.base import register
from topoter.methods.convolutions import Convolutions, glorot
from topoter.methods.pretrained import LearningRate, PretextModule, Pretrained, cosine
from topoter.methods.views import check_shares, draw_view
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import TrainingSettings
from topoter.training.callbacks import Callback
from topoter.weights import linear_layers


class BootstrappedViews(PretextModule):
    """An encoder with a predictor, and the encoder's copy that both views are compared with.

    Args:
        momentum: how much the copy keeps of itself at the first step; it grows to 1 at the last.
        epochs: of the whole training.
    """

    def __init__(
        self,
        widths: list[int],
        seed: int,
        *,
        predictor_channels: int,
        drop_edges: Sequence[float],
        drop_features: Sequence[float],
        momentum: float,
        epochs: int,
    ) -> None:
        super().__init__(seed)
        self.encoder = Convolutions(widths, self.generator, activation="prelu", batch_norm=True)
        first, second = linear_layers([widths[-1], predictor_channels, widths[-1]])
        self.predictor = nn.Sequential(first, nn.PReLU(), second)
        glorot(self.predictor, self.generator)
        self.target = copy.deepcopy(self.encoder).requires_grad_(False)
        glorot(self.target, self.generator)  # it starts elsewhere, or there would be nothing to predict
        self.drops = list(zip(drop_edges, drop_features))
        self.momentum, self.epochs = momentum, epochs
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.steps: Tensor

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        if self.training:
            self.follow()
        views = [draw_view(x, adjacency, *drop, self.generator) for drop in self.drops]
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


@register("bgrl", "node")
class BGRL(Pretrained):
    """Bootstrapped views: no negatives."""

    def __init__(
        self,
        *,
        out_channels: int = 256,
        hidden_channels: int = 512,
        num_layers: int = 2,
        predictor_channels: int = 512,
        drop_edges: Sequence[float] = (0.2, 0.4),
        drop_features: Sequence[float] = (0.3, 0.4),
        momentum: float = 0.99,
        epochs: int = 1000,
        warm_up: int = 100,
        learning_rate: float = 5e-4,
        weight_decay: float = 1e-5,
        feature_scaling: str = "sum",
    ) -> None:
        check_shares("BGRL", drop_edges=drop_edges, drop_features=drop_features)
        self.widths = [hidden_channels] * (num_layers - 1) + [out_channels]
        self.options = {
            "predictor_channels": predictor_channels,
            "drop_edges": drop_edges,
            "drop_features": drop_features,
            "momentum": momentum,
            "epochs": epochs,
        }
        self.settings = TrainingSettings(epochs, None, learning_rate, weight_decay, keep=None)
        self.warm_up, self.feature_scaling = warm_up, feature_scaling

    def callbacks(self, module: PretextModule) -> list[Callback]:
        return [LearningRate(cosine(self.settings.epochs, self.warm_up))]

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return BootstrappedViews([in_channels, *self.widths], seed, **self.options)  # type: ignore[arg-type]
