"""The one training loop: step, record, keep the best weights; everything else is a callback.

It knows nothing of graphs, tasks or datasets. A batch is whatever the module's call takes: a whole graph, many small
graphs or a piece of a large one, and the module answers with (loss, metrics). TopoTER, GAE, DGI, InfoGraph and the
training of links all run here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import length_hint
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from topoter.errors import TopoterError
from topoter.kernels import buffers
from topoter.pretext.objectives import Metrics, Tally
from topoter.training.callbacks import Callback, EarlyStop
from topoter.training.distributed import current_group
from topoter.training.state import EpochRecord, Interrupted, TrainingState, copy_of_weights


def train(state: TrainingState, batches: Iterable[Sequence[Any]], callbacks: Sequence[Callback] = ()) -> None:
    """Train `state.module` in place and leave it with the weights that `settings.keep` asks for.

    Args:
        batches: iterated once per epoch; each is what the module's call takes.
        callbacks: see `topoter.training.callbacks`; early stop by `settings.patience` is one of them.
    """
    settings, module = state.settings, state.module
    settings.check()
    callbacks = [*callbacks, EarlyStop(settings.patience)]
    called = current_group().parallel(module)
    try:
        for callback in callbacks:
            callback.on_start(state)
        while len(state.history) < settings.epochs and not state.stopped:
            module.train()
            before = copy_of_weights(module) if settings.keep and settings.keep.weights != "after" else {}
            record, steps = _epoch(state, called, batches, callbacks)
            for callback in callbacks:
                record.metrics.update(callback.measure(state, record))
            state.history.append(record)
            _keep_best(state, record, before, steps)
            for callback in callbacks:
                callback.on_epoch(state, record)
    except Interrupted:
        for callback in callbacks:
            callback.on_interrupt(state)
        raise
    finally:
        buffers.release()
        for callback in callbacks:
            callback.close()
    if state.best_weights:
        module.load_state_dict(state.best_weights)
    for callback in callbacks:
        callback.on_end(state)


def _epoch(
    state: TrainingState, module: torch.nn.Module, batches: Iterable[Sequence[Any]], callbacks: Sequence[Callback]
) -> tuple[EpochRecord, int]:
    """One pass over the batches, and how many steps it took; of several processes, each over its own."""
    optimizer = state.optimizer
    bare = module.module if isinstance(module, DistributedDataParallel) else module
    weight_of = getattr(bare, "batch_weight", None)
    epoch = len(state.history) + 1
    mean, total_loss, total_weight, steps = _Mean(), 0.0, 0.0, 0
    known = length_hint(batches) or None
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        loss, metrics = module(*batch)
        loss.backward()
        optimizer.step()
        weight = weight_of(*batch) if callable(weight_of) else 1
        total_loss += loss.item() * weight
        total_weight += weight
        mean.add(metrics, weight)
        steps += 1
        for callback in callbacks:
            callback.on_step(state, steps, known)
    total_loss, total_weight = current_group().total(total_loss, total_weight)
    if not total_weight:
        raise TopoterError("There is no batch to train on: pass a list, or an iterable that can be read again.")
    loss_of_epoch = total_loss / total_weight
    if not math.isfinite(loss_of_epoch):
        raise TopoterError(
            f"The training loss became {loss_of_epoch} in epoch {epoch}. "
            f"Lower the learning rate (it is {state.settings.learning_rate}) or scale the features."
        )
    return EpochRecord(epoch, loss_of_epoch, mean.values()), steps


def _keep_best(state: TrainingState, record: EpochRecord, before: dict[str, torch.Tensor], steps: int) -> None:
    keep = state.settings.keep
    value = record.value(keep.metric) if keep else None
    if keep is None or value is None or math.isnan(value):
        return
    best = state.best_value
    if best is not None and (value <= best if keep.highest else value >= best):
        return
    use_before = keep.weights == "before" or (keep.weights == "auto" and steps == 1)
    state.best_value, state.best_epoch = value, record.epoch
    state.best_weights = before if use_before else copy_of_weights(state.module)


class _Mean:
    """Metrics of an epoch: means over its batches by their weights, tallies by their counts."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self._tallies: dict[str, Tally] = {}

    def add(self, metrics: Metrics, weight: float) -> None:
        for name, value in metrics.items():
            if isinstance(value, Tally):
                self._tallies[name] = self._tallies[name] + value if name in self._tallies else value
            else:
                number = value.item() if isinstance(value, torch.Tensor) else value
                self._sums[name] = self._sums.get(name, 0.0) + number * weight
                self._weights[name] = self._weights.get(name, 0.0) + weight

    def values(self) -> dict[str, float | None]:
        group = current_group()
        for name in self._sums:
            self._sums[name], self._weights[name] = group.total(self._sums[name], self._weights[name])
        for name, tally in self._tallies.items():
            self._tallies[name] = Tally(group.total_of(tally.counts), tally.read)
        means: dict[str, float | None] = {name: total / self._weights[name] for name, total in self._sums.items()}
        return means | {name: tally.value for name, tally in self._tallies.items()}
