"""From records to the rows of tables: the seeds of a method put together, the paper's value beside them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from topoter.errors import UsageError
from topoter.experiments.experiment import Experiment
from topoter.experiments.limits import Stopped
from topoter.experiments.recipes import DEFAULT, load_recipe
from topoter.experiments.store import Record
from topoter.report.tables import MISSING, mean_and_deviation

OURS = "topoter"
_SHORT = {"validation accuracy": "val", "validation AUC": "val"}


@dataclass(frozen=True)
class Group:
    """One row of a table on one dataset: its records by increasing seed, and what they scored.

    `scores` are in percent, by metric, one value per run, or several where a run restarts its classifier. `paper` is
    what the paper has: a mean and a deviation, or these by metric.
    """

    dataset: str
    method: str
    recipe: str
    protocol: str
    point: dict[str, Any]
    paper: Mapping[str, Any] | None
    scores: dict[str, list[float]]
    records: list[Record]

    def mean(self, metric: str) -> float:
        return statistics.fmean(self.scores[metric])

    def std(self, metric: str) -> float | None:
        """Deviation over runs; a single one has none."""
        values = self.scores[metric]
        return statistics.stdev(values) if len(values) > 1 else None

    def text(self, metric: str) -> str:
        """Mean and deviation, or the limit that ended every run."""
        if self.stopped:
            return self.stopped.text
        return mean_and_deviation(self.mean(metric), self.std(metric))

    def published(self, metric: str) -> Mapping[str, float] | None:
        return published(self.paper, metric)

    @property
    def row(self) -> tuple[str, ...]:
        """What tells the row of a table from others, whatever the dataset."""
        return (self.method, self.recipe, self.protocol, repr(self.point))

    @property
    def seeds(self) -> list[int]:
        """One encoder each; the mean of several datasets counts a seed once."""
        return sorted({record.seed for record in self.records})

    @property
    def values(self) -> int:
        """How many scores there are."""
        return len(next(iter(self.scores.values()), ()))

    @property
    def stopped(self) -> Stopped | None:
        """The limit that ended the runs, where none of them has a score."""
        return next((record.stopped for record in self.records), None) if not self.scores else None

    @property
    def decoder(self) -> str | None:
        """That of pairs: a number of links means little without it."""
        return self.records[0].parameters.get("decoder")

    @property
    def labelled(self) -> bool:
        """Whether the method was trained with labels."""
        return self.records[0].details.get("trained_with") == "labels"

    @property
    def method_name(self) -> str:
        """The method, and its recipe where there are two, or that it was trained with labels."""
        if self.labelled:
            return f"{self.method} (with labels)"
        recipe = f"{self.recipe}, {self.decoder}" if self.decoder else self.recipe
        # Untrained, the encoder of the default is another one than that of the recipes.
        several = self.method == OURS or (self.method == "random-init" and self.recipe == DEFAULT)
        return f"{self.method} ({recipe})" if several or self.decoder else self.method


def published(paper: Mapping[str, Any] | None, metric: str) -> Mapping[str, float] | None:
    """The paper's mean and deviation of a metric; a recipe with a single metric does not name it."""
    return paper if paper is None or "mean" in paper else paper.get(metric.lower())


def published_text(paper: Mapping[str, Any] | None, metric: str) -> str:
    """The paper's value as a table shows it: a number, or the limit that its authors ran into."""
    if paper and "limit" in paper:
        return str(paper["limit"])
    found = published(paper, metric)
    return mean_and_deviation(found["mean"], found.get("std")) if found else MISSING


def groups_of(experiment: Experiment, records: Iterable[Record]) -> list[Group]:
    """The seeds of every row put together, in the order of the experiment's datasets, rows and points."""
    grouped: dict[tuple[Any, ...], list[Record]] = {}
    for record in sorted(records, key=lambda item: item.seed):
        grouped.setdefault(record.key[:-1], []).append(record)
    return sorted((_group(experiment, same) for same in grouped.values()), key=lambda group: _place(experiment, group))


def _group(experiment: Experiment, records: list[Record]) -> Group:
    first = records[0]
    scores: dict[str, list[float]] = {}
    for record in records:
        for metric, values in record.scores.items():
            scores.setdefault(metric, []).extend(values)
    row = (first.dataset, first.method, first.recipe, first.protocol, first.point)
    return Group(*row, _paper(experiment, first), scores, records)


def _paper(experiment: Experiment, record: Record) -> Mapping[str, Any] | None:
    if experiment.recipes:  # the paper's value there is not that of any point here
        return None
    try:
        return load_recipe(experiment.name, record.method, record.dataset, record.recipe).paper
    except UsageError:  # a recipe that is gone, or a method of the user's own
        return None


def _place(experiment: Experiment, group: Group) -> tuple[Any, ...]:
    datasets = list(experiment.datasets)
    known = datasets.index(group.dataset) if group.dataset in datasets else len(datasets)
    rows = [
        number
        for number, row in enumerate(experiment.rows)
        if (row.method, row.protocol) == (group.method, group.protocol) and row.recipe in (None, group.recipe)
    ]
    points = [n for n, varied in enumerate(experiment.variations) if group.point.items() <= varied.items()]
    return known, group.dataset, *(min(found, default=10**6) for found in (rows, points)), group.row


def means_of(experiment: Experiment, groups: Sequence[Group]) -> list[Group]:
    """The rows averaged over the datasets of each of the experiment's `means`, seed by seed, where all of them are."""
    averaged = []
    for name, datasets in experiment.means.items():
        rows: dict[tuple[str, ...], list[Group]] = {}
        for group in groups:
            if group.dataset in datasets:
                rows.setdefault(group.row, []).append(group)
        averaged += [_mean(name, same) for same in rows.values() if len(same) == len(datasets)]
    return averaged


def _mean(name: str, groups: Sequence[Group]) -> Group:
    common = set.intersection(*(set(group.seeds) for group in groups))
    records = [record for group in groups for record in group.records if record.seed in common]
    by_seed = {seed: [record for record in records if record.seed == seed] for seed in sorted(common)}
    metrics = [metric for metric in groups[0].scores if all(metric in record.scores for record in records)]
    scores = {
        metric: [statistics.fmean(v) for same in by_seed.values() for v in zip(*(r.scores[metric] for r in same))]
        for metric in metrics
    }
    return replace(groups[0], dataset=name, scores=scores, records=records)


def rows_of(experiment: Experiment, records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows for machines: the first metric plain, the others by their names."""
    groups = groups_of(experiment, records)
    return [_as_dict(experiment, group) for group in (*groups, *means_of(experiment, groups))]


def _as_dict(experiment: Experiment, group: Group) -> dict[str, Any]:
    first = experiment.metrics[0]
    content = {
        "dataset": group.dataset,
        "method": group.method,
        "recipe": group.recipe,
        "protocol": group.protocol,
        "metric": first,
        "mean": None if group.stopped else group.mean(first),
        "std": None if group.stopped else group.std(first),
        "runs": group.scores.get(first, []),
        "paper": group.paper,
    }
    content |= {"stopped": group.stopped.text} if group.stopped else {}
    content |= {"decoder": group.decoder} if group.decoder else {}
    content |= {"variation": group.point} if group.point else {}
    for metric in group.scores:
        if metric != first:
            name = _SHORT.get(metric, metric.lower())
            content |= {f"{name}_mean": group.mean(metric), f"{name}_std": group.std(metric)}
    return content
