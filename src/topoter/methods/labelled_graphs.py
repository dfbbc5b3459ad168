"""Graph networks trained with the labels of training graphs: GCN, GraphSAGE, GIN-0 and GIN-eps of Xu et al. (2019).

The epoch is chosen among the training graphs; no other label is there to be seen. Graphs without `y` are those to be
predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.errors import DataError
from topoter.methods.base import UNKNOWN_LABEL, Fitted, register
from topoter.methods.graph_layers import GraphLayers, NodeFeatures
from topoter.methods.link_encoder import Dropout
from topoter.methods.pretrained import LearningRate, Trained
from topoter.methods.randomness import seeded
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.graph_sets import Batch, GraphSet, pool
from topoter.training import EpochRecord, Keep, TrainingSettings, TrainingState, train
from topoter.training.callbacks import Callback
from topoter.training.state import RandomStream

if TYPE_CHECKING:
    from torch_geometric.data import Data

HELD_OUT = 0.1  # share of the labelled graphs that chooses the epoch, where no inner folds do
VALIDATION, ACCURACY = "validation loss", "validation accuracy"


class GraphClassifier(nn.Module):
    """Layers, and a linear classifier on the pooled outputs of each, the features' included; its logits are summed.

    Args:
        pooling: from nodes to graphs; Xu et al. take sums of molecules and means of social networks.
        dropout: of each classifier's logits, as in the authors' code.
    """

    def __init__(
        self, layers: nn.Module, widths: Sequence[int], num_classes: int, *, pooling: str, dropout: float, seed: int
    ) -> None:
        super().__init__()
        self.layers, self.pooling, self.share_dropped = layers, pooling, dropout
        self.classifiers = nn.ModuleList(nn.Linear(width, num_classes) for width in widths)
        self.dropout = Dropout(seed)

    def logits(self, x: Features, adjacency: Adjacency) -> Tensor:
        """[graphs, classes]."""
        assert adjacency.ptr is not None
        total = torch.zeros(())
        for h, classifier in zip(self.outputs(x, adjacency), self.classifiers):
            scores = classifier(pool(h, adjacency.ptr, self.pooling))
            total = total + (self.dropout(scores, self.share_dropped) if self.training else scores)
        return total

    def outputs(self, x: Features, adjacency: Adjacency) -> list[Tensor]:
        """The features, and the nodes' representations after each layer."""
        return [cast("Tensor", x), *self.layers(cast("Tensor", x), adjacency)]

    def forward(self, x: Features, adjacency: Adjacency, y: Tensor) -> Loss:
        logits = self.logits(x, adjacency)
        right = (logits.argmax(1) == y).float().mean()
        return functional.cross_entropy(logits, y), {"accuracy": 100 * right}


