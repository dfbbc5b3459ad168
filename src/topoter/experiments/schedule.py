"""Many runs: which ones an experiment or all of them need, which are missing, and the making of those."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from topoter.errors import unknown_name
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.bench import Bench, Failure, Watcher
from topoter.experiments.runs import Run, load_run

_SEED = re.compile(r"\.(\d+)\.json$")

Stored = list[tuple[Run, dict[str, Any]]]


def plan_all(datasets: Sequence[str] | None, methods: Sequence[str] | None, seeds: int) -> dict[str, list[Run]]:
    """The runs of all experiments by name: each has those of the datasets and methods asked for that it knows."""
    every = [experiment(name) for name in EXPERIMENTS]
    _check("dataset", datasets, {dataset for chosen in every for dataset in chosen.datasets})
    _check("method", methods, {row.method for chosen in every for row in chosen.rows})
    plans = {}
    for chosen in every:
        of_datasets = _among(chosen.datasets, datasets)
        of_methods = _among(dict.fromkeys(row.method for row in chosen.rows), methods)
        if of_datasets and of_methods:
            plans[chosen.name] = chosen.plan(of_datasets, of_methods, seeds)
    return plans


def _check(kind: str, asked: Sequence[str] | None, known: set[str]) -> None:
    for name in asked or ():
        if name not in known:
            raise unknown_name(kind, name, known)


def _among(own: Iterable[str], asked: Sequence[str] | None) -> list[str]:
    return [name for name in own if asked is None or name in asked]


def stored_runs(runs: Iterable[Run], folder: Path) -> Stored:
    """Those of the runs that are on disk, with their content."""
    loaded = [(run, load_run(run, folder)) for run in runs]
    return [(run, content) for run, content in loaded if content is not None]


def files_on_disk(name: str, folder: Path) -> dict[Path, int]:
    """The files that an experiment's runs are kept in, each with its seed."""
    # A name that begins with a dot is what a process left that was killed while it wrote.
    paths = (folder / name).glob("*/[!.]*.json")
    return {path: int(match[1]) for path in paths if (match := _SEED.search(path.name))}


def missing_runs(runs: Iterable[Run], folder: Path) -> list[Run]:
    """Those of the runs that are not on disk, or were made with other parameters."""
    return [run for run in runs if load_run(run, folder) is None]


def make_all(runs: Sequence[Run], folder: Path, data_root: Path | None, jobs: int, watcher: Watcher) -> list[Failure]:
    """Make runs and keep each one in `folder` as soon as it is done; returns those that failed.

    It may be killed at any moment: what is on disk is whole, and a run that was not done is missing.
    """
    if jobs > 1:
        from topoter.experiments.workers import make_in_processes

        return make_in_processes(runs, folder, data_root, jobs, watcher)
    bench = Bench(folder, data_root)
    failures = []
    for run in runs:
        result = bench.attempt(run, watcher.progress_of(run))
        if isinstance(result, Failure):
            failures.append(result)
        watcher.finished(run, None if isinstance(result, Failure) else result)
    return failures
