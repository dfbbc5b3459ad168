"""GraphMAE on sets of graphs (Hou et al., 2022): features of masked nodes are found again from their surroundings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.methods.base import Fitted, Method, register
from topoter.methods.graph_layers import GraphLayers, NodeFeatures
from topoter.methods.link_encoder import Dropout
from topoter.methods.randomness import seeded
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import TrainingSettings, TrainingState, train
from topoter.training.batches import ShuffledBatches
from topoter.training.callbacks import Callback
from topoter.training.state import RandomStream

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data


def scaled_cosine_error(found: Tensor, true: Tensor, power: float) -> Tensor:
    """(1 - cosine of the angle)^power, the mean over nodes: what is nearly right counts less the larger the power."""
    cosine = (functional.normalize(found, dim=1) * functional.normalize(true, dim=1)).sum(1)
    return (1 - cosine).clamp(min=0).pow(power).mean()


class GraphMAE(nn.Module):
    """Masked features, an encoder, the masked nodes' representations masked once more, and a decoder of one layer.

    Args:
        mask_rate: share of the nodes of a batch that is masked.
        replace_rate: share of these that gets the features of another node instead of the mask.
        power: of the scaled cosine error.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        *,
        mask_rate: float,
        replace_rate: float,
        power: float,
        dropout: float,
        seed: int,
    ) -> None:
        super().__init__()
        self.mask_rate, self.replace_rate, self.power = mask_rate, replace_rate, power
        self.share_dropped = dropout
        with seeded(seed):
            self.encoder = GraphLayers(in_channels, hidden_channels, num_layers, activation="prelu")
            self.between = nn.Linear(hidden_channels, hidden_channels, bias=False)
            self.decoder = GraphLayers(
                hidden_channels, hidden_channels, 1, out_channels=in_channels, activation="prelu", last=False
            )
        self.token = nn.Parameter(torch.zeros(in_channels))
        self.generator, self.dropout = torch.Generator().manual_seed(seed), Dropout(seed)

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        x = cast("Tensor", x)
        masked_x, masked = self.mask(x)
        h = self.between(self.encoder(masked_x, adjacency, self.noise)[-1])
        seen = torch.ones(len(x), 1)
        seen[masked] = 0  # the decoder must find them again from their neighbours
        found = self.decoder(h * seen, adjacency, self.noise)[-1]
        return scaled_cosine_error(found[masked], x[masked], self.power), {}

    def mask(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The features with some nodes masked, and which these are."""
        masked = torch.randperm(len(x), generator=self.generator)[: int(self.mask_rate * len(x))]
        replaced = masked[: int(self.replace_rate * len(masked))]
        others = torch.randint(len(x), (len(replaced),), generator=self.generator)
        changed = x.clone()
        changed[masked] = self.token
        changed[replaced] = x[others]
        return changed, masked

    def noise(self, h: Tensor) -> Tensor:
        return self.dropout(h, self.share_dropped)

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        """The last layer's representations [N, F]."""
        h: Tensor = self.encoder(cast("Tensor", x), adjacency)[-1]
        return h


@register("graphmae", "graph")
class GraphMAEMethod(Method):
    """GraphMAE with its own encoder; one-hot degrees where nodes have no features, as in the authors' code."""

    def __init__(
        self,
        *,
        hidden_channels: int = 512,
        num_layers: int = 2,
        mask_rate: float = 0.5,
        replace_rate: float = 0.0,
        power: float = 1.0,
        dropout: float = 0.2,
        epochs: int = 60,
        learning_rate: float = 1.5e-4,
        batch_size: int = 32,
        pooling: str = "mean",
    ) -> None:
        self.hidden_channels, self.num_layers = hidden_channels, num_layers
        self.masking = {"mask_rate": mask_rate, "replace_rate": replace_rate, "power": power, "dropout": dropout}
        self.batch_size, self.pooling = batch_size, pooling
        self.settings = TrainingSettings(epochs, None, learning_rate, keep=None)

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        features = NodeFeatures(graph)
        module = GraphMAE(features.width, self.hidden_channels, self.num_layers, seed=seed, **self.masking)
        streams: dict[str, RandomStream] = {"generator": module.generator, "dropout": module.dropout.generator}
        state = TrainingState.start(module, self.settings, streams)
        train(state, ShuffledBatches(features.first, self.batch_size, module.generator, "cpu"), callbacks)
        module.eval()

        def embed(others: list[Data]) -> np.ndarray:
            return features(others).embed(module.encode, self.batch_size, self.pooling).numpy()

        return Fitted(embedding=embed, history=state.history)
