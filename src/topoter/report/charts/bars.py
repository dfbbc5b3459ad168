"""Bar charts: horizontal, so that long names are readable; from zero, so that lengths can be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from topoter.errors import UsageError
from topoter.report.charts.axes import Frame, Scale, color, legend, line, nice_range, number, tick_labels
from topoter.report.markup import Html, escape, figure, join

_BAR, _GAP = 16.0, 14.0  # height of a bar, space between groups


@dataclass(frozen=True)
class Bars:
    """One bar per category: a method over datasets, say. `None` is a missing bar."""

    name: str
    values: Sequence[float | None]
    error: Sequence[float | None] | None = None


def bar_chart(
    categories: Sequence[str], bars: Sequence[Bars], *, title: str, value_label: str, caption: str = ""
) -> Html:
    """Bars grouped by category, each with its value and, if given, its deviation."""
    for item in bars:
        if len(item.values) != len(categories):
            raise UsageError(f"{item.name!r} has {len(item.values)} values for {len(categories)} categories.")
    group = _BAR * len(bars) + _GAP
    left = max([40.0, *(len(_shorten(name)) * 9.5 + 14 for name in categories)])  # in the phone's larger type
    frame = Frame(height=30 + group * len(categories) + 52, left=left, right=64, top=10)
    ends = [
        end
        for item in bars
        for value, error in _pairs(item)
        if value is not None
        for end in (value - error, value + error)
    ]
    scale = frame.x_scale(*nice_range([0.0, *ends]))
    rows = [
        _bar(item, index, row, scale, frame.top + row * group + index * _BAR + _GAP / 2, categories)
        for row in range(len(categories))
        for index, item in enumerate(bars)
    ]
    names = [
        Html(
            f'<text class="end" x="{number(left - 8)}" y="{number(frame.top + (row + 0.5) * group)}" dy=".35em">'
            f"<title>{escape(name)}</title>{escape(_shorten(name))}</text>"
        )
        for row, name in enumerate(categories)
    ]
    content = _grid(frame, scale, value_label) + join(rows) + join(names)
    swatches = [(item.name, f"background:{color(index)};height:.75rem") for index, item in enumerate(bars)]
    head = legend(swatches) if len(bars) > 1 else Html("")
    chart = frame.svg(content, f"{title}. {value_label} of {', '.join(item.name for item in bars)}.")
    return figure(head + Html(f'<div class="chart-holder">{chart}</div>'), title=title, caption=caption)


def _bar(item: Bars, index: int, row: int, scale: Scale, top: float, categories: Sequence[str]) -> Html:
    value, error = _pairs(item)[row]
    if value is None:
        return Html("")
    x, width = min(scale(0.0), scale(value)), abs(scale(value) - scale(0.0))
    middle = top + (_BAR - 2) / 2
    text = f"{value:.4g} ± {error:.2g}" if item.error is not None and item.error[row] is not None else f"{value:.4g}"
    whisker, end = "", max(scale(0.0), scale(value))
    if error:
        low, high = scale(value - error), scale(value + error)
        whisker = line(low, middle, high, middle, "whisker") + join(
            line(at, middle - 3, at, middle + 3, "whisker") for at in (low, high)
        )
        end = max(end, high)
    return Html(
        f'<g data-tip="{escape(f"{categories[row]}, {item.name}: {text}")}">'
        f'<rect x="{number(x)}" y="{number(top)}" width="{number(width)}" height="{number(_BAR - 2)}" rx="2" '
        f'fill="{color(index)}"/>{whisker}'
        f'<text x="{number(end + 6)}" y="{number(middle)}" dy=".35em" class="value">{value:.4g}</text></g>'
    )


def _grid(frame: Frame, scale: Scale, value_label: str) -> Html:
    foot, parts = frame.height - frame.bottom, []
    for value, text in tick_labels(scale.low, scale.high):
        parts.append(line(scale(value), frame.top, scale(value), foot, "grid"))
        parts.append(frame.below(scale(value), text))
    parts.append(line(scale(0.0), frame.top, scale(0.0), foot, "axis"))
    return join(parts) + frame.labels(value_label, "")


def _pairs(item: Bars) -> list[tuple[float | None, float]]:
    errors = item.error if item.error is not None else [None] * len(item.values)
    return [
        (float(value) if value is not None and math.isfinite(value) else None, float(error or 0.0))
        for value, error in zip(item.values, errors)
    ]


def _shorten(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}…"
