"""Where runs are made: one after another in one process, each kept as soon as it is done."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topoter.errors import TopoterError
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.experiment import Experiment, Progress
from topoter.experiments.runs import Run, execute, load_run, save_run


class Watcher:
    """Is told how runs go, and does nothing with it; the command line draws bars."""

    def progressed(self, run: Run, share: float, text: str) -> None:
        """A share between 0 and 1 of a run is done."""

    def finished(self, run: Run, seconds: float | None) -> None:
        """A run is done in so many seconds, or (None) has failed."""

    def progress_of(self, run: Run) -> Progress:
        """What an experiment calls with the steps of a run."""
        return lambda done, steps, text: self.progressed(run, min(1.0, done / steps) if steps else 0.0, text)


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


def made_elsewhere(chosen: Experiment, run: Run, folder: Path) -> dict[str, Any] | None:
    """The same run under the name of another experiment: a study passes through the recipe it varies."""
    for other in (experiment(name) for name in EXPERIMENTS if name != chosen.name):
        if other.measure is not chosen.measure or run.recipe.dataset not in other.datasets:
            continue
        for row in (row for row in other.rows if row.method == run.recipe.method):
            for twin in other.runs(row, run.recipe.dataset, run.seed + 1):
                same = (twin.parameters, twin.protocol, twin.seed) == (run.parameters, run.protocol, run.seed)
                if same and (stored := load_run(twin, folder)) is not None:
                    taken = {key: value for key, value in stored.items() if key not in twin.description()}
                    return run.description() | taken | {"made_for": stored.get("made_for", other.name)}
    return None


class Bench:
    """Makes runs, with the data of the latest dataset at hand: runs come dataset by dataset.

    Args:
        folder: where runs are kept, and taken over if they are there already; None keeps nothing.
    """

    def __init__(self, folder: Path | None, data_root: Path | None) -> None:
        self.folder = folder
        self.data_root = data_root
        self._loaded: tuple[Any, Any] = (None, None)
        self._refused: dict[Any, TopoterError] = {}  # data that are not there are not looked for by every run

    def make(self, run: Run, progress: Progress | None) -> dict[str, Any]:
        """The content of one run."""
        stored = load_run(run, self.folder) if self.folder else None
        if stored is None:
            chosen = experiment(run.recipe.experiment)
            stored = made_elsewhere(chosen, run, self.folder) if self.folder else None
            if stored is None:
                stored = execute(chosen, run, self._data(chosen, run.recipe.dataset), progress)
            if self.folder:
                save_run(run, stored, self.folder)
        return stored

    def _data(self, chosen: Experiment, dataset: str) -> Any:
        key = (chosen.load, dataset)
        if key in self._refused:
            raise self._refused[key]
        if self._loaded[0] != key:
            self._loaded = (None, None)  # the data before are given back first
            try:
                self._loaded = (key, chosen.load(dataset, self.data_root))
            except TopoterError as error:
                self._refused[key] = error
                raise
        return self._loaded[1]

    def attempt(self, run: Run, progress: Progress | None) -> float | Failure:
        """The seconds a run took, or why it failed: one that fails must not end the others."""
        try:
            return float(self.make(run, progress)["seconds"])
        except TopoterError as error:
            return Failure(run, str(error), error.exit_code)
        except Exception as error:
            return Failure(run, f"{type(error).__name__}: {error}", trace=traceback.format_exc())
