"""What peers without labels have in common: a module is trained on one graph, then encodes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from topoter.methods.base import Fitted, Method
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import EpochRecord, TrainingSettings, TrainingState, train
from topoter.training.batches import whole_graph
from topoter.training.callbacks import Callback
from topoter.training.state import RandomStream

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data


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


class Pretrained(Method):
    """A method that trains a `PretextModule`; a subclass says which.

    Its `largest_gradient` is the length that gradients are cut to before a step, if they are.
    """

    settings: TrainingSettings
    feature_scaling = "none"
    largest_gradient: float | None = None

    def module(self, in_channels: int, seed: int) -> PretextModule:
        raise NotImplementedError

    def callbacks(self, module: PretextModule) -> list[Callback]:
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
