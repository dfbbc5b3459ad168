"""GraphMAE on sets of graphs (Hou et al., 2022): features of masked nodes are found again from their surroundings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from topoter.methods.base import register
from topoter.methods.graph_layers import GraphLayers, NodeFeatures
from topoter.methods.link_encoder import Dropout
from topoter.methods.masked_features import scaled_cosine_error
from topoter.methods.pretrained import PretextModule, PretrainedOnSet
from topoter.methods.randomness import seeded
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.graph_sets import GraphSet
from topoter.training.state import RandomStream

if TYPE_CHECKING:
    from torch_geometric.data import Data


@register("graphmae", "graph")
@dataclass(kw_only=True)
class GraphMAEMethod(PretrainedOnSet):
    """GraphMAE with its own encoder; one-hot degrees where nodes have no features, as in the authors' code.

    Args:
        mask_rate: share of the nodes of a batch that is masked.
        replace_rate: share of these that gets the features of another node instead of the mask.
        power: of the scaled cosine error.
    """

    hidden_channels: int = 512
    num_layers: int = 2
    mask_rate: float = 0.5
    replace_rate: float = 0.0
    power: float = 1.0
    dropout: float = 0.2
    epochs: int = 60
    learning_rate: float = 1.5e-4
    batch_size: int = 32
    pooling: str = "mean"

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return GraphMAE(in_channels, self, seed)

    def reader(self, graphs: list[Data]) -> tuple[Callable[[list[Data]], GraphSet], GraphSet, int]:
        features = NodeFeatures(graphs)
        return features, features.first, features.width


class GraphMAE(PretextModule):
    """Masked features, an encoder, the masked nodes' representations masked once more, and a decoder of one layer."""

    def __init__(self, in_channels: int, method: GraphMAEMethod, seed: int) -> None:
        super().__init__(seed)
        self.method, self.dropout = method, Dropout(seed)
        hidden_channels = method.hidden_channels
        with seeded(seed):
            self.encoder = GraphLayers(in_channels, hidden_channels, method.num_layers, activation="prelu")
            self.between = nn.Linear(hidden_channels, hidden_channels, bias=False)
            self.decoder = GraphLayers(
                hidden_channels, hidden_channels, 1, out_channels=in_channels, activation="prelu", last=False
            )
        self.token = nn.Parameter(torch.zeros(in_channels))

    @property
    def streams(self) -> Mapping[str, RandomStream]:
        return {"generator": self.generator, "dropout": self.dropout.generator}

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        x = cast("Tensor", x)
        masked_x, masked = self.mask(x)
        h = self.between(self.encoder(masked_x, adjacency, self.noise)[-1])
        seen = torch.ones(len(x), 1)
        seen[masked] = 0  # the decoder must find them again from their neighbours
        found = self.decoder(h * seen, adjacency, self.noise)[-1]
        return scaled_cosine_error(found[masked], x[masked], self.method.power), {}

    def mask(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The features with some nodes masked, and which these are."""
        masked = torch.randperm(len(x), generator=self.generator)[: int(self.method.mask_rate * len(x))]
        replaced = masked[: int(self.method.replace_rate * len(masked))]
        others = torch.randint(len(x), (len(replaced),), generator=self.generator)
        changed = x.clone()
        changed[masked] = self.token
        changed[replaced] = x[others]
        return changed, masked

    def noise(self, h: Tensor) -> Tensor:
        return self.dropout(h, self.method.dropout)

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        """The last layer's representations [N, F]."""
        h: Tensor = self.encoder(cast("Tensor", x), adjacency)[-1]
        return h
