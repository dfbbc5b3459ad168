"""The page `topoter demo` writes: accuracy, training, map, and how each number came about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from topoter import __version__
from topoter.report.charts import Chart, Line
from topoter.report.maps import Map
from topoter.report.page import Page, Section, part
from topoter.report.tables import Cell, CellLike, Table, compare, difference, duration, mean_and_deviation
from topoter.report.wording import texts

_PRIOR, _ACCURACY = "prior_entropy", "accuracy_"
_TYPES = {"add": "add", "delete": "delete", "keep_disconnected": "keep apart", "keep_connected": "keep connected"}
_ABOUT = {
    "agreement": ("Agreement", "How alike the embeddings are before and after the change; 1 is the same."),
    "hidden_edge_auc": (
        "Hidden edges found (AUC in %)",
        "Edges hidden from the encoder, told from other pairs by the embeddings. The epoch of the highest is kept.",
    ),
}


def write_demo_report(
    path: str | os.PathLike[str],
    *,
    dataset: str,
    rows: Sequence[Mapping[str, Any]],
    history: Sequence[Any],
    z2d: Mapping[str, npt.ArrayLike],
    labels: Sequence[int] | npt.NDArray[np.integer],
    label_names: Sequence[str] | None,
    parameters: Mapping[str, object],
    seconds: float,
    commands: Sequence[str],
    level: str = "node",
) -> None:
    """Write the report of one demo run as a single HTML file.

    Args:
        dataset: the graph's name as a reader knows it.
        rows: one mapping per method: method, val_mean, val_std, test_mean, test_std, paper_mean, paper_std,
            in percent; the paper's, and any deviation, may be `None`.
        history: the epochs of one training (`EpochRecord`s) with all metrics that they report.
        z2d: maps [N, 2] by name ("before training", "after training"); without any the section is left out.
        labels, label_names: the class of each node, and what the classes are called.
        parameters: what the encoder was trained with.
        seconds: how long all of it took.
        commands: what to type to get these numbers again.
        level: what the embeddings are of, "node" or "graph".
    """
    wording = texts().demo[level]
    page = Page(
        f"TopoTER on {dataset}",
        wording["subtitle"],
        summary=_summary(dataset, rows, seconds, wording),
        footer=f"Made by topoter {__version__}. This page is one file and loads nothing.",
    )
    page.sections.append(Section("Accuracy", wording["accuracy"], [accuracy_table(dataset, rows, level)]))
    if history:
        page.sections.append(_training(history))
    if z2d:
        page.sections.append(_map(z2d, labels, label_names, level))
    page.sections.append(_provenance(parameters, seconds, commands, wording))
    page.write(path)


def accuracy_table(dataset: str, rows: Sequence[Mapping[str, Any]], level: str = "node") -> Table:
    """Validation and test accuracy by method, with the paper's beside them where it has one."""
    best = max((row["test_mean"] for row in rows if row.get("test_mean") is not None), default=None)
    published = any(row.get("paper_mean") is not None for row in rows)
    columns = ["Method", "Validation", "Test"] + (["Paper", "Test \N{MINUS SIGN} paper"] if published else [])
    note = "A difference is within one deviation if it is no larger than the larger of both deviations."
    return Table(
        columns,
        [_method_row(row, best, published) for row in rows],
        caption=f"{level.capitalize()} classification on {dataset}, accuracy in %",
        note=note if published else "",
    )


def _method_row(row: Mapping[str, Any], best: float | None, published: bool) -> list[CellLike]:
    test, std, paper, paper_std = (row.get(key) for key in ("test_mean", "test_std", "paper_mean", "paper_std"))
    cells: list[CellLike] = [
        str(row["method"]),
        mean_and_deviation(row.get("val_mean"), row.get("val_std")),
        Cell(mean_and_deviation(test, std), strong=test is not None and test == best),
    ]
    if not published:
        return cells
    gap = None
    if test is not None and paper is not None:
        gap = difference(test - paper, compare(test, std, paper, paper_std))
    return [*cells, mean_and_deviation(paper, paper_std), gap]


