"""From records to the tables of experiments: mean and deviation over seeds, the paper's value beside them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from topoter.errors import UsageError
from topoter.experiments.experiment import Experiment
from topoter.experiments.limits import Stopped
from topoter.experiments.recipes import DEFAULT, load_recipe
from topoter.experiments.store import Record
from topoter.report.tables import MISSING, Cell, CellLike, Mark, Table, compare, many, mean_and_deviation

OURS = "topoter"
# The same system without TopoTER's training, and peers that share its pair decoder where there is one.
WITHOUT_TRAINING = ("random-init", "propagated", "propagated-tuned", "no-pretraining")
PEERS = ("gae", "vgae")
# The authors' protocol selects on test labels: its numbers stand in a column of their own.
COLUMNS = {
    "validation": "ours",
    "paper": "ours, selects on test",
    "held-out-pairs": "held-out pairs",
    "next-snapshot": "next snapshot",
}
MOST_COLUMNS = 8  # a table with more is not read any more: every dataset gets its own
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


# ---- judging ---------------------------------------------------------------------------------------------------------


def judge(group: Group, metric: str, beside: Iterable[Group]) -> Mark | None:
    """Ours against the paper's; None where the paper has no number.

    `beside` are the other rows of the table: a number of TopoTER that is better than the paper's does not count as won
    by training if a row without that training is better than the paper's too, or no worse than ours.
    """
    mark = None if group.stopped else _against_paper(group, metric, group.published(metric))
    if mark is not Mark.BETTER or group.method != OURS:
        return mark
    controls = [other for other in beside if _is_control(other, group) and metric in other.scores]
    explained = any(
        _against_paper(other, metric, group.published(metric)) is Mark.BETTER or _no_worse(other, group, metric)
        for other in controls
    )
    return Mark.UNTRAINED if explained else mark


def _against_paper(group: Group, metric: str, paper: Mapping[str, float] | None) -> Mark | None:
    return compare(group.mean(metric), group.std(metric), paper["mean"], paper.get("std")) if paper else None


def _is_control(other: Group, ours: Group) -> bool:
    """Whether a row is ours without TopoTER's training; of links only one with the same decoder is."""
    alike = (other.dataset, other.protocol, other.point) == (ours.dataset, ours.protocol, ours.point)
    without = other.method in WITHOUT_TRAINING or (other.method in PEERS and ours.decoder is not None)
    return alike and without and other.decoder == ours.decoder


def _no_worse(other: Group, ours: Group, metric: str) -> bool:
    """Whether ours is not above the other by more than one standard error of the difference."""
    mine, theirs = ours.scores[metric], other.scores[metric]
    if ours.seeds == other.seeds and len(mine) == len(theirs) == len(ours.seeds):  # seed by seed
        error = _variance([a - b for a, b in zip(mine, theirs)]) / len(mine)
    else:
        error = _variance(mine) / len(mine) + _variance(theirs) / len(theirs)
    return statistics.fmean(mine) - statistics.fmean(theirs) <= math.sqrt(error)


def _variance(values: Sequence[float]) -> float:
    return statistics.variance(values) if len(values) > 1 else 0.0


# ---- tables ----------------------------------------------------------------------------------------------------------


def tables_of(experiment: Experiment, records: Iterable[Record], seeds: int) -> list[Table]:
    """The experiment's table, ours beside the paper's; one per dataset where it would be too wide, or is a study.

    `seeds` is how many the table is over: a row of fewer says so.
    """
    groups = groups_of(experiment, records)
    groups += means_of(experiment, groups)
    datasets = list(dict.fromkeys(group.dataset for group in groups))
    if experiment.varied:
        made = [_study(experiment, groups, name, metric, seeds) for name in datasets for metric in experiment.metrics]
    else:
        made = [_table(experiment, groups, datasets, seeds)]
        if len(datasets) > 1 and (len(experiment.metrics) > 1 or len(made[0].columns) > MOST_COLUMNS):
            made = [_table(experiment, groups, [dataset], seeds) for dataset in datasets]
    # Of a study nothing is published, and no row is to win.
    best = "" if experiment.recipes else "; the best of a column is bold"
    made[-1].note = f"Mean ± standard deviation over {many(seeds, 'seed')}, fewer where said{best}."
    return made


