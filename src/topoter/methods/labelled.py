"""Training with labels: how the semi-supervised systems learn, and stop, by training and validation labels.

They get the graph with `y` [N], which is `UNKNOWN_LABEL` for every node that is neither in `train_mask` nor in
`val_mask`, and answer with classes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.errors import UsageError
from topoter.methods.base import Fitted
from topoter.methods.link_encoder import Dropout, NoisyFeatures
from topoter.methods.pretrained import Trained
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import EpochRecord, Keep, TrainingState, train
from topoter.training.batches import whole_graph
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data

Noise = Callable[[Tensor], Tensor]
LOSS, ACCURACY = "validation loss", "validation accuracy"


class Network(nn.Module):
    """From features and a graph to the logits of classes."""

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise) -> Tensor:
        """Logits [N, classes]; `noise` is dropout in training, and nothing after it."""
        raise NotImplementedError

    def decayed(self) -> list[nn.Parameter]:
        """The weights that weight decay is for."""
        return list(self.parameters())


class LabelledModule(nn.Module):
    """A network and its cross entropy on the labels of some nodes."""

    def __init__(self, network: Network, seed: int, feature_dropout: float, dropout: float) -> None:
        super().__init__()
        self.network = network
        self.feature_dropout, self.dropout = feature_dropout, dropout
        self.noise = Dropout(seed)

    def forward(self, x: NoisyFeatures, adjacency: Adjacency, nodes: Tensor, y: Tensor) -> Loss:
        dropped = x.drop(self.noise, self.feature_dropout)
        logits = self.network(dropped, adjacency, lambda values: self.noise(values, self.dropout))
        return functional.cross_entropy(logits[nodes], y), {}

    @torch.no_grad()
    def logits(self, x: Features, adjacency: Adjacency) -> Tensor:
        self.eval()
        found: Tensor = self.network(x, adjacency, lambda values: values)
        return found


class ValidationLabels(Callback):
    """Measures loss and accuracy on the validation nodes after every epoch."""

    def __init__(self, module: LabelledModule, x: Features, adjacency: Adjacency, nodes: Tensor, y: Tensor) -> None:
        self.module, self.graph, self.nodes, self.y = module, (x, adjacency), nodes, y

    def measure(self, state: TrainingState, record: EpochRecord) -> dict[str, float]:
        logits = self.module.logits(*self.graph)[self.nodes]
        right = (logits.argmax(1) == self.y).float().mean()
        return {LOSS: float(functional.cross_entropy(logits, self.y)), ACCURACY: 100 * float(right)}


@dataclass(kw_only=True)
class Labelled(Trained):
    """A method that trains a `Network` with labels; a subclass says which.

    Args:
        patience: epochs without a lower loss on validation nodes; the weights of the lowest are kept.
        weight_decay: of the weights that the network names.
        feature_dropout, dropout: of the features' entries, and inside the network.
    """

    patience: int | None = 100
    learning_rate: float = 1e-2
    weight_decay: float = 5e-4
    feature_dropout: float = 0.5
    dropout: float = 0.5

    needs_labels = True
    keep = Keep(LOSS, weights="after")

    def network(self, in_channels: int, classes: int, adjacency: Adjacency, generator: torch.Generator) -> Network:
        raise NotImplementedError

    def optimizer(self, network: Network) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameter_groups(network), lr=self.learning_rate)

    def callbacks(self) -> list[Callback]:
        """Those that the method itself needs, after the user's."""
        return []

    def parameter_groups(self, network: Network) -> list[dict[str, object]]:
        decayed = network.decayed()
        chosen = {id(parameter) for parameter in decayed}
        others = [parameter for parameter in network.parameters() if id(parameter) not in chosen]
        groups: list[dict[str, object]] = [{"params": decayed, "weight_decay": self.weight_decay}]
        return groups + ([{"params": others, "weight_decay": 0.0}] if others else [])

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        for name in ("y", "train_mask", "val_mask"):
            if graph.get(name) is None:
                raise UsageError(f"The method learns from labels, and the graph has no {name}.")
        x, adjacency = whole_graph(graph, self.feature_scaling)[0]
        train_nodes, val_nodes = (graph[name].nonzero().view(-1) for name in ("train_mask", "val_mask"))
        classes = int(graph.y[torch.cat([train_nodes, val_nodes])].max()) + 1
        network = self.network(x.shape[1], classes, adjacency, torch.Generator().manual_seed(seed))
        module = LabelledModule(network, seed, self.feature_dropout, self.dropout)
        streams = {"noise": module.noise.generator}
        state = TrainingState(module, self.settings, streams, self.optimizer(network))
        validation = ValidationLabels(module, x, adjacency, val_nodes, graph.y[val_nodes])
        batch = (NoisyFeatures(x), adjacency, train_nodes, graph.y[train_nodes])
        train(state, [batch], [*callbacks, *self.callbacks(), validation])

        def embed(other: Data) -> np.ndarray:
            return module.logits(*whole_graph(other, self.feature_scaling)[0]).numpy()

        def predict(other: Data) -> np.ndarray:
            return embed(other).argmax(1)

        return Fitted(embedding=embed, classes=predict, history=state.history, best_epoch=state.best_epoch or None)
