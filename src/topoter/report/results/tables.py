"""The tables of the experiments, ours beside the paper's, for a page or for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topoter.experiments.tables import COLUMNS
from topoter.report.markup import many
from topoter.report.results.remarks import Remarks
from topoter.report.results.standing import Standing
from topoter.report.results.stored import Entry, Found
from topoter.report.results.wording import wording
from topoter.report.tables import MISSING, Cell, CellLike, Table, compare, mean_and_deviation


def tables_of(found: Found) -> list[Table]:
    """One table with all datasets beside each other; one per dataset if it would be too wide, or is a study."""
    if found.varied:
        return [_study(found, dataset, metric) for dataset in found.datasets for metric in found.experiment.metrics]
    if len(found.experiment.metrics) == 1:
        return [_table(found, found.datasets)]
    averaged = dict.fromkeys(entry.dataset for entry in found.means)
    return [_table(found, [dataset]) for dataset in (*found.datasets, *averaged)]


def measured(entry: Entry, metric: str, seeds: int) -> str:
    """Mean and deviation; the number of seeds where it is smaller than that of the table."""
    runs, values = entry.seeds, entry.values
    deviation = entry.cell.std(metric) if values > 1 else None
    text = mean_and_deviation(entry.cell.mean(metric), deviation)
    if values > runs:
        return f"{text} ({many(runs, 'encoder')}, {values} restarts)"
    return text if runs >= seeds else f"{text} ({many(runs, 'seed')})"


def _table(found: Found, datasets: Sequence[str]) -> Table:
    """Methods by row; per dataset and metric ours under each protocol, and the paper's where it has one."""
    entries = [entry for entry in (*found.entries, *found.means) if entry.dataset in datasets]
    rows: dict[str, dict[tuple[str, str], Entry]] = {}
    for entry in entries:
        rows.setdefault(entry.cell.method_name, {})[entry.dataset, entry.cell.protocol] = entry
    # Of a study nothing is published: no column has to be told from the paper's, and no row is to win.
    study = found.experiment.recipes is not None
    header, columns = ["method"], []
    for dataset in datasets:
        here = [entry for entry in entries if entry.dataset == dataset]
        protocols = sorted({entry.cell.protocol for entry in here}, key=_place)
        for metric in found.experiment.metrics:
            title = dataset if len(datasets) > 1 else metric
            for protocol in protocols:
                header.append(title if study else f"{title}, {COLUMNS.get(protocol, protocol)}")
                columns.append(_ours(rows, dataset, protocol, metric, found.seeds, bold=not study))
            if any(entry.cell.published(metric) for entry in here):
                header.append(f"{title}, paper")
                columns.append(_papers(rows, dataset, protocols, metric))
    body = [[name, *(column[name] for column in columns)] for name in rows]
    what = found.experiment.measures
    caption = f"{datasets[0]}: {what} in %" if len(datasets) == 1 else f"{what.capitalize()} in %"
    return Table(header, body, caption=caption, note=_note(found, bold=len(rows) > 1 and not study))


def _place(protocol: str) -> tuple[int, str]:
    """Protocols in the order of `COLUMNS`, unknown ones after them."""
    known = list(COLUMNS)
    return (known.index(protocol) if protocol in known else len(known), protocol)


Column = dict[str, CellLike]


def _ours(
    rows: dict[str, dict[tuple[str, str], Entry]], dataset: str, protocol: str, metric: str, seeds: int, bold: bool
) -> Column:
    here = {name: entry for name, by_place in rows.items() if (entry := by_place.get((dataset, protocol)))}
    means = {name: round(entry.cell.mean(metric), 1) for name, entry in here.items()}
    best = max(means.values()) if bold and len(means) > 1 else None
    column: Column = dict.fromkeys(rows, "")
    for name, entry in here.items():
        published = entry.cell.published(metric)
        mean = entry.cell.mean(metric)
        column[name] = Cell(
            measured(entry, metric, seeds),
            sort=mean,
            mark=compare(mean, entry.cell.std(metric), published["mean"], published.get("std")) if published else None,
            strong=means[name] == best,
        )
    return column


def _papers(
    rows: dict[str, dict[tuple[str, str], Entry]], dataset: str, protocols: Sequence[str], metric: str
) -> Column:
    column: Column = {}
    for name, by_place in rows.items():
        here = [by_place[dataset, protocol] for protocol in protocols if (dataset, protocol) in by_place]
        column[name] = here[0].cell.paper(metric) if here else ""
    return column


