"""The map of an embedding: one dot per node, coloured by class, drawn on a canvas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from topoter.errors import DataError, UsageError
from topoter.report.charts.axes import color
from topoter.report.markup import Html, data_script, escape, figure, join, paragraph

MOST_POINTS = 20_000
_GRID = 4095  # coordinates become whole numbers up to this: finer than any screen, and short as text


def scatter_map(
    panels: Mapping[str, npt.ArrayLike],
    labels: Sequence[int] | npt.NDArray[np.integer],
    *,
    title: str,
    label_names: Sequence[str] | None = None,
    ids: Sequence[object] | None = None,
    noun: str = "node",
    caption: str = "",
) -> Html:
    """Dots coloured by class; the legend hides classes, pointing at a dot names it in every panel.

    Args:
        panels: name -> coordinates [N, 2]; several panels show the same nodes side by side.
        labels: the class of each node, from 0; -1 is a node without one.
        label_names: the classes' names; their numbers unless given.
        ids: what to call each node; its number unless given.
        noun: what a dot is.
    """
    points = {name: np.asarray(panel, dtype=np.float64) for name, panel in panels.items()}
    classes = np.asarray(labels, dtype=np.int64)
    for name, panel in points.items():
        if panel.shape != (len(classes), 2):
            raise UsageError(f"The map {name!r} must be [{len(classes)}, 2]. Got the shape {panel.shape}.")
        if not np.isfinite(panel).all():
            raise DataError(f"The map {name!r} has coordinates that are not finite.")
    if ids is not None and len(ids) != len(classes):
        raise UsageError(f"The map has {len(classes)} points and {len(ids)} ids.")
    # In random order no class is painted over all others; the seed keeps the page the same every time.
    order = np.random.default_rng(0).permutation(len(classes))[:MOST_POINTS]
    present = sorted(int(value) for value in np.unique(classes))
    names = {value: _class_name(value, label_names) for value in present}
    position = {value: index for index, value in enumerate(present)}
    data = {
        "noun": noun,
        "names": [names[value] for value in present],
        "colors": [value % 10 if value >= 0 else None for value in present],
        "shapes": [value // 10 % 3 if value >= 0 else 0 for value in present],
        "class": [position[int(classes[index])] for index in order],
        "ids": [str(ids[index]) if ids is not None else int(index) for index in order],
        "panels": [to_grid(panel, _GRID)[order].T.tolist() for panel in points.values()],
    }
    boxes = join(_canvas(name, len(order), len(present), noun) for name in points)
    sampled = (
        paragraph(f"Shown: {len(order):,} of {len(classes):,} {noun}s, drawn at random.", "note")
        if len(order) < len(classes)
        else Html("")
    )
    content = (
        f'<div class="scatter" data-chart="scatter">{_legend(names, Counter(classes.tolist()))}'
        f'<div class="panels">{boxes}</div>{data_script(data)}'
        "<noscript><p>The map needs JavaScript.</p></noscript></div>"
    )
    return figure(Html(content) + sampled, title=title, caption=caption)


def to_grid(points: npt.NDArray[np.float64], largest: int) -> npt.NDArray[np.int64]:
    """Whole-number coordinates up to `largest`, [N, 2]; one scale for both axes, as distances are what a map shows."""
    if not len(points):
        return np.zeros((0, 2), dtype=np.int64)
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    centred = (points - (low + high) / 2) / size + 0.5
    centred[:, 1] = 1 - centred[:, 1]  # a screen counts from the top
    return np.rint(centred * largest).astype(np.int64)


def _class_name(value: int, label_names: Sequence[str] | None) -> str:
    if value < 0:
        return "no label"
    return str(label_names[value]) if label_names is not None and value < len(label_names) else str(value)


def _canvas(name: str, count: int, num_classes: int, noun: str) -> Html:
    label = f"{name}: a map of {count:,} {noun}s in {num_classes} classes" if name else f"A map of {count:,} {noun}s"
    heading = f"<h3>{escape(name)}</h3>" if name else ""
    return Html(
        f'<div class="panel">{heading}<div class="canvas-box">'
        f'<canvas role="img" aria-label="{escape(label)}"></canvas><span class="ring" hidden></span></div></div>'
    )


def _legend(names: Mapping[int, str], counts: Mapping[int, int]) -> Html:
    items = join(
        Html(
            f'<li><button type="button" aria-pressed="true" data-class="{index}">'
            f'<span class="swatch shape{value // 10 % 3 if value >= 0 else 0}" '
            f'style="--color:{color(value) if value >= 0 else "var(--soft)"}"></span>'
            f'{escape(name)} <span class="count">{counts[value]:,}</span></button></li>'
        )
        for index, (value, name) in enumerate(names.items())
    )
    return Html(f'<ul class="legend toggles" aria-label="Classes shown">{items}</ul>')
