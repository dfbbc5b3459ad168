"""The tables of experiments: mean and deviation over seeds, the paper's value beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from topoter.experiments.experiment import Experiment
from topoter.experiments.store import Record
from topoter.report.groups import Group, groups_of, means_of, published_text
from topoter.report.judging import judge
from topoter.report.tables import MISSING, Cell, CellLike, Table, many

# The authors' protocol selects on test labels: its numbers stand in a column of their own.
COLUMNS = {
    "validation": "ours",
    "paper": "ours, selects on test",
    "held-out-pairs": "held-out pairs",
    "next-snapshot": "next snapshot",
}
MOST_COLUMNS = 8  # a table with more is not read any more: every dataset gets its own


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
