"""Where we stand against the paper: every published number of TopoTER, and ours beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.experiment import Experiment
from topoter.report.charts import Bars, Chart
from topoter.report.found import Results
from topoter.report.groups import OURS, Group, published
from topoter.report.judging import judge
from topoter.report.remarks import Remarks
from topoter.report.tables import MISSING, NOT_RUN, Cell, CellLike, Mark, Table, difference, mean_and_deviation
from topoter.report.wording import row_name, wording

PREFERRED = ("best", "tuned", "paper")  # the recipe whose number counts: the first that a dataset has


@dataclass(frozen=True)
class Standing:
    """One published number, and what one of our rows has for it; `group` is `None` where it was not run.

    `averaged` is true where the number stands for several datasets and this is one of them: their mean counts.
    `headline` is true for the one row that counts for this number.
    """

    experiment: str
    dataset: str
    metric: str
    recipe: str
    protocol: str
    published: Mapping[str, float]
    group: Group | None
    mark: Mark | None
    averaged: bool
    headline: bool

    @property
    def word(self) -> str:
        return self.mark.word if self.mark else NOT_RUN

    @property
    def row_name(self) -> str:
        return row_name(self.recipe, self.protocol)

    @property
    def gap(self) -> float | None:
        """Ours minus the paper's."""
        if self.group is None or self.group.stopped:
            return None
        return self.group.mean(self.metric) - self.published["mean"]


def standings(results: Results) -> list[Standing]:
    """All of them, in the order of experiments, datasets and metrics."""
    return [item for name in EXPERIMENTS for item in _of(experiment(name), results)]


def _of(chosen: Experiment, results: Results) -> list[Standing]:
    if not any(row.method == OURS for row in chosen.rows):
        return []
    found = results.of(chosen.name)
    groups = [*found.groups, *found.means] if found else []
    by_row = {(group.dataset, *group.row): group for group in groups}
    planned = chosen.plan(None, [OURS], 1)
    for name, parts in chosen.means.items():
        first = [run for run in planned if run.recipe.dataset == parts[0]]
        planned += [replace(run, recipe=replace(run.recipe, dataset=name)) for run in first]
    averaged = {dataset for parts in chosen.means.values() for dataset in parts}
    names = {(run.recipe.dataset, run.recipe.name) for run in planned}
    items = []
    for run in planned:
        dataset, recipe, protocol = run.recipe.dataset, run.recipe.name, run.protocol
        group = by_row.get((dataset, OURS, recipe, protocol, repr(run.variation)))
        preferred = recipe == next((name for name in PREFERRED if (dataset, name) in names), None)
        part = dataset in averaged
        counts = preferred and protocol == chosen.protocols[0] and not part
        for metric in chosen.metrics:
            paper = published(run.recipe.paper, metric)
            if paper:
                mark = judge(group, metric, groups) if group else None
                row = (chosen.name, dataset, metric, recipe, protocol, paper)
                items.append(Standing(*row, group, mark, part, counts))
    datasets, metrics = [*chosen.datasets, *chosen.means], list(chosen.metrics)
    return sorted(items, key=lambda item: (datasets.index(item.dataset), metrics.index(item.metric)))


def counts(items: Sequence[Standing]) -> dict[str, int]:
    """How many are better, within one deviation, worse, not run."""
    counted = Counter(item.word for item in items)
    return {word: counted[word] for word in (*(mark.word for mark in Mark), NOT_RUN)}


def headline(items: Sequence[Standing]) -> str:
    """The counts in one sentence."""
    counted = counts([item for item in items if item.headline])
    total, missing = sum(counted.values()), counted.pop(NOT_RUN)
    text = "; ".join(f"{number} {word}" for word, number in counted.items())
    left = f"; {missing} not run yet" if missing else ""
    return f"Held against {total} published numbers of TopoTER, ours are: {text}{left}."


def counts_table(items: Sequence[Standing]) -> Table:
    """The counts of every experiment, by recipe and protocol; each published number once in each."""
    counted = [item for item in items if not item.averaged]
    keys = dict.fromkeys((item.experiment, item.row_name) for item in counted)
    by_row = {key: counts([item for item in counted if (item.experiment, item.row_name) == key]) for key in keys}
    body: list[list[CellLike]] = [
        [wording(name).title, row, *numbers.values()] for (name, row), numbers in by_row.items()
    ]
    words = [*(mark.word for mark in Mark), NOT_RUN]
    return Table(["experiment", "recipe", *words], body, caption="Counts by experiment and recipe")


def standing_tables(items: Sequence[Standing], remarks: Remarks) -> list[Table]:
    """Per experiment every published number of TopoTER with ours, and a remark where there is one."""
    names = list(dict.fromkeys(item.experiment for item in items))
    return [_table([item for item in items if item.experiment == name], remarks) for name in names]


def _table(items: Sequence[Standing], remarks: Remarks) -> Table:
    name, metrics = items[0].experiment, list(dict.fromkeys(item.metric for item in items))
    said = [remarks.of_number(name, item.dataset, item.recipe) if item.mark else "" for item in items]
    header = ["dataset", *(["metric"] if len(metrics) > 1 else []), "recipe", "ours", "seeds", "paper", "difference"]
    body = [[item.dataset, *([item.metric] if len(metrics) > 1 else []), *_row(item)] for item in items]
    if any(said):
        header.append("remark")
        body = [[*row, Cell(remark, wrap=True)] for row, remark in zip(body, said)]
    caption = f"{wording(name).title}: {' and '.join(metrics)} of TopoTER in %"
    return Table(header, body, caption=caption, note=remarks.of_experiment(name))


def _row(item: Standing) -> list[CellLike]:
    paper = mean_and_deviation(item.published["mean"], item.published.get("std"))
    if item.group is None or item.gap is None:
        return [item.row_name, item.group.text(item.metric) if item.group else NOT_RUN, MISSING, paper, MISSING]
    runs, values = len(item.group.seeds), item.group.values
    seeds = Cell(f"{runs} ({values} restarts)" if values > runs else str(runs), sort=runs)
    ours = Cell(item.group.text(item.metric), sort=item.group.mean(item.metric))
    return [item.row_name, ours, seeds, paper, difference(item.gap, item.mark)]


def standing_charts(items: Sequence[Standing]) -> list[Chart]:
    """Ours minus the paper's of every number that counts, a chart per experiment."""
    charts = []
    for name in dict.fromkeys(item.experiment for item in items if item.headline and item.group):
        here = [item for item in items if item.experiment == name and item.headline and item.group]
        found = {(item.dataset, item.metric): item for item in here}
        datasets, metrics = (list(dict.fromkeys(part)) for part in zip(*found))
        bars = []
        for metric in metrics:
            row = [found.get((dataset, metric)) for dataset in datasets]
            gaps = [None if item is None or item.gap is None else round(item.gap, 1) for item in row]
            bars.append(Bars(metric, gaps, [item.group.std(metric) if item and item.group else None for item in row]))
        charts.append(Chart(wording(name).title, "ours − paper, in points", categories=datasets, bars=bars))
    return charts
