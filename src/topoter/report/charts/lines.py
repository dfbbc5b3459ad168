"""Line charts: several series over one axis, with bands, gaps and reference lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from topoter.errors import UsageError
from topoter.report.charts.axes import PALETTE_SIZE, Frame, Scale, color, legend, line, nice_range, number
from topoter.report.markup import Html, data_script, escape, figure, join


@dataclass(frozen=True)
class Series:
    """One line.

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
            raise UsageError(f"The x, y and error of the series {self.name!r} must be equally long.")

    def points(self) -> list[tuple[float, float, float] | None]:
        """(x, y, error) in the order given, `None` for a gap."""
        errors = self.error if self.error is not None else [0.0] * len(self.y)
        return [
            (float(x), float(y), float(error or 0.0)) if y is not None and math.isfinite(y) else None
            for x, y, error in zip(self.x, self.y, errors)
        ]


@dataclass(frozen=True)
class Reference:
    """A level to hold the lines against, such as chance."""

    name: str
    value: float


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    label: str = "",
    references: Sequence[Reference] = (),
    y_range: tuple[float, float] | None = None,
    caption: str = "",
) -> Html:
    """A chart of lines with a legend; pointing at it, or the arrow keys, show the values.

    Args:
        label: what the chart is called for those who cannot see it, if its title stands elsewhere on the page.
        references: dashed horizontal lines.
        y_range: the ends of the y axis; round numbers around the data unless given.
    """
    label = label or title
    series = [replace(item, color=index) if item.color is None else item for index, item in enumerate(series)]
    frame = Frame()
    points = [point for item in series for point in item.points() if point is not None]
    heights = [y + sign * error for _, y, error in points for sign in (-1, 1)]
    x = frame.x_scale(*_span([point[0] for point in points]))
    y = frame.y_scale(*(y_range or nice_range(heights + [item.value for item in references])))
    drawn = join(_series(item, index, x, y) for index, item in enumerate(series))
    levels = join(
        line(frame.left, y(item.value), frame.width - frame.right, y(item.value), "reference") for item in references
    )
    cursor = Html('<g class="cursor" aria-hidden="true"></g>')
    content = frame.axes(x, y, x_label, y_label) + frame.clipped(levels + drawn) + cursor
    items = [(item.name, _swatch(item)) for item in series]
    items += [(f"{item.name}: {item.value:.4g}", "border-top:2px dashed var(--soft)") for item in references]
    chart = frame.svg(content, _describe(label, series, references))
    data = {
        "x": [x.low, x.high, x.start, x.end],
        "y": [y.low, y.high, y.start, y.end],
        "xLabel": x_label,
        "series": [_data(item) for item in series],
        "references": [[item.name, item.value] for item in references],
    }
    holder = Html(
        f'<div class="chart-holder" data-chart="lines" tabindex="0" role="group" '
        f'aria-label="{escape(label)}: arrow keys read the values">{chart}{data_script(data)}</div>'
    )
    return figure(legend(items) + holder, title=title, caption=caption)


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The x axis ends where the data end, so that no space is lost; one value gets room on both sides."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _series(item: Series, index: int, x: Scale, y: Scale) -> Html:
    style = f'style="--color:{color(item.color or 0)}"'
    css = "line dashed" if item.dashed else "line"
    parts = []
    for run in _runs(item.points()):
        upper = [(x(at), y(value + error)) for at, value, error in run]
        lower = [(x(at), y(value - error)) for at, value, error in reversed(run)]
        middle = [(x(at), y(value)) for at, value, _ in run]
        if item.error is not None and len(run) > 1:
            parts.append(Html(f'<path d="{path(upper + lower)}Z" class="band" {style}/>'))
        if len(run) > 1:
            parts.append(Html(f'<path d="{path(middle)}" class="{css}" {style}/>'))
        if item.markers or len(run) == 1:
            parts += [
                Html(f'<circle cx="{number(at)}" cy="{number(height)}" r="3.5" class="dot" {style}/>')
                for at, height in middle
            ]
    return Html(f'<g data-series="{index}">{join(parts)}</g>')


def path(points: Sequence[tuple[float, float]]) -> str:
    """An SVG path through points."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _runs(points: Sequence[tuple[float, float, float] | None]) -> list[list[tuple[float, float, float]]]:
    """The stretches between gaps."""
    runs: list[list[tuple[float, float, float]]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _swatch(item: Series) -> str:
    return f"border-top:3px {'dashed' if item.dashed else 'solid'} {color(item.color or 0)}"


def _data(item: Series) -> dict[str, object]:
    errors = item.error if item.error is not None else [None] * len(item.y)
    points = [
        [point[0], point[1]] if error is None else list(point)
        for point, error in zip(item.points(), errors)
        if point is not None
    ]
    return {"name": item.name, "color": (item.color or 0) % PALETTE_SIZE, "points": points}


def _describe(label: str, series: Sequence[Series], references: Sequence[Reference]) -> str:
    """The chart in words: where every line starts and ends."""
    sentences = [f"{label}."]
    for item in series:
        points = [point for point in item.points() if point is not None]
        if points:
            sentences.append(f"{item.name}: from {points[0][1]:.4g} to {points[-1][1]:.4g}.")
    return " ".join(sentences + [f"{item.name}: {item.value:.4g}." for item in references])
