"""How long runs take, from the seconds of those on disk: what a dry run lists, and what a bar weighs by."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topoter.experiments.runs import Run

UNKNOWN = "unknown"
# Where an estimate comes from, the nearest first: the run itself with other parameters, its row, and what is only
# similar (other points of a study or another protocol; the recipe, then the method, on that dataset in any experiment).
SOURCES = ("last time", "other seeds", "like runs", "like runs", "like runs")
# What a run of no known length counts as where no length at all is known; only its ratio to others matters.
GUESSED_SECONDS = 30.0
# So many seconds as expected stand against the first runs: one slow start says little about a machine.
STEADY_SECONDS = 60.0


@dataclass(frozen=True)
class Expected:
    """The seconds that a run may take, and where that is known from."""

    seconds: float | None
    source: str


class Durations:
    """The seconds of earlier runs."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    @classmethod
    def stored(cls, folder: Path) -> Durations:
        """Those of every run kept in a folder of results; what is no run there is passed over."""
        found = cls()
        for path in folder.glob("*/*/[!.]*.json"):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                found.add(content, float(content["seconds"]))
            except (OSError, ValueError, TypeError, KeyError):  # half of a file that another process writes, say
                continue
        return found

    def add(self, description: dict[str, Any], seconds: float) -> None:
        """Take in a run, described as in its file."""
        for key in _keys(description):
            self._seconds.setdefault(key, []).append(seconds)

    def of(self, run: Run) -> Expected:
        """The mean of the nearest runs that there are."""
        for key, source in zip(_keys(run.description()), SOURCES):
            if key in self._seconds:
                return Expected(statistics.fmean(self._seconds[key]), source)
        return Expected(None, UNKNOWN)


def _keys(description: dict[str, Any]) -> list[str]:
    """What a run has in common with ever more others, in the order of SOURCES."""
    recipe = [description[name] for name in ("experiment", "dataset", "method", "recipe")]
    row = [*recipe, description["protocol"], description.get("variation", {})]
    keys = [[*row, description["seed"]], row, recipe, recipe[1:], recipe[1:3]]
    return [json.dumps(key, sort_keys=True) for key in keys]


class Outlook:
    """How far many runs are, in seconds, and how long the rest will take.

    Args:
        runs: all that are to be made.
        durations: what is known of earlier ones; those that are finished are added to it.
        jobs: how many are made at once.
    """

    def __init__(self, runs: Sequence[Run], durations: Durations, jobs: int = 1) -> None:
        self.count, self.finished_count = len(runs), 0
        self._left = {run.name: run for run in runs}
        self._known = {run.name: durations.of(run).seconds for run in runs}
        self._share: dict[str, float] = {}
        self._durations = durations
        self._jobs = jobs
        self._spent = 0.0
        self._taken, self._expected = 0.0, 0.0  # of finished runs whose length was known before

    def progressed(self, run: Run, share: float) -> None:
        """A share between 0 and 1 of a run is done."""
        self._share[run.name] = share

    def finished(self, run: Run, seconds: float | None) -> None:
        """A run is done in so many seconds, or (None) has failed."""
        self.finished_count += 1
        self._left.pop(run.name, None)
        self._share.pop(run.name, None)
        if seconds is None:
            return
        expected = self._known[run.name]
        if expected is not None:
            self._taken, self._expected = self._taken + seconds, self._expected + expected
        self._spent += seconds
        self._durations.add(run.description(), seconds / self.slowness)
        for other in self._left.values():
            if (other.recipe.dataset, other.recipe.method) == (run.recipe.dataset, run.recipe.method):
                self._known[other.name] = self._durations.of(other).seconds

    @property
    def slowness(self) -> float:
        """How much longer runs take here and now than those on disk did."""
        return (self._taken + STEADY_SECONDS) / (self._expected + STEADY_SECONDS)

    def done_and_left(self) -> tuple[float, float]:
        """Seconds of work behind and ahead of us, whatever the number of jobs."""
        known = {name: self._known[name] for name in self._left}
        lengths = [seconds for seconds in known.values() if seconds is not None]
        guess = statistics.fmean(lengths) if lengths else GUESSED_SECONDS
        done, left = self._spent, 0.0
        for name, seconds in known.items():
            whole = self.slowness * (guess if seconds is None else seconds)
            done += whole * self._share.get(name, 0.0)
            left += whole * (1 - self._share.get(name, 0.0))
        return done, left

    def seconds_left(self) -> float:
        """Until all is done."""
        return self.done_and_left()[1] / max(1, min(self._jobs, len(self._left)))