Column = dict[str, CellLike]  # by the name of the row


def _table(experiment: Experiment, groups: Sequence[Group], datasets: Sequence[str], seeds: int) -> Table:
    """Methods by row; per dataset and metric ours under each protocol, and the paper's where it has one."""
    here = [group for group in groups if group.dataset in datasets]
    rows = list(dict.fromkeys(group.method_name for group in here))
    study = experiment.recipes is not None
    columns: dict[str, Column] = {}
    for dataset in datasets:
        own = [group for group in here if group.dataset == dataset]
        protocols = sorted({group.protocol for group in own}, key=_protocol_place)
        for metric in experiment.metrics:
            title = dataset if len(datasets) > 1 else metric
            for protocol in protocols:
                shown = [g for g in own if g.protocol == protocol and (metric in g.scores or g.stopped)]
                name = title if study else f"{title}, {COLUMNS.get(protocol, protocol)}"
                columns[name] = _ours(shown, metric, seeds, bold=not study)
            papers = {g.method_name: text for g in own if (text := published_text(g.paper, metric)) != MISSING}
            if papers:
                columns[f"{title}, paper"] = {g.method_name: papers.get(g.method_name, MISSING) for g in own}
    body = [[name, *(column.get(name, "") for column in columns.values())] for name in rows]
    what = experiment.measures
    caption = f"{datasets[0]}: {what} in %" if len(datasets) == 1 else f"{what.capitalize()} in %"
    return Table(["method", *columns], body, caption=caption)


def _protocol_place(protocol: str) -> tuple[int, str]:
    """Protocols in the order of `COLUMNS`, unknown ones after them."""
    known = list(COLUMNS)
    return (known.index(protocol) if protocol in known else len(known), protocol)


def _ours(groups: Sequence[Group], metric: str, seeds: int, bold: bool) -> Column:
    means = {group.method_name: round(group.mean(metric), 1) for group in groups if not group.stopped}
    wanted = min if "error" in metric else max
    best = wanted(means.values()) if bold and len(means) > 1 else None
    return {
        group.method_name: Cell(
            _counted(group, metric, seeds),
            sort=None if group.stopped else group.mean(metric),
            mark=judge(group, metric, groups),
            strong=best is not None and means.get(group.method_name) == best,
        )
        for group in groups
    }


def _counted(group: Group, metric: str, seeds: int) -> str:
    """Mean and deviation; the number of seeds where it is smaller than that of the table."""
    text, runs = group.text(metric), len(group.seeds)
    if group.stopped:
        return text
    if group.values > runs:
        return f"{text} ({many(runs, 'encoder')}, {group.values} restarts)"
    return text if runs >= seeds else f"{text} ({many(runs, 'seed')})"


def _study(experiment: Experiment, groups: Sequence[Group], dataset: str, metric: str, seeds: int) -> Table:
    """Methods by row, the values of the varied parameters by column; what they make no difference to is in all."""
    varied = experiment.varied
    here = [group for group in groups if group.dataset == dataset]
    there = {point for group in here if (point := _point(group.point, varied))}
    points = [point for variation in experiment.variations if (point := _point(variation, varied)) in there]
    points = points or [""]  # all rows are level
    rows: dict[str, Column] = {}
    for group in here:
        row = rows.setdefault(group.method_name, dict.fromkeys(points, ""))
        value = Cell(_counted(group, metric, seeds), sort=None if group.stopped else group.mean(metric))
        point = _point(group.point, varied)
        row |= dict.fromkeys([point] if point else points, value)
    body = [[name, *row.values()] for name, row in rows.items()]
    by = " and ".join(name.replace("num_", "number of ").replace("_", " ") for name in varied)
    return Table(["method", *points], body, caption=f"{dataset}: {metric} in %, by {by}")


def _point(point: Mapping[str, Any], varied: Sequence[str]) -> str:
    return ", ".join(str(point[name]) for name in varied if name in point)


def size_table(sizes: Sequence[Mapping[str, Any]]) -> Table:
    """Numbers of parameters, ours beside the paper's."""
    body = [[size["method"], size["ours"], size["paper"], Cell(size["note"], wrap=True)] for size in sizes]
    return Table(["method", "ours", "paper", "note"], body, caption="Numbers of parameters")
