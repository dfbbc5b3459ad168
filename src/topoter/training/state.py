"""Everything the next epoch depends on: weights, optimizer, random generators, history, and the best weights so far."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from topoter.errors import DataError, TopoterError, invalid_parameter, whole_number

RandomStream = torch.Generator | np.random.Generator


class Interrupted(TopoterError):
    """Training was asked to stop before it was done; its state is complete and can go on."""

    exit_code = 130


@dataclass(frozen=True)
class Keep:
    """Which weights a training leaves behind: those of the epoch that was best by a metric.

    Args:
        metric: "loss", or a name that a callback measures.
        highest: whether more is better.
        weights: those "before" the epoch's steps, on which a single step measured its loss, or those "after" them;
            "auto" takes "before" if the epoch is one step, else "after": the mean loss over several steps is one along
            the way, and the weights at its end are the better ones.
    """

    metric: str = "loss"
    highest: bool = False
    weights: str = "auto"


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Args:
        epochs: the most passes over the batches.
        patience: stop after so many epochs without a better value of `keep`; `None` never stops early.
        learning_rate, weight_decay: of Adam.
        keep: which weights stay in the end; `None` leaves the last ones.
        fused: PyTorch's fused Adam, which pays where there are many small steps.
    """

    epochs: int = 200
    patience: int | None = 20
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    keep: Keep | None = field(default_factory=Keep)
    fused: bool = False

    def check(self) -> None:
        """Raise for the first value out of its range."""
        whole_number("epochs", self.epochs, 0)
        if self.patience is not None:
            whole_number("patience", self.patience, 1)
        if not within(self.learning_rate, 1e-12, 1e12):
            raise invalid_parameter("learning_rate", "TopoTER", "a positive number", self.learning_rate)
        if not within(self.weight_decay, 0, 1e12):
            raise invalid_parameter("weight_decay", "TopoTER", "0 or more", self.weight_decay)


def within(value: object, low: float, high: float) -> bool:
    """Whether a parameter is a number in a range."""
    return isinstance(value, (int, float, np.number)) and low <= float(value) <= high


@dataclass(frozen=True)
class EpochRecord:
    """What one epoch showed: the loss, and every number that an objective or a callback reports, by name.

    The paper's term reports `prior_entropy` and the accuracy of each type of change. A loss above `prior_entropy` means
    that nothing was learned yet: guessing the shares of the types does better.
    """

    epoch: int
    loss: float
    metrics: dict[str, float | None] = field(default_factory=dict)

    @property
    def prior_entropy(self) -> float:
        """The loss of guessing each type with its share; NaN where no objective predicts types from the change."""
        value = self.metrics.get("prior_entropy")
        return math.nan if value is None else value

    @property
    def accuracy(self) -> tuple[float | None, ...]:
        """How often each type was right, in the order of `EdgeChange`; None: the type did not occur."""
        return tuple(value for name, value in self.metrics.items() if name.startswith("accuracy_"))

    def value(self, metric: str) -> float | None:
        return self.loss if metric == "loss" else self.metrics.get(metric)


@dataclass
class TrainingState:
    """A training between two epochs; saved, it continues bit for bit where it was.

    Args:
        module: its call with a batch gives (loss, metrics).
        streams: every generator that training draws from, by name.
        fingerprint: what a training that goes on must agree on with the one that was stopped.
        phase: which training it is, where several follow each other.
    """

    module: nn.Module
    settings: TrainingSettings
    streams: Mapping[str, RandomStream]
    optimizer: torch.optim.Optimizer
    fingerprint: str = ""
    phase: str = "training"
    history: list[EpochRecord] = field(default_factory=list)
    best_value: float | None = None
    best_epoch: int = 0
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    stopped: bool = False

    @classmethod
    def start(cls, module: nn.Module, settings: TrainingSettings, streams: Mapping[str, RandomStream]) -> TrainingState:
        learned = [parameter for parameter in module.parameters() if parameter.requires_grad]
        # An optimizer wants something to optimise; a module without weights has nothing to train anyway.
        optimizer = torch.optim.Adam(
            learned or [torch.zeros(1, requires_grad=True)],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=settings.fused or None,
        )
        return cls(module, settings, dict(streams), optimizer)

    @property
    def waited(self) -> int:
        """Epochs since the best one."""
        return len(self.history) - self.best_epoch

    def tensors(self) -> dict[str, Tensor]:
        """The state's arrays under flat names, for a checkpoint."""
        named = {f"model.{name}": tensor for name, tensor in self.module.state_dict().items()}
        named |= {f"best.{name}": tensor for name, tensor in self.best_weights.items()}
        for number, slots in self.optimizer.state_dict()["state"].items():
            named |= {f"adam.{number}.{slot}": tensor for slot, tensor in slots.items()}
        return named | {f"random.{name}": _stream_state(stream) for name, stream in self.streams.items()}

    def scalars(self) -> dict[str, Any]:
        """The state's plain values, for a checkpoint."""
        return {
            "fingerprint": self.fingerprint,
            "phase": self.phase,
            "best_value": self.best_value,
            "best_epoch": self.best_epoch,
            "history": [asdict(record) for record in self.history],
        }

    def restore(self, tensors: dict[str, Tensor], scalars: dict[str, Any]) -> None:
        """Take over a saved state; names and shapes must be exactly those of this module."""
        try:
            self._restore(tensors, scalars)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise DataError(f"The saved training state does not fit this model ({reason}). Start anew.") from error

    def _restore(self, tensors: dict[str, Tensor], scalars: dict[str, Any]) -> None:
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}, "random": {}}
        for name, tensor in tensors.items():
            prefix, _, rest = name.partition(".")
            groups[prefix][rest] = tensor
        self.module.load_state_dict(groups["model"], strict=True)
        device = next((parameter.device for parameter in self.module.parameters()), torch.device("cpu"))
        self.best_weights = {name: tensor.to(device) for name, tensor in groups["best"].items()}
        slots: dict[int, dict[str, Tensor]] = {}
        for name, tensor in groups["adam"].items():
            number, _, slot = name.partition(".")
            slots.setdefault(int(number), {})[slot] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": slots})
        for name, stream in self.streams.items():
            _set_stream_state(stream, groups["random"][name])
        self.best_value, self.best_epoch = scalars["best_value"], int(scalars["best_epoch"])
        self.history = [EpochRecord(**record) for record in scalars["history"]]


def copy_of_weights(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def _stream_state(stream: RandomStream) -> Tensor:
    if isinstance(stream, torch.Generator):
        return stream.get_state()
    text = json.dumps(stream.bit_generator.state, default=np.ndarray.tolist)
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def _set_stream_state(stream: RandomStream, state: Tensor) -> None:
    if isinstance(stream, torch.Generator):
        stream.set_state(state)
    else:
        stream.bit_generator.state = json.loads(bytes(state.tolist()))
