"""What may happen around the epochs of a training: progress, validation, saving, early stop, stopping on a signal.

A callback of your own is a subclass of `Callback` with the hooks it needs, or any function of an `EpochRecord`:

    model.fit(graph, callbacks=[lambda record: print(record.epoch, record.loss)])
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import torch
from torch import Tensor

from topoter.errors import UsageError
from topoter.training.checkpoint import load_checkpoint, save_checkpoint
from topoter.training.distributed import current_group
from topoter.training.state import EpochRecord, Interrupted, TrainingState

_logger = logging.getLogger(__name__)


class Callback:
    """The hooks, in the order in which they are called; each does nothing until a subclass says otherwise."""

    def on_start(self, state: TrainingState) -> None:
        """Before the first epoch, or before the first of those that are left."""

    def on_step(self, state: TrainingState, done: int, total: int | None) -> None:
        """After a step within an epoch; of how many, where the batches can be counted."""

    def measure(self, state: TrainingState, record: EpochRecord) -> Mapping[str, float]:
        """Further metrics of the epoch that just ended, before it is decided which weights are the best."""
        return {}

    def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
        """After an epoch; the state is complete. `state.stopped = True` ends the training."""

    def on_progress(self, done: int, total: int, text: str) -> None:
        """So many steps are done of work that has no epochs, such as drawing random walks."""

    def on_interrupt(self, state: TrainingState) -> None:
        """The training was asked to stop before it was done (`Interrupted`)."""

    def close(self) -> None:
        """The last epoch is over, or something went wrong: give back what `on_start` took."""

    def on_end(self, state: TrainingState) -> None:
        """The training is done, and the module holds the weights to keep."""


class OnEpoch(Callback):
    """A plain function as a callback."""

    def __init__(self, function: Callable[[EpochRecord], Any]) -> None:
        self.function = function

    def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
        self.function(record)


def as_callbacks(callbacks: Callback | Callable[[EpochRecord], Any] | Iterable[Any] | None) -> list[Callback]:
    """Callbacks from whatever a user passes: none, one, or several; functions among them."""
    if callbacks is None:
        return []
    several = callbacks if isinstance(callbacks, Iterable) else [callbacks]
    found = []
    for item in several:
        if not isinstance(item, Callback) and not callable(item):
            raise UsageError(f"A callback must be a topoter Callback or a function of an epoch's record. Got {item!r}.")
        found.append(item if isinstance(item, Callback) else OnEpoch(item))
    return found


class EarlyStop(Callback):
    """Ends a training after `patience` epochs without a better value of what decides the weights to keep."""

    def __init__(self, patience: int | None) -> None:
        self.patience = patience

    def on_start(self, state: TrainingState) -> None:
        if state.history:  # a resumed training may be out of patience already
            self.on_epoch(state, state.history[-1])

    def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
        keep = state.settings.keep
        if self.patience is None or keep is None or record.value(keep.metric) is None:
            return
        if state.waited >= self.patience:
            state.stopped = True


class Validate(Callback):
    """Measures the module every few epochs, and after the last one.

    Args:
        metric: the name of what is measured.
        measure: called without arguments.
        every: epochs between two looks.
    """

    def __init__(self, metric: str, measure: Callable[[], float], every: int = 1) -> None:
        self.metric, self._measure, self.every = metric, measure, every

    def measure(self, state: TrainingState, record: EpochRecord) -> Mapping[str, float]:
        if record.epoch % self.every and record.epoch != state.settings.epochs:
            return {}
        return {self.metric: self._measure()}


class Checkpoint(Callback):
    """Keeps the state in a file at the start, every few seconds and at the end, and goes on from it.

    Args:
        path: of the file; it is removed by `remove`, once what was trained is saved elsewhere.
        seconds: between two savings.
        resume: go on from the file instead of starting anew.
    """

    def __init__(self, path: str | Path, seconds: float = 5.0, resume: bool = False) -> None:
        self.path, self.seconds, self.resume = Path(path), seconds, resume
        self._saved_at = 0.0
        self.on_disk = resume  # whether the file holds a state of this training
        if resume and not self.path.is_file():
            raise UsageError(f"There is nothing to resume: {self.path} does not exist. Run without --resume.")

    def on_start(self, state: TrainingState) -> None:
        self._saved_at = time.monotonic()
        if not self.resume:
            self.save(state)  # in the place of one that an earlier fit may have left
            return
        tensors, content = load_checkpoint(self.path, "training")
        if content.get("fingerprint") != state.fingerprint:
            raise UsageError(
                f"{self.path} was made with another graph or other options. "
                "Repeat the options of the interrupted command, or run without --resume to start anew."
            )
        if content.get("phase", state.phase) != state.phase:
            return  # stopped in a later training: this one is made again, and the file waits for that one
        state.restore(_own_streams(tensors, content, state), content)
        self.resume = False
        _logger.info("Going on after epoch %d.", len(state.history))

    def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
        if current_group().any(time.monotonic() - self._saved_at >= self.seconds):
            self.save(state)

    def on_interrupt(self, state: TrainingState) -> None:
        self.save(state)

    def on_end(self, state: TrainingState) -> None:
        self.save(state)  # what follows a training takes time, too

    def save(self, state: TrainingState) -> None:
        if self.resume:
            return
        group, tensors = current_group(), state.tensors()
        if group.size > 1:  # every process draws its own random numbers
            for name in state.streams:
                for rank, stream in enumerate(group.gather(tensors[f"random.{name}"])):
                    tensors[f"random.{name}" if rank == 0 else f"random.{name}@{rank}"] = stream
        if group.writes:
            save_checkpoint(self.path, "training", tensors, {**state.scalars(), "processes": group.size})
        self.on_disk = True
        self._saved_at = time.monotonic()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _own_streams(tensors: dict[str, Tensor], content: Mapping[str, Any], state: TrainingState) -> dict[str, Tensor]:
    """The saved state as this process goes on with it: with its own random numbers, or new ones if it was not there."""
    group, saved = current_group(), content.get("processes", 1)
    if saved != group.size:
        _logger.info("Saved by %d processes, going on with %d: other random numbers from here on.", saved, group.size)
    own = {name: tensor for name, tensor in tensors.items() if "@" not in name}
    for name, stream in state.streams.items():
        if group.rank == 0 or name == "parts":  # the parts are the same for all
            continue
        if saved == group.size:
            own[f"random.{name}"] = tensors[f"random.{name}@{group.rank}"]
        elif isinstance(stream, torch.Generator):
            epoch = len(content["history"])
            own[f"random.{name}"] = torch.Generator().manual_seed(7919 * epoch + group.rank).get_state()
    return own


class StopOnSignal(Callback):
    """Ctrl-C, or SIGTERM, ends the training after the epoch that is going on; a second one ends it at once.

    Args:
        at_once: is called for the second one, and does not return. Without it KeyboardInterrupt is raised.
    """

    def __init__(self, at_once: Callable[[], NoReturn] | None = None) -> None:
        self.at_once = at_once
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}

    def on_start(self, state: TrainingState) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._ask)

    def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
        if current_group().any(self.asked):
            raise Interrupted(f"Stopped after epoch {record.epoch} of {state.settings.epochs}.")

    def close(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked and self.at_once:
            self.at_once()
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
