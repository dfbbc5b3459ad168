"""What a folder of results holds: the runs of every experiment, put together by row and dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from topoter.errors import DataError, TopoterError
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.experiment import Experiment
from topoter.experiments.runs import Run, load_run
from topoter.experiments.schedule import files_on_disk
from topoter.experiments.tables import Cell, cells, group_means


@dataclass(frozen=True)
class Entry:
    """One row of a table on one dataset: its scores, and the runs they come from by increasing seed."""

    cell: Cell
    runs: list[dict[str, Any]]

    @property
    def dataset(self) -> str:
        return self.cell.recipe.dataset

    @property
    def seeds(self) -> int:
        """How many encoders were trained; the mean of several datasets counts each seed once."""
        return len({run["seed"] for run in self.runs})

    @property
    def values(self) -> int:
        """How many scores there are: one per run, or more where a run restarts its classifier."""
        return len(next(iter(self.cell.scores.values())))


@dataclass(frozen=True)
class Found:
    """What there is of one experiment.

    Args:
        entries: in the order of the experiment's datasets and rows.
        seeds: the most that any row has: what the others are held against.
        means: the rows averaged over datasets for which the paper has one number.
        absent: (method, recipe, protocol, dataset) of the paper's table that have no run.
        left_out: files whose parameters are not those of today's recipes, or of no row of the table.
    """

    experiment: Experiment
    entries: list[Entry]
    seeds: int
    means: list[Entry] = field(default_factory=list)
    absent: list[tuple[str, str, str, str]] = field(default_factory=list)
    left_out: list[Path] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.experiment.name

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(entry.dataset for entry in self.entries))

    @property
    def runs(self) -> list[dict[str, Any]]:
        return [run for entry in self.entries for run in entry.runs]

    @property
    def varied(self) -> list[str]:
        """The parameters that a study changes from point to point; none for a table."""
        variations = self.experiment.variations
        names = dict.fromkeys(name for variation in variations for name in variation)
        return [name for name in names if len({repr(variation.get(name)) for variation in variations}) > 1]


@dataclass(frozen=True)
class Results:
    """A folder of results, read."""

    folder: Path
    found: list[Found]

    @property
    def missing(self) -> list[str]:
        """Experiments without any run."""
        there = {item.name for item in self.found}
        return [name for name in EXPERIMENTS if name not in there]

    def of(self, name: str) -> Found | None:
        return next((item for item in self.found if item.name == name), None)


def read_results(folder: Path) -> Results:
    """Read every run in a folder that belongs to an experiment; an error if there is none."""
    if not folder.is_dir():
        raise TopoterError(f"There is no folder {folder}.")
    found = [item for name in EXPERIMENTS if (item := _find(experiment(name), folder)) is not None]
    if not found:
        name = next(iter(EXPERIMENTS))
        raise TopoterError(f"There are no runs in {folder}. Make some: topoter reproduce {name} --out {folder}")
    return Results(folder, found)


def _find(chosen: Experiment, folder: Path) -> Found | None:
    seed_of = files_on_disk(chosen.name, folder)
    if not seed_of:
        return None
    files, most = set(seed_of), 1 + max(seed_of.values())
    there = {path.parent.name for path in files}
    datasets = [*chosen.datasets, *sorted(there - set(chosen.datasets))]
    grouped: dict[tuple[str, ...], list[tuple[Run, dict[str, Any]]]] = {}
    planned: dict[tuple[str, str, str, str], int] = {}
    for run in chosen.plan(datasets, None, most):
        recipe = run.recipe
        row = (recipe.method, recipe.name, run.protocol, recipe.dataset)
        stored = load_run(run, folder) if run.path(folder) in files else None
        planned[row] = planned.get(row, 0) + (stored is not None)
        if stored is not None:
            files.discard(run.path(folder))
            key = (recipe.dataset, recipe.method, recipe.name, run.protocol, repr(run.variation))
            grouped.setdefault(key, []).append((run, stored))
    if not grouped:
        return None
    entries = [_entry(chosen, group, folder) for group in grouped.values()]
    absent = [row for row, count in planned.items() if not count and row[-1] in chosen.datasets]
    seeds = max(entry.seeds for entry in entries)
    return Found(chosen, entries, seeds, _means(chosen, entries), absent, sorted(files))


def _means(chosen: Experiment, entries: list[Entry]) -> list[Entry]:
    found = []
    for cell in group_means(chosen, [entry.cell for entry in entries]):
        parts = [entry for entry in entries if entry.dataset in chosen.means[cell.recipe.dataset]]
        same = [entry for entry in parts if row_of(entry.cell) == row_of(cell)]
        found.append(Entry(cell, [run for entry in same for run in entry.runs]))
    return found


def row_of(cell: Cell) -> tuple[str, ...]:
    """What tells the row of a table from others, whatever the dataset."""
    return (cell.recipe.method, cell.recipe.name, cell.protocol, repr(cell.variation))


def _entry(chosen: Experiment, group: list[tuple[Run, dict[str, Any]]], folder: Path) -> Entry:
    with written_by_topoter(group[0][0].path(folder)):
        (cell,) = cells(chosen, group)
        return Entry(cell, [stored for _, stored in group])


def read_json(path: Path) -> Any:
    """A JSON file of results; damage is an error that names the file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}). Delete it, or make it again.") from error


@contextmanager
def written_by_topoter(path: Path) -> Iterator[None]:
    """Turn what a file of another shape leads to into one error that names the file."""
    try:
        yield
    except TopoterError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        what = f"A file in {path}" if path.is_dir() else str(path)
        raise DataError(f"{what} does not hold what topoter writes there ({error!r}). Delete that file.") from error
