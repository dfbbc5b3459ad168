"""DGI (Velickovic et al., 2019): tell the nodes of a graph from those of the same graph with shuffled features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch_geometric.nn import DeepGraphInfomax

from topoter.encoders import SGC
from topoter.methods.base import Fitted, Method, register
from topoter.methods.randomness import seeded
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import TrainingSettings, TrainingState, train
from topoter.training.batches import whole_graph
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data


class _Propagation(nn.Module):
    """The encoder from its projected features on, with the PReLU that DGI puts at its end."""

    def __init__(self, encoder: SGC) -> None:
        super().__init__()
        self.encoder = encoder
        self.activation = nn.PReLU()

    def forward(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        h: Tensor = self.activation(self.encoder.propagate(signal, adjacency))
        return h


class Infomax(nn.Module):
    """PyG's DeepGraphInfomax on the encoder the paper gives every method: one SGC layer."""

    def __init__(self, in_channels: int, *, out_channels: int, order: int, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
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

    @torch.no_grad()
    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        h: Tensor = self.module.encoder(self.module.encoder.encoder.project(x), adjacency)
        return h


@register("dgi", "node")
class DGI(Method):
    """Deep Graph Infomax."""

    def __init__(
        self,
        *,
        out_channels: int = 512,
        order: int = 2,
        epochs: int = 1000,
        learning_rate: float = 1e-3,
        patience: int | None = 20,
        feature_scaling: str = "none",
    ) -> None:
        self.out_channels, self.order, self.feature_scaling = out_channels, order, feature_scaling
        self.settings = TrainingSettings(epochs, patience, learning_rate)

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        batch = whole_graph(graph, self.feature_scaling)[0]
        module = Infomax(batch[0].shape[1], out_channels=self.out_channels, order=self.order, seed=seed)
        state = TrainingState.start(module, self.settings, {"generator": module.generator})
        train(state, [batch], callbacks)

        def embed(other: Data) -> np.ndarray:
            return module.encode(*whole_graph(other, self.feature_scaling)[0]).numpy()

        return Fitted(embedding=embed, history=state.history)
