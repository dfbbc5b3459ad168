"""The page `topoter demo` writes: accuracy, training, map, and how each number came about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from topoter.report.charts import Reference, Series, line_chart, scatter_map
from topoter.report.markup import Html, code_block, duration, escape, heading, side_by_side
from topoter.report.page import Page, Section
from topoter.report.tables import MISSING, Cell, Table, compare, facts, mean_and_deviation

_TYPES = ("add", "delete", "keep apart", "keep connected")  # the order of `EdgeChange`


@dataclass(frozen=True)
class Wording:
    """What a page says of the things it is about: nodes of one graph, or graphs of a set."""

    thing: str
    subtitle: str
    accuracy: str
    tested: str
    protocol: str


WORDINGS = {
    "node": Wording(
        thing="node",
        subtitle="Node embeddings learned without labels, by predicting which edges were changed",
        accuracy="How many nodes a linear classifier names rightly from the embeddings alone: mean ± standard "
        "deviation over seeds. A method is worth its training if it beats the rows that need none.",
        tested="A linear classifier on TopoTER's embeddings of {dataset} names the class of {value} of the test nodes",
        protocol="The classifier's regularisation and scaling were chosen on validation labels; test labels were read "
        "once, for the number shown. The settings of the training were found by a search without test labels. Each "
        "seed trains a new encoder, so that a deviation includes that of the training.",
    ),
    "graph": Wording(
        thing="graph",
        subtitle="Embeddings of whole graphs learned without labels, by predicting which edges were changed",
        accuracy="How many graphs a support vector machine names rightly from the embeddings alone, in ten-fold cross "
        "validation: mean ± standard deviation over seeds. A method is worth its training if it beats the rows that "
        "need none. Validation is the accuracy within the training folds.",
        tested="A support vector machine on TopoTER's embeddings names the class of {value} of {dataset}'s graphs, "
        "each tested once in ten folds",
        protocol="The classifier's C was chosen by cross validation within each training fold, features were "
        "standardised by it, and test folds were read once, for the number shown. Each seed trains a new encoder and "
        "shuffles the folds.",
    ),
}


class Epoch(Protocol):
    """What an entry of a training history must tell (`topoter.training.EpochRecord` does)."""

    @property
    def epoch(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def prior_entropy(self) -> float: ...
    @property
    def accuracy(self) -> Sequence[float | None] | None: ...


def write_demo_report(
    path: str | os.PathLike[str],
    *,
    dataset: str,
    rows: Sequence[Mapping[str, Any]],
    history: Sequence[Epoch],
    z2d: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None,
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
        history: the epochs of one training, shares of right answers between 0 and 1.
        z2d: the map [N, 2], or maps by name ("before training", "after training"); `None` leaves it out.
        labels, label_names: the class of each node, and what the classes are called.
        parameters: what the encoder was trained with.
        seconds: how long all of it took.
        commands: what to type to get these numbers again.
        level: what the embeddings are of, a name in `WORDINGS`.
    """
    wording = WORDINGS[level]
    page = Page(
        f"TopoTER on {dataset}",
        wording.subtitle,
        summary=_summary(dataset, rows, seconds, wording),
        footer=f"Made by topoter {_version()}. This page is one file and loads nothing.",
    )
    page.add(_accuracy(dataset, rows, wording))
    if history:
        page.add(_training(history))
    if z2d is not None:
        page.add(_map(z2d, labels, label_names, wording.thing))
    page.add(_provenance(parameters, seconds, commands, wording))
    page.write(path)


def _summary(dataset: str, rows: Sequence[Mapping[str, Any]], seconds: float, wording: Wording) -> Html:
    """One sentence, which also says so when training did not pay."""
    ours = next((row for row in rows if str(row["method"]).lower().startswith("topoter")), None)
    others = [row for row in rows if row is not ours and row.get("test_mean") is not None]
    if ours is None or ours.get("test_mean") is None:
        return escape(f"{len(rows)} methods on {dataset}, in {duration(seconds)}.")
    value = mean_and_deviation(ours["test_mean"], ours.get("test_std"))
    text = Html(wording.tested.format(dataset=escape(dataset), value=f"<strong>{escape(value)} %</strong>"))
    if others:
        best = max(others, key=lambda row: float(row["test_mean"]))
        gap = ours["test_mean"] - best["test_mean"]
        than = f"the best of the other rows ({best['method']}, {best['test_mean']:.1f} %)"
        text += f", {abs(gap):.1f} points {'above' if gap >= 0 else 'below'} {than}"
    return text + f". The whole run took {duration(seconds)}."


