"""Charts as inline vector graphics, in the page's own colours, with their values under the pointer.

A `Chart` says what is shown; this file finds the places, and `templates/charts.html.j2` draws. Coordinates are those of
the drawing, which the page stretches to the room there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from topoter.errors import UsageError
from topoter.report.axes import PALETTE_SIZE, ColorScale, Frame, Scale, Tick, nice_range, tick_labels
from topoter.report.page import coordinate, templates

_BAR, _GAP = 16.0, 14.0  # height of a bar, space between groups
_LONGEST = 18  # characters of a category's name; the whole is told under the pointer

Point = tuple[float, float, float]  # x, y, half the height of the band


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Args:
        name: what the legend calls it.
        x, y: the points; `None` or NaN in `y` leaves a gap.
        error: half the height of the band around `y`, e.g. the deviation over seeds; `None` where there is none.
        dashed: draw it as a comparison rather than a result.
        markers: a dot on every point, for the few points of a parameter study.
        color: its number in the palette; its place in the chart unless given.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    error: Sequence[float | None] | None = None
    dashed: bool = False
    markers: bool = False
    color: int | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or (self.error is not None and len(self.error) != len(self.y)):
            raise UsageError(f"The x, y and error of the line {self.name!r} must be equally long.")

    @property
    def runs(self) -> list[list[Point]]:
        """The stretches between gaps."""
        runs: list[list[Point]] = [[]]
        for x, y, error in zip(self.x, self.y, self.error or [None] * len(self.y)):
            if y is not None and math.isfinite(y):
                runs[-1].append((float(x), float(y), float(error or 0.0)))
            else:
                runs.append([])
        return [run for run in runs if run]

    @property
    def points(self) -> list[Point]:
        return [point for run in self.runs for point in run]


@dataclass(frozen=True)
class Bars:
    """One bar per category: a method over datasets, say. `None` is a missing bar."""

    name: str
    values: Sequence[float | None]
    error: Sequence[float | None] | None = None


@dataclass(frozen=True)
class Chart:
    """A chart: of lines, of bars (horizontal, from zero), or of matrices as heat maps. It has one of the three.

    Args:
        title: above it; `label` is what it is called for those who cannot see it, if its title stands elsewhere.
        x_label, y_label: of the axes.
        caption: a line below it.
        lines: over one x axis; `references` are dashed levels by name, `y_range` the ends of the y axis, else round
            numbers around the data.
        bars: grouped by `categories`, each with its value and, if given, its deviation along the x axis.
        panels: name -> matrix, side by side on one scale of colours; NaN stays empty. `value_range` are the ends of the
            scale, those of the data unless given.
    """

    title: str = ""
    x_label: str = ""
    y_label: str = ""
    label: str = ""
    caption: str = ""
    lines: Sequence[Line] = ()
    references: Mapping[str, float] = field(default_factory=dict)
    y_range: tuple[float, float] | None = None
    categories: Sequence[str] = ()
    bars: Sequence[Bars] = ()
    panels: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    value_label: str = "value"
    value_range: tuple[float, float] | None = None

    def __html__(self) -> Markup:
        kind = "heat" if self.panels else "bars" if self.bars else "lines"
        drawing = {"heat": _heat, "bars": _bars, "lines": _lines}[kind](self)
        module = templates().get_template("charts.html.j2").module
        markup: Markup = module.figure(self, getattr(module, kind)(self, **drawing))
        return markup


def _lines(chart: Chart) -> dict[str, Any]:
    frame = Frame()
    lines = [replace(line, color=place) if line.color is None else line for place, line in enumerate(chart.lines)]
    points = [point for line in lines for point in line.points]
    heights = [y + sign * error for _, y, error in points for sign in (-1, 1)]
    x = frame.x_scale(*_span([point[0] for point in points]))
    y = frame.y_scale(*(chart.y_range or nice_range([*heights, *chart.references.values()])))
    label = chart.label or chart.title
    words = [f"{line.name}: from {line.points[0][1]:.4g} to {line.points[-1][1]:.4g}." for line in lines if line.points]
    return {
        "frame": frame,
        "x_ticks": x.ticks(),
        "y_ticks": y.ticks(),
        "label": label,
        "description": " ".join([f"{label}.", *words, *(f"{k}: {v:.4g}." for k, v in chart.references.items())]),
        "levels": [y(value) for value in chart.references.values()],
        "drawn": [_line(line, x, y) for line in lines],
        "data": {
            "x": [x.low, x.high, x.start, x.end],
            "y": [y.low, y.high, y.start, y.end],
            "xLabel": chart.x_label,
            "series": [_values(line) for line in lines],
            "references": [list(item) for item in chart.references.items()],
        },
    }


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The x axis ends where the data end, so that no space is lost; one value gets room on both sides."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _line(line: Line, x: Scale, y: Scale) -> dict[str, Any]:
    """Where a line runs: its paths, the bands around them, and its dots."""
    middles = [[(x(at), y(value)) for at, value, _ in run] for run in line.runs]
    bands = []
    for run in line.runs if line.error is not None else []:
        upper = [(x(at), y(value + error)) for at, value, error in run]
        lower = [(x(at), y(value - error)) for at, value, error in reversed(run)]
        bands += [f"{_path(upper + lower)}Z"] if len(run) > 1 else []
    return {
        "name": line.name,
        "color": (line.color or 0) % PALETTE_SIZE,
        "dashed": line.dashed,
        "bands": bands,
        "paths": [_path(middle) for middle in middles if len(middle) > 1],
        "dots": [point for middle in middles if line.markers or len(middle) == 1 for point in middle],
    }


def _path(points: Sequence[tuple[float, float]]) -> str:
    """An SVG path through points."""
    return "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)


def _values(line: Line) -> dict[str, Any]:
    """What the pointer reads."""
    known = {x for x, error in zip(line.x, line.error or []) if error is not None}
    points = [list(point) if point[0] in known else list(point[:2]) for point in line.points]
    return {"name": line.name, "color": (line.color or 0) % PALETTE_SIZE, "points": points}


def _bars(chart: Chart) -> dict[str, Any]:
    rows, count = len(chart.categories), len(chart.bars)
    for item in chart.bars:
        if len(item.values) != rows:
            raise UsageError(f"{item.name!r} has {len(item.values)} values for {rows} categories.")
    group = _BAR * count + _GAP
    names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in chart.categories]
    left = max([40.0, *(len(name) * 9.5 + 14 for name in names)])  # in the phone's larger type
    frame = Frame(height=30 + group * rows + 52, left=left, right=64, top=10)
    shown = [
        (row, place, float(value), item.error[row] if item.error is not None else None)
        for row in range(rows)
        for place, item in enumerate(chart.bars)
        if (value := item.values[row]) is not None and math.isfinite(value)
    ]
    x = frame.x_scale(*nice_range([0.0, *(v + s * (e or 0.0) for *_, v, e in shown for s in (-1, 1))]))
    drawn = []
    for row, place, value, error in shown:
        ends = [x(value - error), x(value + error)] if error else []
        spread = "" if error is None else f" ± {error:.2g}"
        drawn.append(
            {
                "tip": f"{chart.categories[row]}, {chart.bars[place].name}: {value:.4g}{spread}",
                "color": place % PALETTE_SIZE,
                "x": min(x(0.0), x(value)),
                "width": abs(x(value) - x(0.0)),
                "y": frame.top + row * group + place * _BAR + _GAP / 2,
                "height": _BAR - 2,
                "whisker": ends,
                "end": max(x(0.0), x(value), *ends),
                "text": f"{value:.4g}",
            }
        )
    return {
        "frame": frame,
        "x_ticks": x.ticks(),
        "zero": x(0.0),
        "names": [(frame.top + (row + 0.5) * group, name, names[row]) for row, name in enumerate(chart.categories)],
        "description": f"{chart.title}. {chart.x_label} of {', '.join(item.name for item in chart.bars)}.",
        "drawn": drawn,
    }


def _heat(chart: Chart) -> dict[str, Any]:
    matrices = {name: np.asarray(panel, dtype=np.float64) for name, panel in chart.panels.items()}
    for name, matrix in matrices.items():
        if matrix.ndim != 2 or not matrix.size:
            raise UsageError(f"The panel {name!r} of a heat map must be a matrix. Got the shape {matrix.shape}.")
    scale = ColorScale.over(list(matrices.values()))
    if chart.value_range is not None:
        scale = ColorScale(*chart.value_range, diverging=scale.diverging)
    frame = Frame(left=44, right=6, top=30, bottom=50)
    return {"frame": frame, "scale": scale, "drawn": [_panel(chart, frame, scale, *item) for item in matrices.items()]}


def _panel(chart: Chart, frame: Frame, scale: ColorScale, name: str, matrix: npt.NDArray[np.float64]) -> dict[str, Any]:
    rows, columns = matrix.shape
    width, height = frame.end - frame.left, frame.foot - frame.top
    wide, high = width / columns, height / rows
    cells: dict[int, list[str]] = {}
    for row, levels in enumerate(scale.level(matrix)):
        # Neighbours of one colour become one rectangle: less to draw, and no hairlines between them.
        edges = np.flatnonzero(np.diff(levels)) + 1
        for begin, end in zip([0, *edges], [*edges, columns]):
            if levels[begin] >= 0:
                across = coordinate((end - begin) * wide)
                start = f"M{coordinate(frame.left + begin * wide)} {coordinate(frame.top + row * high)}"
                cells.setdefault(int(levels[begin]), []).append(f"{start}h{across}v{coordinate(high)}h-{across}z")
    return {
        "name": name,
        "description": f"{name}: a matrix of {rows} by {columns}, colours from {scale.low:.4g} to {scale.high:.4g}",
        "paths": [(scale.color(level), "".join(boxes)) for level, boxes in sorted(cells.items())],
        "x_ticks": [(frame.left + (at + 0.5) * wide, text) for at, text in _whole_ticks(columns)],
        "y_ticks": [(frame.top + (at + 0.5) * high, text) for at, text in _whole_ticks(rows)],
        "data": {
            "plot": [frame.left, frame.top, width, height],
            "labels": [chart.y_label or "row", chart.x_label or "column", chart.value_label],
            "values": [[float(f"{value:.4g}") for value in row] for row in matrix],
        },
    }


def _whole_ticks(count: int) -> list[Tick]:
    """Numbers of rows or columns."""
    if count == 1:
        return [(0.0, "0")]
    return [(value, text) for value, text in tick_labels(0, count - 1, min(5, count - 1)) if value == int(value)]
