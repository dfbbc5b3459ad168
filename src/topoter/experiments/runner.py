"""Plans runs and makes them on any `concurrent.futures.Executor` (see `engines.py`); each is kept when it is done.

The process that submits is the only one that writes: workers hand back what they made.
"""

from __future__ import annotations

import json
import os
import re
import time
import traceback
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from topoter.errors import TopoterError, unknown_name
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.engines import Engine
from topoter.experiments.experiment import Experiment, Progress
from topoter.experiments.limits import Limits, Stopped, end_idle, watch
from topoter.experiments.runs import Run, forget_peak, peak_mb, versions
from topoter.experiments.store import Record, Store, plain
from topoter.methods import build


@dataclass(frozen=True)
class Made:
    """What a worker hands back: the record, the loss of every epoch, and files to leave beside."""

    record: Record
    losses: list[float]
    left: dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """A run that could not be made.

    Args:
        message: what went wrong, for a user.
        exit_code: 2 where the call was wrong.
        trace: where it went wrong, if it is a defect of topoter and nothing a user could mend.
    """

    run: Run
    message: str
    exit_code: int = 1
    trace: str = ""


class RunFailedError(TopoterError):
    """What went wrong in the process of a run: see `Failure`."""

    def __init__(self, message: str, exit_code: int, trace: str) -> None:
        super().__init__(message)
        self.exit_code, self.trace = exit_code, trace


class Watcher:
    """Is told how runs go, and does nothing with it; the command line draws bars."""

    def progressed(self, run: Run, share: float, text: str) -> None:
        """A share between 0 and 1 of a run is done."""

    def finished(self, run: Run, seconds: float | None) -> None:
        """A run is done in so many seconds (0 if it was taken over), or (None) has failed."""

    def progress_of(self, run: Run) -> Progress:
        """What an experiment calls with the steps of a run."""
        return lambda done, steps, text: self.progressed(run, min(1.0, done / steps) if steps else 0.0, text)


def plan_all(datasets: Sequence[str] | None, methods: Sequence[str] | None, seeds: int) -> dict[str, list[Run]]:
    """The runs of all experiments by name: each has those of the datasets and methods asked for that it knows."""
    every = [experiment(name) for name in EXPERIMENTS]
    known = {
        "dataset": {dataset for chosen in every for dataset in chosen.datasets},
        "method": {row.method for chosen in every for row in chosen.rows},
    }
    for kind, asked in (("dataset", datasets), ("method", methods)):
        for name in asked or ():
            if name not in known[kind]:
                raise unknown_name(kind, name, known[kind])
    plans = {}
    for chosen in every:
        of_datasets = [name for name in chosen.datasets if datasets is None or name in datasets]
        own = dict.fromkeys(row.method for row in chosen.rows)
        of_methods = [name for name in own if methods is None or name in methods]
        if of_datasets and of_methods:
            plans[chosen.name] = chosen.plan(of_datasets, of_methods, seeds)
    return plans


def limited(runs: Sequence[Run], hours: float | None, memory_gb: float | None) -> list[Run]:
    """The runs with these limits in place of those of their recipes, where they are given."""
    if hours is None and memory_gb is None:
        return list(runs)
    changed = []
    for run in runs:
        own = run.limits or Limits()
        limits = Limits(own.hours if hours is None else hours, own.memory_gb if memory_gb is None else memory_gb)
        limits.check()
        changed.append(replace(run, limits=limits))
    return changed


# ---- one run, in whatever process ------------------------------------------------------------------------------------

_data: dict[Any, Any] = {}  # of the latest dataset: runs come dataset by dataset
_refused: dict[Any, TopoterError] = {}  # data that are not there are not looked for by every run


