"""DGI (Velickovic et al., 2019): tell the nodes of a graph from those of the same graph with shuffled features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from topoter.adjacency import Adjacency
from topoter.baselines.randomness import seeded
from topoter.baselines.training import train
from topoter.encoders import SGC, Features


class _Propagation(nn.Module):
    """The encoder from its projected features on, with the PReLU that DGI puts at its end."""

    def __init__(self, encoder: SGC) -> None:
        super().__init__()
        self.encoder = encoder
        self.activation = nn.PReLU()

    def forward(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        h: Tensor = self.activation(self.encoder.propagate(signal, adjacency))
        return h


def build_dgi(in_channels: int, *, out_channels: int, order: int, seed: int) -> Any:
    """PyG's DeepGraphInfomax on the encoder the paper gives every method: one SGC layer."""
    from torch_geometric.nn import DeepGraphInfomax

    generator = torch.Generator().manual_seed(seed)
    encoder = SGC(in_channels, out_channels, order, negative_slope=1.0)  # linear: the PReLU follows
    with seeded(seed):
        module = DeepGraphInfomax(
            out_channels,
            encoder=_Propagation(encoder),
            summary=lambda h, *_: h.mean(dim=0).sigmoid(),
            # Shuffling the rows of X W is shuffling those of X.
            corruption=lambda signal, adjacency: (
                signal[torch.randperm(signal.size(0), generator=generator)],
                adjacency,
            ),
        )
    encoder.initialize("glorot", generator)  # after PyG's constructor, which draws all weights anew
    return module


def dgi(
    x: Features,
    adjacency: Adjacency,
    *,
    seed: int,
    out_channels: int = 512,
    order: int = 2,
    epochs: int = 1000,
    learning_rate: float = 1e-3,
    patience: int | None = 20,
    on_epoch: Callable[[int, float], None] | None = None,
) -> tuple[Callable[[Features], Tensor], list[float]]:
    """DGI's trained encoder, from features of the graph to embeddings [N, F], and the loss of every epoch."""
    module = build_dgi(x.shape[1], out_channels=out_channels, order=order, seed=seed)
    encoder = module.encoder.encoder

    def loss() -> Tensor:
        value: Tensor = module.loss(*module(encoder.project(x), adjacency))
        return value

    losses = train(module, loss, epochs=epochs, learning_rate=learning_rate, patience=patience, on_epoch=on_epoch)

    def encode(features: Features) -> Tensor:
        with torch.no_grad():
            h: Tensor = module.encoder(encoder.project(features), adjacency)
        return h

    return encode, losses
