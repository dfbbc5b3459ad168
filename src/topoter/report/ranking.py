"""Which system comes where: mean ranks over the datasets of each table, and how many others it beats over all tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from topoter.report.charts import Bars, Chart
from topoter.report.found import Found, Results
from topoter.report.groups import Group
from topoter.report.tables import MISSING, Cell, CellLike, Table
from topoter.report.wording import wording

LEVEL = 0.05  # of the test that says which mean ranks differ
FEWEST_SYSTEMS, FEWEST_DATASETS = 3, 2


@dataclass(frozen=True)
class Ranking:
    """The ranks of a table's systems on each of its datasets, 1 the best; equal scores share theirs.

    A system that ran into a limit comes last. Where the table has gaps, its largest part without any is ranked;
    `left_out` are the systems that are not in it.
    """

    experiment: str
    datasets: list[str]
    systems: list[str]
    ranks: np.ndarray  # [datasets, systems]
    left_out: list[str]

    @property
    def mean_ranks(self) -> dict[str, float]:
        """By system, the best first."""
        means = dict(zip(self.systems, self.ranks.mean(axis=0).tolist()))
        return dict(sorted(means.items(), key=lambda item: item[1]))

    @property
    def shares(self) -> dict[str, list[float]]:
        """By system the share of the others that it beats on each dataset, in percent."""
        beaten = 100 * (len(self.systems) - self.ranks) / (len(self.systems) - 1)
        return dict(zip(self.systems, beaten.T.tolist()))


def ranking_of(found: Found, name_of: Callable[[Group], str]) -> Ranking | None:
    """The ranking of a table by its first metric and protocol, or None where there is too little to rank.

    Of several rows with the same name, say the recipes of one method, the best on a dataset counts.
    """
    chosen = found.experiment
    if chosen.varied or chosen.recipes:
        return None
    from scipy.stats import rankdata

    metric = chosen.metrics[0]
    scores: dict[str, dict[str, float]] = {}
    for group in found.groups:
        if group.protocol == chosen.protocols[0] and group.dataset in chosen.datasets:
            score = -math.inf if group.stopped else round(group.mean(metric), 1)
            by_dataset = scores.setdefault(name_of(group), {})
            by_dataset[group.dataset] = max(score, by_dataset.get(group.dataset, -math.inf))
    datasets, systems = _without_gaps(scores, chosen.datasets)
    if len(systems) < FEWEST_SYSTEMS or len(datasets) < FEWEST_DATASETS:
        return None
    ranks = [rankdata([-scores[name][dataset] for name in systems]) for dataset in datasets]
    return Ranking(chosen.name, datasets, systems, np.array(ranks), [name for name in scores if name not in systems])


def _without_gaps(scores: dict[str, dict[str, float]], datasets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Datasets, those first that most systems ran on, and the systems that ran on all of them: as many cells as can be.

    One dataset on which few systems ran would leave out all others.
    """
    by_runs = sorted(datasets, key=lambda dataset: -sum(dataset in by_dataset for by_dataset in scores.values()))
    best: tuple[list[str], list[str]] = ([], [])
    for count in range(FEWEST_DATASETS, len(datasets) + 1):
        taken = [dataset for dataset in datasets if dataset in by_runs[:count]]
        systems = [name for name, by_dataset in scores.items() if by_dataset.keys() >= set(taken)]
        if len(systems) * count >= len(best[0]) * len(best[1]):
            best = (taken, systems) if systems else best
    return best


def critical_difference(systems: int, datasets: int) -> float:
    """How far two mean ranks must be apart to differ, by Nemenyi's test at 5 % (Demšar, 2006)."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - LEVEL, systems, np.inf)) / math.sqrt(2)
    return q * math.sqrt(systems * (systems + 1) / (6 * datasets))


def rank_charts(results: Results) -> list[Chart]:
    """A chart for each table: mean ranks, each with half of the critical difference to both sides."""
    charts = []
    for found in results.found:
        ranking = ranking_of(found, lambda group: group.method_name)
        if ranking is None:
            continue
        means = ranking.mean_ranks
        gap = critical_difference(len(ranking.systems), len(ranking.datasets))
        left_out = f" Left out, not run on each of these: {', '.join(ranking.left_out)}." if ranking.left_out else ""
        charts.append(
            Chart(
                wording(found.name).title,
                "mean rank, 1 is the best",
                caption=f"{found.experiment.metrics[0]} on {', '.join(ranking.datasets)}. Critical "
                f"difference {gap:.1f}: two systems differ if their lines do not overlap.{left_out}",
                categories=list(means),
                bars=[Bars("mean rank", [round(value, 2) for value in means.values()], [gap / 2] * len(means))],
            )
        )
    return charts


def overall_table(results: Results) -> Table | None:
    """Over all tables: the share of the other systems that a method beats, the mean over datasets."""
    rankings = [ranking for found in results.found if (ranking := ranking_of(found, lambda group: group.method))]
    if not rankings:
        return None
    shares: dict[str, list[list[float]]] = {}
    for place, ranking in enumerate(rankings):
        for name, values in ranking.shares.items():
            shares.setdefault(name, [[] for _ in rankings])[place] = values
    rows = []
    for name, by_table in shares.items():
        every = [value for values in by_table for value in values]
        cells: list[CellLike] = [_percent(values) if values else MISSING for values in by_table]
        rows.append([name, _percent(every), Cell(str(len(every)), sort=len(every)), *cells])
    rows.sort(key=lambda row: -(row[1].sort or 0.0) if isinstance(row[1], Cell) else 0.0)
    titles = [wording(ranking.experiment).title for ranking in rankings]
    return Table(
        ["method", "all tasks", "datasets", *titles],
        rows,
        caption="Share of the other systems that a method beats, in %, mean over datasets",
        note="A method's best recipe counts. Compare within a column: a method of one task has met other systems.",
    )


def _percent(values: Sequence[float]) -> Cell:
    mean = sum(values) / len(values)
    return Cell(f"{mean:.0f}", sort=mean)
