"""Bars for many runs: one for all of them with the time left, and a line for each that is going on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from topoter.cli.output import err, note
from topoter.experiments.bench import Watcher

if TYPE_CHECKING:
    from topoter.experiments.durations import Outlook
    from topoter.experiments.runs import Run

_SECONDS_BETWEEN_UPDATES = 0.2


@contextmanager
def run_bars(runs: Sequence[Run], folder: Path | None, jobs: int, quiet: bool) -> Iterator[Watcher]:
    """A watcher that draws on stderr; where that is no terminal, a plain line appears every tenth of the way."""
    from topoter.experiments.durations import Durations, Outlook

    if quiet or not runs:
        yield Watcher()
        return
    outlook = Outlook(runs, Durations.stored(folder) if folder else Durations(), jobs)
    if not err.is_terminal:
        yield _Lines(outlook)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        yield _Bars(outlook, progress)


class _Lines(Watcher):
    """Plain lines, for a file that somebody looks into now and then."""

    def __init__(self, outlook: Outlook) -> None:
        self._outlook = outlook
        self._tenths = 0

    def progressed(self, run: Run, share: float, text: str) -> None:
        self._outlook.progressed(run, share)

    def finished(self, run: Run, seconds: float | None) -> None:
        self._outlook.finished(run, seconds)
        done, left = self._outlook.done_and_left()
        everything = self._outlook.finished_count == self._outlook.count
        tenths = 10 if everything else min(9, int(10 * done / ((done + left) or 1.0)))
        if tenths > self._tenths and self._outlook.count > 1:
            self._tenths = tenths
            note(f"{10 * tenths} %: {overall(self._outlook)}")


class _Bars(Watcher):
    """Rich's bars, the overall one weighed by the seconds that runs are expected to take."""

    def __init__(self, outlook: Outlook, progress: Progress) -> None:
        self._outlook = outlook
        self._progress = progress
        self._all = progress.add_task("all runs", total=None, text="", visible=outlook.count > 1)
        self._going: dict[str, TaskID] = {}
        self._drawn = 0.0
        self._draw()

    def progressed(self, run: Run, share: float, text: str) -> None:
        self._outlook.progressed(run, share)
        if run.name not in self._going:
            self._going[run.name] = self._progress.add_task(f"{run.recipe.experiment}: {run.label}", total=1.0, text="")
        self._progress.update(self._going[run.name], completed=share, text=text)
        if time.monotonic() - self._drawn >= _SECONDS_BETWEEN_UPDATES:
            self._draw()

    def finished(self, run: Run, seconds: float | None) -> None:
        self._outlook.finished(run, seconds)
        if run.name in self._going:
            self._progress.remove_task(self._going.pop(run.name))
        self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        done, left = self._outlook.done_and_left()
        self._progress.update(self._all, completed=done, total=done + left, text=overall(self._outlook))


def overall(outlook: Outlook) -> str:
    return f"{outlook.finished_count} of {outlook.count} runs, {lasting(outlook.seconds_left())} left"


def lasting(seconds: float) -> str:
    """A duration in the units that a reader of it thinks in."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