def _study(found: Found, dataset: str, metric: str) -> Table:
    """Methods by row, the values of the varied parameters by column; what they make no difference to is in all."""
    entries = [entry for entry in found.entries if entry.dataset == dataset]
    there = {point for entry in entries if (point := _point(entry.cell.variation, found.varied))}
    planned = [_point(variation, found.varied) for variation in found.experiment.variations]
    points = [point for point in planned if point in there]
    rows: dict[str, Column] = {}
    for entry in entries:
        row = rows.setdefault(entry.cell.method_name, dict.fromkeys(points, ""))
        value = Cell(measured(entry, metric, found.seeds), sort=entry.cell.mean(metric))
        point = _point(entry.cell.variation, found.varied)
        row |= dict.fromkeys([point] if point else points, value)
    body = [[name, *row.values()] for name, row in rows.items()]
    by = " and ".join(name.replace("num_", "number of ").replace("_", " ") for name in found.varied)
    caption = f"{dataset}: {metric} in %, by {by}"
    return Table(["method", *points], body, caption=caption, note=_note(found, bold=False))


def _point(variation: dict[str, Any], varied: Sequence[str]) -> str:
    return ", ".join(str(variation[name]) for name in varied if name in variation)


def _note(found: Found, bold: bool) -> str:
    best = "; the best of a column is bold" if bold else ""
    return f"Mean ± standard deviation over {many(found.seeds, 'seed')}, fewer where said{best}."


def standing_tables(items: Sequence[Standing], remarks: Remarks) -> list[Table]:
    """Per experiment every published number of TopoTER with ours, and a remark where there is one."""
    names = list(dict.fromkeys(item.experiment for item in items))
    return [_standing([item for item in items if item.experiment == name], remarks) for name in names]


def _standing(items: Sequence[Standing], remarks: Remarks) -> Table:
    name = items[0].experiment
    several = len({item.metric for item in items}) > 1
    said = [remarks.of_number(name, item.dataset, item.recipe) if item.mark else "" for item in items]
    header = ["dataset", *(["metric"] if several else []), "recipe", "ours", "seeds", "paper", "difference", "standing"]
    body = [[item.dataset, *([item.metric] if several else []), *_standing_row(item)] for item in items]
    if any(said):
        header.append("remark")
        body = [[*row, Cell(remark, wrap=True)] for row, remark in zip(body, said)]
    caption = f"{wording(name).title}: {' and '.join(dict.fromkeys(item.metric for item in items))} of TopoTER in %"
    return Table(header, body, caption=caption, note=remarks.of_experiment(name))


def _standing_row(item: Standing) -> list[CellLike]:
    published = item.published
    ours, seeds, difference = Cell(MISSING), Cell(MISSING), Cell(MISSING)
    if item.entry is not None:
        mean, runs, values = item.entry.cell.mean(item.metric), item.entry.seeds, item.entry.values
        ours = Cell(mean_and_deviation(mean, item.entry.cell.std(item.metric) if values > 1 else None), sort=mean)
        seeds = Cell(f"{runs} ({values} restarts)" if values > runs else str(runs), sort=runs)
        gap = mean - published["mean"]
        difference = Cell(f"{gap:+.1f}".replace("-", "\N{MINUS SIGN}"), sort=gap)
    paper = mean_and_deviation(published["mean"], published.get("std"))
    return [item.row_name, ours, seeds, paper, difference, Cell(item.word, mark=item.mark)]


def counts_table(by_row: dict[tuple[str, str], dict[str, int]]) -> Table:
    """Better, within, worse and not run, by experiment and recipe."""
    words = list(next(iter(by_row.values())))
    body: list[list[CellLike]] = [
        [wording(name).title, row, *(counted[word] for word in words)] for (name, row), counted in by_row.items()
    ]
    return Table(["experiment", "recipe", *words], body, caption="Counts by experiment and recipe")


def size_table(sizes: Sequence[dict[str, object]]) -> Table:
    """Numbers of parameters, ours beside the paper's."""
    body: list[list[CellLike]] = [
        [str(size["method"]), _whole(size["ours"]), _whole(size["paper"]), Cell(str(size["note"]), wrap=True)]
        for size in sizes
    ]
    return Table(["method", "ours", "paper", "note"], body, caption="Numbers of parameters")


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