def _accuracy(dataset: str, rows: Sequence[Mapping[str, Any]], wording: Wording) -> Section:
    tests = [row["test_mean"] for row in rows if row.get("test_mean") is not None]
    best = max(tests, default=None)
    published = any(row.get("paper_mean") is not None for row in rows)
    columns = ["Method", "Validation", "Test"] + (["Paper", "Test \N{MINUS SIGN} paper"] if published else [])
    cells = [_method_row(row, best, published) for row in rows]
    note = (
        "A difference is within one deviation if it is no larger than the larger of both deviations."
        if published
        else ""
    )
    caption = f"{wording.thing.capitalize()} classification on {dataset}, accuracy in %"
    return Section("Accuracy", wording.accuracy).add(Table(columns, cells, caption=caption, note=note).html())


def _method_row(row: Mapping[str, Any], best: float | None, published: bool) -> list[Cell]:
    test, std, paper, paper_std = (row.get(key) for key in ("test_mean", "test_std", "paper_mean", "paper_std"))
    cells = [
        Cell(str(row["method"])),
        Cell(mean_and_deviation(row.get("val_mean"), row.get("val_std"))),
        Cell(mean_and_deviation(test, std), strong=test is not None and test == best),
    ]
    if published:
        difference = Cell(MISSING)
        if test is not None and paper is not None:
            text = f"{test - paper:+.1f}".replace("-", "\N{MINUS SIGN}")
            difference = Cell(text, mark=compare(test, std, paper, paper_std))
        cells += [Cell(mean_and_deviation(paper, paper_std)), difference]
    return cells


def _training(history: Sequence[Epoch]) -> Section:
    epochs = [record.epoch for record in history]
    entropies = [record.prior_entropy for record in history]
    lines = [Series("training loss", epochs, [record.loss for record in history])]
    references = []
    if max(entropies) - min(entropies) < 1e-6:
        references.append(Reference("entropy of the prior", entropies[0]))
    else:  # it moves where batches differ
        lines.append(Series("entropy of the prior", epochs, entropies, dashed=True))
    loss = line_chart(
        lines,
        title="Loss",
        x_label="epoch",
        y_label="cross entropy in nats",
        references=references,
        caption="Above the dashed line, guessing by the shares of the types alone would do better.",
    )
    accuracies = [
        Series(name, epochs, [None if r.accuracy is None else r.accuracy[index] for r in history])
        for index, name in enumerate(_TYPES)
    ]
    by_type = line_chart(
        accuracies,
        title="Share of right answers by type of change",
        x_label="epoch",
        y_label="share right",
        y_range=(0.0, 1.0),
        caption="At 0 the decoder never names that type: another one always looks likelier.",
    )
    return Section(
        "What the training learned",
        "In every epoch some edges are added and some deleted; the decoder sees how the embeddings moved and says "
        "for each pair of nodes what was done to it. These curves are of one training.",
    ).add(side_by_side(loss, by_type))


def _map(
    z2d: npt.ArrayLike | Mapping[str, npt.ArrayLike],
    labels: Sequence[int] | npt.NDArray[np.integer],
    label_names: Sequence[str] | None,
    thing: str,
) -> Section:
    panels = z2d if isinstance(z2d, Mapping) else {"": z2d}
    return Section(
        "The embeddings",
        f"Each dot is a {thing}. {thing.capitalize()}s with similar embeddings lie near each other; the classes were "
        "not used to place them. Distances between far groups mean little.",
    ).add(
        scatter_map(
            panels,
            labels,
            label_names=label_names,
            title="The embeddings on a plane, coloured by class",
            caption=f"Point at a dot to find the same {thing} in every panel; click a class to hide it.",
        )
    )


def _provenance(parameters: Mapping[str, object], seconds: float, commands: Sequence[str], wording: Wording) -> Section:
    return Section("How each number was obtained", wording.protocol).add(
        heading("To get this page again"),
        code_block(commands),
        f"That took {duration(seconds)}. The same seeds on the same machine give the same numbers; another "
        "machine may differ in the last digits.",
        heading("Parameters of the training"),
        facts(parameters),
    )


def _version() -> str:
    try:
        return version("topoter")
    except PackageNotFoundError:  # used from a source tree that was never installed
        return "(not installed)"
