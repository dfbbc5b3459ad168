"""Where we stand against the paper: every published number of TopoTER, and ours beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.experiment import Experiment
from topoter.experiments.tables import COLUMNS, Cell
from topoter.report.results.stored import Entry, Results, row_of
from topoter.report.tables import Mark, compare

OURS = "topoter"
RULE = (
    "Within one deviation means |ours − paper| ≤ the larger of both standard deviations, ours over seeds and the "
    "paper's; beyond that a number is better or worse. A row with one seed has no deviation of its own."
)
COUNTED = (
    "A number counts once: with our settings (recipe “best”) where there are any, else with the paper's (recipe "
    "“paper”), and never under the protocol that selects on test. One that the paper gives for several datasets is "
    "held against their mean."
)


@dataclass(frozen=True)
class Standing:
    """One published number, and what one of our rows has for it; `entry` is `None` where it was not run.

    `averaged` is true where the number stands for several datasets and this is one of them: their mean counts.
    `headline` is true for the one row that counts for this number.
    """

    experiment: str
    dataset: str
    metric: str
    recipe: str
    protocol: str
    published: dict[str, float]
    entry: Entry | None
    averaged: bool
    headline: bool

    @property
    def mark(self) -> Mark | None:
        if self.entry is None:
            return None
        cell = self.entry.cell
        return compare(cell.mean(self.metric), cell.std(self.metric), self.published["mean"], self.published.get("std"))

    @property
    def word(self) -> str:
        return self.mark.word if self.mark else "not run"

    @property
    def row_name(self) -> str:
        """The recipe, and the protocol where it is not the usual one."""
        return row_name(self.recipe, self.protocol)


def row_name(recipe: str, protocol: str) -> str:
    return recipe if protocol == "validation" else f"{recipe}, {protocol_name(protocol)}"


def protocol_name(protocol: str) -> str:
    """A protocol as tables call it: the authors' own is named by what is wrong with it."""
    names = {"validation": "validation", "paper": "selects on test"}
    return names.get(protocol) or COLUMNS.get(protocol, protocol)


def standings(results: Results) -> list[Standing]:
    """All of them, in the order of experiments, datasets and metrics."""
    return [item for name in EXPERIMENTS for item in _of(experiment(name), results)]


def _of(chosen: Experiment, results: Results) -> list[Standing]:
    if not any(row.method == OURS for row in chosen.rows):
        return []
    found = results.of(chosen.name)
    entries = {_key(entry.cell): entry for entry in ((*found.entries, *found.means) if found else ())}
    planned = [Cell(run.recipe, run.protocol, run.variation, {}) for run in chosen.plan(None, [OURS], 1)]
    for name, parts in chosen.means.items():
        first = [cell for cell in planned if cell.recipe.dataset == parts[0]]
        planned += [replace(cell, recipe=replace(cell.recipe, dataset=name)) for cell in first]
    averaged = {dataset for parts in chosen.means.values() for dataset in parts}
    names = {(cell.recipe.dataset, cell.recipe.name) for cell in planned}
    items = []
    for cell in planned:
        dataset, recipe = cell.recipe.dataset, cell.recipe.name
        preferred = "best" if (dataset, "best") in names else "paper"
        for metric in chosen.metrics:
            published = cell.published(metric)
            if published:
                part = dataset in averaged
                headline = recipe == preferred and cell.protocol == chosen.protocols[0] and not part
                row = (chosen.name, dataset, metric, recipe, cell.protocol, published)
                items.append(Standing(*row, entries.get(_key(cell)), part, headline))
    datasets, metrics = [*chosen.datasets, *chosen.means], list(chosen.metrics)
    return sorted(items, key=lambda item: (datasets.index(item.dataset), metrics.index(item.metric)))


def _key(cell: Cell) -> tuple[str, ...]:
    return (cell.recipe.dataset, *row_of(cell))


def counts(items: Sequence[Standing]) -> dict[str, int]:
    """How many are better, within one deviation, worse, not run."""
    counted = Counter(item.word for item in items)
    return {word: counted[word] for word in (*(mark.word for mark in Mark), "not run")}


def counts_by_row(items: Sequence[Standing]) -> dict[tuple[str, str], dict[str, int]]:
    """The counts of every experiment, by recipe and protocol; each published number once in each."""
    counted = [item for item in items if not item.averaged]
    keys = dict.fromkeys((item.experiment, item.row_name) for item in counted)
    return {key: counts([item for item in counted if (item.experiment, item.row_name) == key]) for key in keys}


def headline(items: Sequence[Standing]) -> str:
    """The counts in one sentence."""
    counted = counts([item for item in items if item.headline])
    total, missing = sum(counted.values()), counted.pop("not run")
    text = ", ".join(f"{number} {word}" for word, number in counted.items())
    left = f"; {missing} not run yet" if missing else ""
    return f"Held against {total} published numbers of TopoTER, ours are {text}{left}."
