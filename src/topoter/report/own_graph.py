"""What an evaluation on a user's own graph found, as a table and as a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from topoter import __version__
from topoter.experiments.own_graph import OURS, OwnRow, difference
from topoter.report.page import Page, Section, part
from topoter.report.tables import Cell, Mark, Table, many, mean_and_deviation
from topoter.report.tables import difference as shown_difference

_PROTOCOL = {
    "labels": "Every method sees the same splits; what is chosen is chosen on validation labels, and test labels are "
    "read once. random-init is topoter's encoder before training.",
    "link": "In each, other edges are hidden, the same for every method; what is chosen is chosen on a part of them, "
    "and the others are told from pairs that are no edges once. no-pretraining is the same training from a random "
    "start.",
}


def own_table(rows: Sequence[OwnRow], caption: str) -> Table:
    """A row per method; ours is held against each of the others, split by split."""
    ours = next((row for row in rows if row.method == OURS), None)
    metrics = list(next(row for row in reversed(rows)).scores)
    best = max(row.mean for row in rows)
    first, *others = (f"{metric} %" for metric in metrics)
    columns = ["method", first, *(["topoter − it", "p"] if ours else []), *others]
    note = "Signs stand where p is below 0.05; without one a difference may be chance." if ours else ""
    return Table(columns, [_cells(row, ours, metrics, best) for row in rows], caption=caption, note=note)


def _cells(row: OwnRow, ours: OwnRow | None, metrics: Sequence[str], best: float) -> list[Any]:
    cells: list[Any] = []
    for place, metric in enumerate(metrics):
        other = OwnRow(row.method, {metric: row.scores[metric]})
        cells.append(Cell(mean_and_deviation(other.mean, other.std), strong=place == 0 and row.mean == best))
    beside: list[Any] = []  # of the first metric
    if ours is not None:
        gap = None if row is ours else difference(ours, row)
        mark = None if gap is None or not gap.certain else Mark.BETTER if gap.mean > 0 else Mark.WORSE
        beside = [
            None if gap is None else shown_difference(gap.mean, mark if gap.p is not None else None),
            None if gap is None or gap.p is None else f"{gap.p:.2g}",
        ]
    return [row.method, cells[0], *beside, *cells[1:]]


def own_json(task: str, graph: str, rows: Sequence[OwnRow], said: Sequence[str], seconds: float) -> dict[str, Any]:
    """The same for machines."""
    ours = next((row for row in rows if row.method == OURS), None)
    listed = []
    for row in rows:
        one: dict[str, Any] = {"method": row.method, "mean": row.mean, "std": row.std}
        one["runs"] = {metric: list(values) for metric, values in row.scores.items()}
        if ours is not None and row is not ours:
            gap = difference(ours, row)
            one["ours_minus_it"] = {"mean": gap.mean, "std": gap.std, "p": gap.p}
        listed.append(one)
    metric = next(iter(rows[-1].scores))
    return {"task": task, "graph": graph, "metric": metric, "rows": listed, "verdict": list(said), "seconds": seconds}


def write_own_page(
    path: str | os.PathLike[str],
    table: Table,
    said: Sequence[str],
    *,
    task: str,
    graph: str,
    seeds: int,
    notes: Sequence[str],
    command: str,
) -> None:
    """One self-contained page."""
    page = Page(
        f"Embeddings of {graph}",
        "How well each predicts what you know",
        summary=" ".join(said),
        footer=f"Made by topoter {__version__}. This page is one file and loads nothing.",
    )
    intro = (
        f"Mean and deviation over {many(seeds, 'split')}. {_PROTOCOL['link' if task == 'link' else 'labels']} "
        "A p-value is that of the paired t-test over the splits."
    )
    page.sections.append(Section("Scores", intro, [table]))
    page.sections.append(Section("The data", "", list(notes)))
    page.sections.append(Section("Again", "The command that made this page:", [part("code", lines=[command])]))
    page.write(path)