def make(run: Run, data_root: Path | None, progress: Progress | None = None) -> Made:
    """Make one run on the data of its dataset; one with limits in another process, all seeds of a row in one."""
    if run.limits is None:
        return make_here(run, data_root, progress)
    made_with, told = versions(), progress or (lambda done, steps, text: None)
    asked = {"run": run, "data_root": None if data_root is None else str(data_root), "parent": os.getpid()}
    found = watch(
        "topoter.experiments.child", run.key[:-1], msgspec.json.encode(asked), run.limits, lambda step: told(*step)
    )
    stopped, answer = found.stopped, found.answer or {}
    if "made" in answer:
        return msgspec.convert(answer["made"], Made)
    if "failed" in answer:
        raise RunFailedError(*answer["failed"])
    if "out_of_memory" in answer:
        stopped = Stopped("memory", run.limits.memory_gb or 0)
    if stopped is None:
        raise TopoterError(_how_a_process_ended(found.code))
    took = {"seconds": found.seconds, "cpu_seconds": 0.0, "peak_mb": found.peak_mb}
    method = build(run.recipe.method, experiment(run.recipe.experiment).task, run.parameters)
    details = {"trained_with": "labels"} if getattr(method, "needs_labels", False) else {}  # part of its name in tables
    return Made(_record(run, scores={}, details=details, versions=made_with, stopped=stopped, **took), [], {})


def make_here(run: Run, data_root: Path | None, progress: Progress | None = None) -> Made:
    """Make one run in this process, whatever its limits."""
    chosen = experiment(run.recipe.experiment)
    return execute(chosen, run, _load(chosen, run.recipe.dataset, data_root), progress)


def execute(chosen: Experiment, run: Run, data: Any, progress: Progress | None = None) -> Made:
    """Make one run on these data, and note what it took."""
    made_with = versions()  # before a long run: the code's state may change during it
    forget_peak()
    start, cpu = time.perf_counter(), time.process_time()
    measured = chosen.measure(run, data, progress)
    record = _record(
        run,
        scores=measured.scores,
        details=measured.details,
        seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time() - cpu,
        peak_mb=peak_mb(),
        versions=made_with,
    )
    # As it will be read again: what cannot be kept is found out now.
    checked = msgspec.json.decode(msgspec.json.encode(record, enc_hook=plain), type=Record)
    return Made(checked, [float(loss) for loss in measured.losses], measured.left)


def _record(run: Run, **found: Any) -> Record:
    names = dict(zip(("experiment", "dataset", "method", "recipe", "protocol"), run.key))
    return Record(**names, point=run.variation, seed=run.seed, parameters=run.parameters, **found)


def attempt(run: Run, data_root: Path | None, progress: Progress | None = None) -> Made | Failure:
    """A run, or why it failed: one that fails must not end the others."""
    try:
        return make(run, data_root, progress)
    except Exception as error:
        return failure_of(run, error)


def failure_of(run: Run, error: Exception) -> Failure:
    """What to say of the error that is being handled."""
    if isinstance(error, TopoterError):
        return Failure(run, str(error), error.exit_code, getattr(error, "trace", ""))
    return Failure(run, f"{type(error).__name__}: {error}", trace=traceback.format_exc())


def _load(chosen: Experiment, dataset: str, data_root: Path | None) -> Any:
    key = (chosen.load, dataset, data_root)
    if key in _refused:
        raise _refused[key]
    if key not in _data:
        _data.clear()  # the data before are given back first
        try:
            _data[key] = chosen.load(dataset, data_root)
        except TopoterError as error:
            _refused[key] = error
            raise
    return _data[key]


# ---- all runs --------------------------------------------------------------------------------------------------------


