"""Heat maps: matrices as colours, several panels on one shared scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topoter.errors import UsageError
from topoter.report.charts.axes import Frame, number, tick_labels
from topoter.report.markup import Html, data_script, escape, figure, join

_LEVELS = 65  # odd, so that the middle of a diverging scale is a colour of its own

# Anchors of two scales that colour-blind readers can follow, since lightness carries the value: cividis for
# amounts, blue over pale to brown for values of both signs.
_SEQUENTIAL = ("#00224e", "#2a3f6d", "#575c6d", "#7d7c78", "#a59c74", "#d2c060", "#fee838")
_DIVERGING = ("#053061", "#2f79b5", "#9bc9e0", "#f4f2ee", "#f3c08d", "#c4712a", "#6b2c05")


@dataclass(frozen=True)
class ColorScale:
    """From a value to one of a fixed number of colours."""

    low: float
    high: float
    diverging: bool = False

    @classmethod
    def over(cls, matrices: list[npt.NDArray[np.float64]]) -> ColorScale:
        """The scale that fits all matrices; centred on zero if they hold both signs."""
        finite = np.concatenate([matrix[np.isfinite(matrix)] for matrix in matrices] or [np.zeros(0)])
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if low < 0 < high:
            bound = max(-low, high)
            return cls(-bound, bound, diverging=True)
        return cls(low, high if high > low else low + 1.0)

    def level(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The number of the colour, -1 where there is no value."""
        share = np.clip((np.nan_to_num(values) - self.low) / (self.high - self.low), 0, 1)
        return np.where(np.isfinite(values), np.rint(share * (_LEVELS - 1)), -1).astype(np.int64)

    def color(self, level: int) -> str:
        """The colour of a level as a hex code."""
        anchors = _DIVERGING if self.diverging else _SEQUENTIAL
        rgb = np.array([[int(code[at : at + 2], 16) for at in (1, 3, 5)] for code in anchors])
        at = level / (_LEVELS - 1) * (len(anchors) - 1)
        mixed = [np.interp(at, range(len(anchors)), rgb[:, channel]) for channel in range(3)]
        return "#" + "".join(f"{round(float(value)):02x}" for value in mixed)


def heat_map(
    panels: Mapping[str, npt.ArrayLike],
    *,
    title: str,
    x_label: str = "",
    y_label: str = "",
    value_label: str = "value",
    value_range: tuple[float, float] | None = None,
    caption: str = "",
) -> Html:
    """Matrices side by side, with one colour scale and one colour bar for all.

    Args:
        panels: name -> matrix; NaN stays empty.
        value_range: the ends of the scale; those of the data unless given.
    """
    matrices = {name: np.asarray(panel, dtype=np.float64) for name, panel in panels.items()}
    for name, matrix in matrices.items():
        if matrix.ndim != 2 or not matrix.size:
            raise UsageError(f"The panel {name!r} of a heat map must be a matrix. Got the shape {matrix.shape}.")
    scale = ColorScale.over(list(matrices.values()))
    if value_range is not None:
        scale = ColorScale(*value_range, diverging=scale.diverging)
    drawn = join(_panel(name, matrix, scale, x_label, y_label, value_label) for name, matrix in matrices.items())
    return figure(
        Html(f'<div class="panels">{drawn}</div>{_color_bar(scale, value_label)}'),
        title=title,
        caption=caption,
    )


def _panel(
    name: str,
    matrix: npt.NDArray[np.float64],
    scale: ColorScale,
    x_label: str,
    y_label: str,
    value_label: str,
) -> Html:
    frame = Frame(left=44, right=6, top=30, bottom=50)
    rows, columns = matrix.shape
    wide, high = frame.plot_width / columns, frame.plot_height / rows
    levels = scale.level(matrix)
    cells: dict[int, list[str]] = {}
    for row in range(rows):
        # Neighbours of one colour become one rectangle: less to draw, and no hairlines between them.
        edges = np.flatnonzero(np.diff(levels[row])) + 1
        for begin, end in zip([0, *edges], [*edges, columns]):
            if levels[row, begin] >= 0:
                start = f"M{number(frame.left + begin * wide)} {number(frame.top + row * high)}"
                box = f"h{number((end - begin) * wide)}v{number(high)}h-{number((end - begin) * wide)}z"
                cells.setdefault(int(levels[row, begin]), []).append(start + box)
    paths = join(
        Html(f'<path d="{"".join(boxes)}" fill="{scale.color(level)}"/>') for level, boxes in sorted(cells.items())
    )
    content = Html(f'<g class="heat">{paths}</g>') + frame.labels(x_label, y_label) + _index_ticks(frame, matrix.shape)
    data = {
        "plot": [frame.left, frame.top, frame.plot_width, frame.plot_height],
        "labels": [y_label or "row", x_label or "column", value_label],
        "values": [[float(f"{value:.4g}") for value in row] for row in matrix],
    }
    label = f"{name}: a matrix of {rows} by {columns}, colours from {scale.low:.4g} to {scale.high:.4g}"
    return Html(
        f'<div class="panel"><h3>{escape(name)}</h3><div class="chart-holder" data-chart="heat">'
        f"{frame.svg(content, label)}{data_script(data)}</div></div>"
    )


def _index_ticks(frame: Frame, shape: tuple[int, ...]) -> Html:
    """Row and column numbers, at the middle of their cells."""
    rows, columns = shape
    high, wide = frame.plot_height / rows, frame.plot_width / columns
    parts = [
        Html(
            f'<text x="{number(frame.left - 6)}" y="{number(frame.top + (value + 0.5) * high)}" dy=".35em" '
            f'class="end">{text}</text>'
        )
        for value, text in _whole_ticks(rows)
    ]
    return join(parts) + join(
        frame.below(frame.left + (value + 0.5) * wide, text) for value, text in _whole_ticks(columns)
    )


def _whole_ticks(count: int) -> list[tuple[float, str]]:
    if count == 1:
        return [(0.0, "0")]
    return [(value, text) for value, text in tick_labels(0, count - 1, min(5, count - 1)) if value == int(value)]


def _color_bar(scale: ColorScale, value_label: str) -> Html:
    colors = ",".join(scale.color(level) for level in range(0, _LEVELS, 8))
    labels = join(Html(f"<span>{text}</span>") for text in _ends(scale))
    return Html(
        f'<div class="color-bar"><span class="color-bar-label">{escape(value_label)}</span>'
        f'<div><div class="ramp" style="background:linear-gradient(90deg,{colors})"></div>'
        f'<div class="ramp-labels">{labels}</div></div></div>'
    )


def _ends(scale: ColorScale) -> list[str]:
    middle = (scale.low + scale.high) / 2
    return [f"{value + 0.0:.3g}" for value in (scale.low, middle, scale.high)]
