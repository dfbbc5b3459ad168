"""What peers without labels have in common: a module is trained on a graph or a set of them, then encodes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from topoter.errors import invalid_parameter
from topoter.methods.base import Fitted, Method
from topoter.methods.substructures import read
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.graph_sets import GraphSet
from topoter.training import EpochRecord, Keep, TrainingSettings, TrainingState, train
from topoter.training.batches import ShuffledBatches, whole_graph
from topoter.training.callbacks import Callback
from topoter.training.state import RandomStream

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data


@dataclass(kw_only=True)
class Trained(Method):
    """A method whose parameters are its fields; these are the ones of its training (see `TrainingSettings`)."""

    epochs: int = 200
    patience: int | None = None
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    feature_scaling: str = "sum"

    keep: ClassVar[Keep | None] = None  # which weights stay; None leaves the last ones
    shares: ClassVar[Sequence[str]] = ()  # the parameters that are at least 0 and less than 1, or pairs of such

    def __post_init__(self) -> None:
        for name in self.shares:
            value = getattr(self, name)
            for share in value if isinstance(value, Sequence) else [value]:
                if not 0 <= share < 1:
                    raise invalid_parameter(name, type(self).__name__, "at least 0 and less than 1", value)

    @property
    def settings(self) -> TrainingSettings:
        return TrainingSettings(self.epochs, self.patience, self.learning_rate, self.weight_decay, self.keep)


class PretextModule(nn.Module):
    """A module whose call is the loss of a pretext task, and whose `encode` is what it is trained for."""

    encoder: Any  # the module that is trained

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    @property
    def streams(self) -> Mapping[str, RandomStream]:
        """Every generator that training draws from."""
        return {"generator": self.generator}

    def prepare(self, x: Features, adjacency: Adjacency) -> tuple[Any, ...]:
        """A graph as `forward` takes it, where it takes more than the graph itself."""
        return x, adjacency

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        raise NotImplementedError

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        """The embeddings [N, F]: what its `encoder` gives, unless a subclass says otherwise."""
        h: Tensor = self.encoder(x, adjacency)
        return h


@dataclass(kw_only=True)
class Pretrained(Trained):
    """A method that trains a `PretextModule` on one graph; a subclass says which."""

    largest_gradient: ClassVar[float | None] = None  # the length that gradients are cut to before a step

    def module(self, in_channels: int, seed: int) -> PretextModule:
        raise NotImplementedError

    def callbacks(self, module: Any) -> list[Callback]:
        """Those that the method itself needs, after the user's."""
        return []

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        batch = whole_graph(graph, self.feature_scaling)[0]
        module = self.module(batch[0].shape[1], seed)
        state = TrainingState.start(module, self.settings, module.streams)
        limit = self.largest_gradient

        def cut(*_: Any) -> None:
            if limit is not None:
                nn.utils.clip_grad_norm_(module.parameters(), limit)

        state.optimizer.register_step_pre_hook(cut)
        train(state, [module.prepare(*batch)], [*callbacks, *self.callbacks(module)])

        @torch.no_grad()
        def embed(other: Data) -> np.ndarray:
            module.eval()
            return module.encode(*whole_graph(other, self.feature_scaling)[0]).numpy()

        return Fitted(embedding=embed, history=state.history, best_epoch=state.best_epoch or None)


@dataclass(kw_only=True)
class PretrainedOnSet(Trained):
    """A method that trains a `PretextModule` on a set of graphs, and pools what it makes of their nodes."""

    hidden_channels: int = 32
    num_layers: int = 3
    epochs: int = 20
    batch_size: int = 64
    pooling: str = "sum"

    batches: ClassVar[type[ShuffledBatches]] = ShuffledBatches

    @property
    def settings(self) -> TrainingSettings:
        return replace(super().settings, fused=True)  # there are many small steps

    def module(self, in_channels: int, seed: int) -> PretextModule:
        raise NotImplementedError

    def reader(self, graphs: list[Data]) -> tuple[Callable[[list[Data]], GraphSet], GraphSet, int]:
        """How sets of graphs are read, the set read so, and its number of features."""
        graph_set = read(graphs)
        return read, graph_set, graph_set.x.size(1)

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        read_like, graphs, in_channels = self.reader(graph)
        module = self.module(in_channels, seed)
        state = TrainingState.start(module, self.settings, module.streams)
        train(state, self.batches(graphs, self.batch_size, module.generator, "cpu"), callbacks)
        module.eval()

        def embed(others: list[Data]) -> np.ndarray:
            return read_like(others).embed(module.encode, self.batch_size, self.pooling).numpy()

        return Fitted(embedding=embed, history=state.history)


class LearningRate(Callback):
    """Multiplies the learning rate by what a schedule says of the epochs that are done."""

    def __init__(self, schedule: Callable[[int], float]) -> None:
        self.schedule = schedule

    def on_start(self, state: TrainingState) -> None:
        for group in state.optimizer.param_groups:
            group["lr"] = state.settings.learning_rate * self.schedule(len(state.history))

    def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
        self.on_start(state)


def cosine(epochs: int, warm_up: int = 0) -> Callable[[int], float]:
    """From 0 up to 1 in `warm_up` epochs, then down to 0 as a cosine falls."""

    def factor(done: int) -> float:
        if done < warm_up:
            return (done + 1) / warm_up
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (done - warm_up) / max(1, epochs - warm_up))))

    return factor
