"""The pre-training loop: transform, encode twice, decode, step; early stop, best weights, exact resume.

It knows nothing of tasks or datasets: it takes an iterable of (x, adjacency) batches and does not ask whether a
batch is a whole graph, many small graphs or a piece of a large one. In place of a graph to transform a batch may hold
a transition, a graph that was seen at two times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from torch import Tensor

from topoter.adjacency import Adjacency
from topoter.decoder import entropy_of_types
from topoter.encoders import Features
from topoter.errors import DataError, TopoterError, invalid_parameter, unknown_name, whole_number
from topoter.kernels import buffers
from topoter.model import TopoTERModel
from topoter.transformation import SAMPLERS, TopologyTransformation, Transition, check_transformable

Batch = tuple[Features, Adjacency]
TransitionBatch = tuple[Features, Transition]


@dataclass(frozen=True)
class TrainingSettings:
    """How to pre-train.

    Args:
        perturbation_rate: r, the share of pairs that is flipped.
        sampler: which form of transformation, a name in `SAMPLERS`.
        epochs: the most passes over the batches.
        patience: stop after so many epochs without a lower training loss; `None` never stops early.
        learning_rate, weight_decay: of Adam.
    """

    perturbation_rate: float = 0.7
    sampler: str = "exact"
    epochs: int = 200
    patience: int | None = 20
    learning_rate: float = 1e-3
    weight_decay: float = 0.0

    def check(self) -> None:
        """Raise for the first value out of its range."""
        if not _within(self.perturbation_rate, 0, 1):
            raise invalid_parameter("perturbation_rate", "TopoTER", "between 0 and 1", self.perturbation_rate)
        if self.sampler not in SAMPLERS:
            raise unknown_name("sampler", self.sampler, SAMPLERS)
        whole_number("epochs", self.epochs, 0)
        if self.patience is not None:
            whole_number("patience", self.patience, 1)
        if not _within(self.learning_rate, 1e-12, 1e12):
            raise invalid_parameter("learning_rate", "TopoTER", "a positive number", self.learning_rate)
        if not _within(self.weight_decay, 0, 1e12):
            raise invalid_parameter("weight_decay", "TopoTER", "0 or more", self.weight_decay)


def _within(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float, np.number)) and low <= float(value) <= high


@dataclass(frozen=True)
class EpochRecord:
    """What one epoch showed: the loss beside the entropy of the type prior, and how often each type was right.

    A loss above `prior_entropy` means that nothing was learned yet: guessing the shares of the types does better.
    """

    epoch: int
    loss: float
    prior_entropy: float
    accuracy: tuple[float | None, float | None, float | None, float | None]  # None: the type did not occur


class Interrupted(TopoterError):
    """Training was asked to stop before it was done; its state is complete and can go on."""

    exit_code = 130


@dataclass
class TrainingState:
    """Everything the next epoch depends on; saved, it continues bit for bit where it was."""

    model: TopoTERModel
    optimizer: torch.optim.Adam
    generator: torch.Generator
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    best_loss: float = math.inf
    waited: int = 0
    history: list[EpochRecord] = field(default_factory=list)

    @classmethod
    def start(cls, model: TopoTERModel, settings: TrainingSettings, generator: torch.Generator) -> TrainingState:
        optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
        return cls(model, optimizer, generator)

    def tensors(self) -> dict[str, Tensor]:
        """The state's arrays under flat names, for a checkpoint."""
        named = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        named |= {f"best.{name}": tensor for name, tensor in self.best_weights.items()}
        for number, slots in self.optimizer.state_dict()["state"].items():
            named |= {f"adam.{number}.{slot}": tensor for slot, tensor in slots.items()}
        named["generator"] = self.generator.get_state()
        return named

    def scalars(self) -> dict[str, object]:
        """The state's plain values, for a checkpoint."""
        return {
            "best_loss": self.best_loss if math.isfinite(self.best_loss) else None,
            "waited": self.waited,
            "history": [asdict(record) for record in self.history],
        }

    def restore(self, tensors: dict[str, Tensor], scalars: dict) -> None:
        """Take over a saved state; names and shapes must be exactly those of this model."""
        try:
            self._restore(tensors, scalars)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise DataError(f"The saved training state does not fit this model ({reason}). Start anew.") from error

    def _restore(self, tensors: dict[str, Tensor], scalars: dict) -> None:
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}}
        for name, tensor in tensors.items():
            prefix, _, rest = name.partition(".")
            if prefix in groups:
                groups[prefix][rest] = tensor
        self.model.load_state_dict(groups["model"], strict=True)
        device = next(self.model.parameters()).device
        self.best_weights = {name: tensor.to(device) for name, tensor in groups["best"].items()}
        slots: dict[int, dict[str, Tensor]] = {}
        for name, tensor in groups["adam"].items():
            number, _, slot = name.partition(".")
            slots.setdefault(int(number), {})[slot] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": slots})
        self.generator.set_state(tensors["generator"])
        self.best_loss = math.inf if scalars["best_loss"] is None else scalars["best_loss"]
        self.waited = scalars["waited"]
        self.history = [
            EpochRecord(**{**record, "accuracy": tuple(record["accuracy"])}) for record in scalars["history"]
        ]