def make_all(
    runs: Sequence[Run], store: Store, data_root: Path | None, engine: Engine, watcher: Watcher
) -> list[Failure]:
    """Make runs and keep each one as soon as it is done; returns those that failed.

    A process that dies, for lack of memory perhaps, takes the others with it: all runs that were going on are made once
    more, one at a time. One that brings its process down on its own counts as failed.
    """
    failures: list[Failure] = []
    waiting, suspects = deque(runs), set[Any]()
    going: dict[Future[Any], Run] = {}
    twins: dict[str, list[Run]] = {}  # of a run that is going on: they will be taken over from it
    made = {_what(record): record for record in store.records if record.experiment in EXPERIMENTS}
    executor = engine.start()

    def begin(run: Run) -> None:
        store.refresh(run.recipe.experiment)
        twin = made.get(_what(run))
        if store.done(run) or _take_over(run, twin, store) or _take_over_limit(run, store.limit_of(run), store):
            watcher.finished(run, 0.0)
        elif _what(run) in twins:
            twins[_what(run)].append(run)
        else:
            progress = watcher.progress_of(run) if engine.here else None
            going[executor.submit(attempt, run, data_root, progress)] = run
            twins[_what(run)] = []

    def end(run: Run, outcome: Any) -> None:
        waiting.extendleft(twins.pop(_what(run)))
        if isinstance(outcome, BrokenExecutor) and run.key not in suspects:
            suspects.add(run.key)
            waiting.append(run)
        elif isinstance(outcome, Made):
            store.add(outcome.record, outcome.losses, outcome.left)
            made[_what(run)] = outcome.record
            watcher.finished(run, outcome.record.seconds)
        else:
            failures.append(outcome if isinstance(outcome, Failure) else Failure(run, _how_it_ended(outcome)))
            watcher.finished(run, None)

    def fits(run: Run) -> bool:
        alone = run.key in suspects or any(other.key in suspects for other in going.values())
        return not going if alone else len(going) < engine.at_once

    try:
        while waiting or going:
            broken = False
            while waiting and fits(waiting[0]) and not broken:
                try:
                    begin(waiting[0])
                    waiting.popleft()
                except BrokenExecutor:  # a process died between two runs
                    broken = True
            outcomes = {future: _outcome(future) for future in wait(going, return_when=FIRST_COMPLETED).done}
            if broken or any(isinstance(outcome, BrokenExecutor) for outcome in outcomes.values()):
                outcomes = {future: _outcome(future) for future in wait(going).done}  # they are done or lost by now
                engine.stop(executor)
                executor = engine.start()
            for future, outcome in outcomes.items():
                end(going.pop(future), outcome)
    finally:
        engine.stop(executor)
        end_idle()
    return failures


def _outcome(future: Future[Any]) -> Any:
    try:
        return future.result()
    except Exception as error:
        return error


def _how_it_ended(error: Exception) -> str:
    """In a user's words, why a run never came back."""
    if not isinstance(error, BrokenExecutor):
        return f"The cluster lost it ({type(error).__name__}: {error})."
    code = re.search(r"\((-?\d+)\)", str(error))  # of the process, as in SIGKILL(-9)
    return _how_a_process_ended(int(code[1]) if code else 1)


def _how_a_process_ended(number: int) -> str:
    how = f"was ended by signal {-number}, for lack of memory perhaps" if number < 0 else f"ended with code {number}"
    return f"Its process {how}. Run it again, with fewer --jobs."


def _what(item: Run | Record) -> str:
    """What is measured, whatever the experiment is called: runs with the same text would find the same."""
    name, dataset, method, _, protocol, _, seed = item.key
    measure = experiment(name).measure
    what = [measure.__module__, measure.__qualname__, dataset, method, protocol, seed, item.parameters]
    return json.dumps(what, sort_keys=True)


def _take_over(run: Run, twin: Record | None, store: Store) -> bool:
    """Keep the same run of another experiment under this name too: a study passes through the recipe it varies."""
    if twin is None or twin.stopped is not None:
        return False
    name, _, _, recipe, *_ = run.key
    made_for = twin.made_for or twin.experiment
    taken = msgspec.structs.replace(twin, experiment=name, recipe=recipe, point=run.variation, made_for=made_for)
    store.add(taken, store.losses(twin.experiment).get(twin.key, ()))
    return True


def _take_over_limit(run: Run, other: Record | None, store: Store) -> bool:
    """A seed of a row of which another seed ran into a limit is not tried: it would take as long again."""
    if other is None:
        return False
    store.add(msgspec.structs.replace(other, seed=run.seed, details=other.details | {"as_seed": other.seed}))
    return True
