"""What commands that make runs share: bars with the time left, and how long runs took before."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from topoter.cli.output import err, note
from topoter.experiments.runner import Watcher
from topoter.experiments.runs import Run
from topoter.experiments.store import Record

UNKNOWN = "unknown"
_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(bar_width=24),
    TextColumn("{task.percentage:>3.0f} %"),
    TextColumn("{task.fields[text]}"),
)


def expected(runs: Iterable[Run], records: Iterable[Record]) -> list[tuple[float | None, str]]:
    """The seconds that each run may take, and where that is known from: its row, else its method on the dataset."""
    known: dict[tuple[object, ...], list[float]] = {}
    for record in records:
        for key in (record.key[:-1], record.key[1:3]):
            known.setdefault(key, []).append(record.seconds)

    def of(run: Run) -> tuple[float | None, str]:
        for key, source in ((run.key[:-1], "other seeds"), (run.key[1:3], "like runs")):
            if key in known:
                return statistics.fmean(known[key]), source
        return None, UNKNOWN

    return [of(run) for run in runs]


@contextmanager
def run_bars(runs: Sequence[Run], records: Iterable[Record], quiet: bool) -> Iterator[Watcher]:
    """A watcher that draws on stderr; where that is no terminal, a plain line appears every tenth of the way."""
    if quiet or not runs:
        yield Watcher()
    elif not err.is_terminal:
        yield _Bars(runs, records, None)
    else:
        with Progress(*_COLUMNS, console=err, transient=True) as progress:
            yield _Bars(runs, records, progress)


class _Bars(Watcher):
    """A bar over all runs, weighed by the seconds that they took before, and one for the run that is going on here."""

    def __init__(self, runs: Sequence[Run], records: Iterable[Record], progress: Progress | None) -> None:
        seconds = [found for found, _ in expected(runs, records)]
        mean = statistics.fmean([found for found in seconds if found is not None] or [1.0])
        self._weights = {run.key: mean if found is None else found for run, found in zip(runs, seconds)}
        self._left = dict(self._weights)
        self._share = 0.0  # of the run that is going on, in seconds
        self._tenths = 0
        self._began = time.monotonic()
        self._progress = progress
        self._all: TaskID | None = None
        self._going: TaskID | None = None
        if progress is not None and len(runs) > 1:
            self._all = progress.add_task("all runs", total=1.0, text=self._text())

    def progressed(self, run: Run, share: float, text: str) -> None:
        self._share = share * self._weights[run.key]
        if self._progress is not None:
            if self._going is None:
                self._going = self._progress.add_task(f"{run.recipe.experiment}: {run.label}", total=1.0, text="")
            self._progress.update(self._going, completed=share, text=text)
            self._draw()

    def finished(self, run: Run, seconds: float | None) -> None:
        weight, self._share = self._left.pop(run.key, 0.0), 0.0
        if not seconds:  # taken over or failed: it says nothing of how fast runs are
            self._weights[run.key] -= weight
        if self._progress is not None and self._going is not None:
            self._progress.remove_task(self._going)
            self._going = None
        self._draw()

    def _done(self) -> float:
        """The part of the work that is done."""
        whole = sum(self._weights.values())
        return 1.0 if not self._left else 1 - (sum(self._left.values()) - self._share) / whole if whole else 0.0

    def _text(self) -> str:
        done, spent = self._done(), time.monotonic() - self._began
        left = f", {lasting(spent / done * (1 - done))} left" if done > 0 else ""
        return f"{len(self._weights) - len(self._left)} of {len(self._weights)} runs{left}"

    def _draw(self) -> None:
        if self._progress is not None:
            if self._all is not None:
                self._progress.update(self._all, completed=self._done(), text=self._text())
            return
        tenths = int(10 * self._done()) if not self._left else min(9, int(10 * self._done()))
        if tenths > self._tenths and len(self._weights) > 1:
            self._tenths = tenths
            note(f"{10 * tenths} %: {self._text()}")


def lasting(seconds: float) -> str:
    """A duration in the units that a reader of it thinks in."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