def pretrain(
    state: TrainingState,
    batches: Iterable[Batch | TransitionBatch],
    settings: TrainingSettings,
    *,
    on_epoch: Callable[[EpochRecord], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    save: Callable[[TrainingState], None] | None = None,
    save_seconds: float = 5.0,
) -> None:
    """Train `state.model` in place and leave it with the weights of the lowest training loss.

    Args:
        batches: iterated once per epoch.
        on_epoch: called after every epoch, for progress.
        should_stop: asked after every epoch; when true the state is saved and `Interrupted` raised.
        save: called with a complete state at least every `save_seconds`, and before stopping.
    """
    settings.check()
    model, optimizer = state.model, state.optimizer
    saved_at = time.monotonic()
    model.train()
    while len(state.history) < settings.epochs and not _out_of_patience(state, settings):
        weights_before = _copy_of_weights(model)
        total_loss, confusion, num_pairs, steps = 0.0, torch.zeros(4, 4, dtype=torch.int64), 0, 0
        for x, graph in batches:
            transformation = _transform(graph, settings, state.generator)
            optimizer.zero_grad(set_to_none=True)
            loss, counts = model.loss(x, transformation)
            loss.backward()
            optimizer.step()
            weight = transformation.pairs.size(1)
            total_loss += loss.item() * weight
            num_pairs += weight
            steps += 1
            confusion += counts.cpu()
        if num_pairs == 0:
            raise TopoterError("There is no batch to train on: pass a list, or an iterable that can be read again.")
        record = _record(len(state.history) + 1, total_loss / num_pairs, confusion)
        if not math.isfinite(record.loss):
            raise TopoterError(
                f"The training loss became {record.loss} in epoch {record.epoch}. "
                f"Lower the learning rate (it is {settings.learning_rate}) or scale the features."
            )
        state.history.append(record)
        if record.loss < state.best_loss:
            # The loss was measured on the weights before this epoch's step: those are the ones to keep. Over several
            # steps it is a mean along the way, and the weights at its end are the better ones.
            best = weights_before if steps == 1 else _copy_of_weights(model)
            state.best_loss, state.best_weights, state.waited = record.loss, best, 0
        else:
            state.waited += 1
        if on_epoch is not None:
            on_epoch(record)
        stop = should_stop is not None and should_stop()
        if save is not None and (stop or time.monotonic() - saved_at >= save_seconds):
            save(state)
            saved_at = time.monotonic()
        if stop:
            raise Interrupted(f"Stopped after epoch {record.epoch} of {settings.epochs}.")
    buffers.release()
    if state.best_weights:
        model.load_state_dict(state.best_weights)


def _transform(
    graph: Adjacency | Transition, settings: TrainingSettings, generator: torch.Generator
) -> TopologyTransformation:
    """What was observed, or a transformation drawn for this step."""
    if isinstance(graph, Transition):
        return graph.sample(generator)
    check_transformable(graph, settings.perturbation_rate)
    return SAMPLERS[settings.sampler](graph, settings.perturbation_rate, generator)


def _copy_of_weights(model: TopoTERModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def _out_of_patience(state: TrainingState, settings: TrainingSettings) -> bool:
    return settings.patience is not None and state.waited >= settings.patience


def _record(epoch: int, loss: float, confusion: Tensor) -> EpochRecord:
    counts = confusion.sum(1)
    right = confusion.diagonal()
    accuracy = tuple(int(r) / int(c) if int(c) else None for r, c in zip(right, counts))
    return EpochRecord(epoch, loss, entropy_of_types(counts), accuracy)  # type: ignore[arg-type]