def _summary(dataset: str, rows: Sequence[Mapping[str, Any]], seconds: float, wording: Mapping[str, str]) -> str:
    """One sentence, which also says so when training did not pay."""
    ours = next((row for row in rows if str(row["method"]).lower().startswith("topoter")), None)
    others = [row for row in rows if row is not ours and row.get("test_mean") is not None]
    if ours is None or ours.get("test_mean") is None:
        return f"{len(rows)} methods on {dataset}, in {duration(seconds)}."
    value = part("strong", text=f"{mean_and_deviation(ours['test_mean'], ours.get('test_std'))} %")
    text = Markup(wording["tested"]).format(dataset=dataset, value=value)  # which escapes what it puts in
    if others:
        best = max(others, key=lambda row: float(row["test_mean"]))
        gap = ours["test_mean"] - best["test_mean"]
        than = f"the best of the other rows ({best['method']}, {best['test_mean']:.1f} %)"
        text += f", {abs(gap):.1f} points {'above' if gap >= 0 else 'below'} {than}"
    return text + f". The whole run took {duration(seconds)}."


def _training(history: Sequence[Any]) -> Section:
    """The loss beside the entropy of the prior, the accuracies of the types, and whatever else was reported."""
    epochs = [record.epoch for record in history]
    names = list(dict.fromkeys(name for record in history for name in record.metrics))
    lines = {name: [record.metrics.get(name) for record in history] for name in names}
    losses, references = [Line("training loss", epochs, [record.loss for record in history])], {}
    prior = lines.pop(_PRIOR, None)
    known = [value for value in prior or () if value is not None]
    if known and max(known) - min(known) < 1e-6:
        references["entropy of the prior"] = known[0]
    elif prior and known:  # it moves where batches differ
        losses.append(Line("entropy of the prior", epochs, prior, dashed=True))
    charts = [
        Chart(
            title="Loss",
            lines=losses,
            references=references,
            x_label="epoch",
            y_label="cross entropy in nats" if known else "loss",
            caption="Above the dashed line, guessing by the shares of the types alone would do better."
            if known
            else "",
        )
    ]
    types = {name: lines.pop(name) for name in names if name.startswith(_ACCURACY)}
    if types:
        by_type = [
            Line(_TYPES.get(short := name.removeprefix(_ACCURACY), short), epochs, y) for name, y in types.items()
        ]
        charts.append(
            Chart(
                title="Share of right answers by type of change",
                lines=by_type,
                y_range=(0.0, 1.0),
                x_label="epoch",
                y_label="share right",
                caption="At 0 the decoder never names that type: another one always looks likelier.",
            )
        )
    for name, values in lines.items():
        title, caption = _ABOUT.get(name, (name.replace("_", " ").capitalize(), ""))
        line = Line(title, epochs, values)
        charts.append(Chart(title=title, lines=[line], x_label="epoch", y_label="value", caption=caption))
    return Section(
        "What the training learned",
        "In every epoch some edges are added and some deleted, and the encoder learns what of the embeddings stays and "
        "what tells of the change. These curves are of one training.",
        [part("beside", blocks=charts, kind="row")],
    )


def _map(
    panels: Mapping[str, npt.ArrayLike],
    labels: Sequence[int] | npt.NDArray[np.integer],
    label_names: Sequence[str] | None,
    thing: str,
) -> Section:
    drawn = Map(
        panels,
        labels,
        label_names=label_names,
        noun=thing,
        title="The embeddings on a plane, coloured by class",
        caption=f"Point at a dot to find the same {thing} in every panel; click a class to hide it.",
    )
    return Section(
        "The embeddings",
        f"Each dot is a {thing}. {thing.capitalize()}s with similar embeddings lie near each other; the classes were "
        "not used to place them. Distances between far groups mean little.",
        [drawn],
    )


def _provenance(
    parameters: Mapping[str, object], seconds: float, commands: Sequence[str], wording: Mapping[str, str]
) -> Section:
    return Section("How each number was obtained", wording["protocol"]).add(
        part("heading", text="To get this page again"),
        part("code", lines=commands),
        f"That took {duration(seconds)}. The same seeds on the same machine give the same numbers; another "
        "machine may differ in the last digits.",
        part("heading", text="Parameters of the training"),
        part("facts", values=parameters),
    )
