"""DGI (Velickovic et al., 2019): tell the nodes of a graph from those of the same graph with shuffled features."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import DeepGraphInfomax

from topoter.encoders import SGC
from topoter.methods.base import register
from topoter.methods.gradients import PReLU
from topoter.methods.pretrained import PretextModule, Pretrained
from topoter.methods.randomness import seeded
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import Keep


class _Propagation(nn.Module):
    """The encoder from its projected features on, with the PReLU that DGI puts at its end."""

    def __init__(self, encoder: SGC) -> None:
        super().__init__()
        self.encoder = encoder
        self.activation = PReLU()

    def forward(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        h: Tensor = self.activation(self.encoder.propagate(signal, adjacency))
        return h


class Infomax(PretextModule):
    """PyG's DeepGraphInfomax on the encoder the paper gives every method: one SGC layer."""

    def __init__(self, in_channels: int, *, out_channels: int, order: int, seed: int) -> None:
        super().__init__(seed)
        encoder = SGC(in_channels, out_channels, order, negative_slope=1.0)  # linear: the PReLU follows
        with seeded(seed):
            self.module = DeepGraphInfomax(
                out_channels,
                encoder=_Propagation(encoder),
                summary=lambda h, *_: h.mean(dim=0).sigmoid(),
                # Shuffling the rows of X W is shuffling those of X.
                corruption=lambda signal, adjacency: (
                    signal[torch.randperm(signal.size(0), generator=self.generator)],
                    adjacency,
                ),
            )
        encoder.initialize("glorot", self.generator)  # after PyG's constructor, which draws all weights anew

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        return self.module.loss(*self.module(self.module.encoder.encoder.project(x), adjacency)), {}

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        h: Tensor = self.module.encoder(self.module.encoder.encoder.project(x), adjacency)
        return h


@register("dgi", "node")
@dataclass(kw_only=True)
class DGI(Pretrained):
    """Deep Graph Infomax."""

    out_channels: int = 512
    order: int = 2
    epochs: int = 1000
    patience: int | None = 20
    feature_scaling: str = "none"

    keep = Keep()

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return Infomax(in_channels, out_channels=self.out_channels, order=self.order, seed=seed)