@register("gcn", "graph", aggregation="mean", depth=1)
@register("graphsage", "graph", aggregation="max", depth=1)
@register("gin-0", "graph")
@register("gin-eps", "graph", epsilon=True)
@dataclass(kw_only=True)
class LabelledGraphs(Trained):
    """Trains a network on labelled graphs and predicts the classes of others.

    Args:
        aggregation, depth, epsilon: of `GraphLayers`.
        inner_folds: how the number of epochs is found. 0: on a tenth of the labelled graphs, kept out of the training,
            whose best epoch is kept. Else by a cross validation among the labelled graphs, whose mean accuracy by epoch
            decides; then all of them are trained on for so long. Small sets need it: a tenth of MUTAG is 17 graphs.
        patience: epochs without a lower loss on the tenth that is kept out.
        halve_every: epochs after which the learning rate is halved, again and again.
    """

    hidden_channels: int = 32
    num_layers: int = 4
    aggregation: str = "sum"
    depth: int = 2
    epsilon: bool = False
    pooling: str = "sum"
    dropout: float = 0.5
    epochs: int = 100
    patience: int | None = 50
    learning_rate: float = 1e-2
    halve_every: int = 50
    batch_size: int = 32
    inner_folds: int = 0

    needs_labels = True
    keep = Keep(VALIDATION, weights="after")

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        labelled = [number for number, one in enumerate(graph) if one.get("y") is not None]
        if not labelled:
            raise DataError("None of the graphs has a label: y must be set for those to train on.")
        classes, numbers = np.unique([int(graph[number].y) for number in labelled], return_inverse=True)
        features = NodeFeatures(graph)
        y = torch.full((len(graph),), UNKNOWN_LABEL)
        y[labelled] = torch.from_numpy(numbers.ravel())
        known = _Known(features.first, y, features.width, len(classes))
        parts = parts_of(torch.tensor(labelled), y[labelled], self.inner_folds or round(1 / HELD_OUT), seed)
        if self.inner_folds:
            module, state, accuracy = self.by_inner_folds(known, parts, seed, callbacks)
        else:
            module, state = self.learn(known, torch.cat(parts[1:]), parts[0], self.settings, seed, callbacks)
            accuracy = _HeldOut(module, known, parts[0], self.batch_size).look()[ACCURACY]

        def predict(others: list[Data]) -> np.ndarray:
            found: np.ndarray = classes[_logits(module, features(others).in_order(self.batch_size)).argmax(1)]
            return found

        best = state.best_epoch or len(state.history)
        return Fitted(classes=predict, history=state.history, best_epoch=best, validation=accuracy)

    def by_inner_folds(
        self, known: _Known, parts: list[Tensor], seed: int, callbacks: Sequence[Callback]
    ) -> tuple[GraphClassifier, TrainingState, float]:
        """A training on all labelled graphs, as long as was best on average where a part of them was kept out."""
        curves = []
        endless = replace(self.settings, patience=None, keep=None)
        for number, held_out in enumerate(parts):
            rest = torch.cat([part for other, part in enumerate(parts) if other != number])
            _, state = self.learn(known, rest, held_out, endless, seed, [])
            curves.append([record.metrics[ACCURACY] or 0.0 for record in state.history])
        mean = np.mean(curves, axis=0)
        epochs = 1 + int(mean.argmax())
        shorter = replace(endless, epochs=epochs)
        module, state = self.learn(known, torch.cat(parts), None, shorter, seed, callbacks)
        return module, state, float(mean.max())

    def learn(
        self,
        known: _Known,
        which: Tensor,
        held_out: Tensor | None,
        settings: TrainingSettings,
        seed: int,
        callbacks: Sequence[Callback],
    ) -> tuple[GraphClassifier, TrainingState]:
        """A training on some graphs, followed on those that are kept out of it."""
        generator = torch.Generator().manual_seed(seed)
        with seeded(seed):
            module = self.module(known.in_channels, known.num_classes, seed)
        streams: dict[str, RandomStream] = {"generator": generator, "dropout": module.dropout.generator}
        state = TrainingState.start(module, settings, streams)
        own: list[Callback] = [LearningRate(lambda done: 0.5 ** (done // self.halve_every))]
        if held_out is not None:
            own.append(_HeldOut(module, known, held_out, self.batch_size))
        train(state, _Labelled(known, which, self.batch_size, generator), [*own, *callbacks])
        return module, state

    def module(self, in_channels: int, num_classes: int, seed: int) -> GraphClassifier:
        """The network before its first step."""
        layers = GraphLayers(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            aggregation=self.aggregation,
            depth=self.depth,
            epsilon=self.epsilon,
        )
        widths = [in_channels, *[self.hidden_channels] * self.num_layers]
        return GraphClassifier(layers, widths, num_classes, pooling=self.pooling, dropout=self.dropout, seed=seed)

    @property
    def settings(self) -> TrainingSettings:
        return replace(super().settings, fused=True)


def parts_of(labelled: Tensor, y: Tensor, count: int, seed: int) -> list[Tensor]:
    """The labelled graphs in so many parts, each class in equal shares, at random."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(labelled.numel(), generator=generator)
    order = order[torch.argsort(y[order], stable=True)]  # class by class, then dealt out like cards
    return [labelled[order[number::count]] for number in range(min(count, labelled.numel()))]


@dataclass(frozen=True)
class _Known:
    """What is known of a set: its graphs, their classes [G] as far as they may be seen, and how wide all is."""

    graphs: GraphSet
    y: Tensor
    in_channels: int
    num_classes: int


@torch.no_grad()
def _logits(module: GraphClassifier, batches: Iterable[Batch]) -> Tensor:
    """[graphs, classes], in evaluation mode."""
    module.eval()
    return torch.cat([module.logits(*batch) for batch in batches])


class _HeldOut(Callback):
    """Measures loss and accuracy on graphs that are kept out of the training; their batches are made once."""

    def __init__(self, module: GraphClassifier, known: _Known, which: Tensor, batch_size: int) -> None:
        self.module, self.y = module, known.y[which]
        self.batches = [known.graphs.batch(part) for part in which.split(batch_size)]

    def look(self) -> dict[str, float]:
        logits = _logits(self.module, self.batches)
        right = (logits.argmax(1) == self.y).float().mean()
        return {VALIDATION: float(functional.cross_entropy(logits, self.y)), ACCURACY: 100 * float(right)}

    def measure(self, state: TrainingState, record: EpochRecord) -> dict[str, float]:
        return self.look()


class _Labelled:
    """Batches (x, adjacency, y) of the graphs to train on, in an order that is drawn anew for every pass."""

    def __init__(self, known: _Known, which: Tensor, batch_size: int, generator: torch.Generator) -> None:
        self.known, self.which = known, which
        self.batch_size, self.generator = batch_size, generator

    def __iter__(self) -> Iterator[tuple[Features, Adjacency, Tensor]]:
        order = self.which[torch.randperm(self.which.numel(), generator=self.generator)]
        for part in order.split(self.batch_size):
            x, adjacency = self.known.graphs.batch(part)
            yield x, adjacency, self.known.y[part]
