"""Scales, ticks and the frame that every chart with axes shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from topoter.report.markup import Html, escape, join

PALETTE_SIZE = 10  # the colours --c0 .. --c9 of report.css


@dataclass(frozen=True)
class Scale:
    """A linear map from data to drawing units: `low` lands on `start`, `high` on `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Frame:
    """Where a plot sits in its drawing: the edges of the plotting area, in drawing units."""

    width: float = 520.0
    height: float = 320.0
    left: float = 58.0
    right: float = 14.0
    top: float = 36.0
    bottom: float = 58.0

    @property
    def plot_width(self) -> float:
        return self.width - self.left - self.right

    @property
    def plot_height(self) -> float:
        return self.height - self.top - self.bottom

    def x_scale(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.left, self.width - self.right)

    def y_scale(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.height - self.bottom, self.top)

    def svg(self, content: Html, label: str) -> Html:
        """The drawing, with `label` for those who cannot see it."""
        return Html(
            f'<svg class="chart" viewBox="0 0 {number(self.width)} {number(self.height)}" role="img" '
            f'aria-label="{escape(label)}">{content}</svg>'
        )

    def clipped(self, content: Html) -> Html:
        """Content in drawing units, cut off beyond the edges of the plotting area."""
        # A nested svg clips without an id, so that any number of charts can share a page.
        # Some room beyond the edges, or a line along one would lose half its width.
        room = 4.0
        box = " ".join(
            number(value)
            for value in (
                self.left - room,
                self.top - room,
                self.plot_width + 2 * room,
                self.plot_height + 2 * room,
            )
        )
        x, y, width, height = box.split()
        return Html(
            f'<svg class="plot" x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{box}">{content}</svg>'
        )

    def axes(self, x: Scale, y: Scale, x_label: str, y_label: str) -> Html:
        """Grid, tick labels and axis labels."""
        foot, parts = self.height - self.bottom, []
        for value, text in tick_labels(y.low, y.high):
            at = number(y(value))
            parts.append(line(self.left, y(value), self.width - self.right, y(value), "grid"))
            parts.append(Html(f'<text x="{number(self.left - 8)}" y="{at}" dy=".35em" class="end">{text}</text>'))
        for value, text in tick_labels(x.low, x.high):
            parts.append(line(x(value), foot, x(value), foot + 4, "tick"))
            parts.append(self.below(x(value), text))
        parts.append(line(self.left, foot, self.width - self.right, foot, "axis"))
        return join(parts) + self.labels(x_label, y_label)

    def labels(self, x_label: str, y_label: str) -> Html:
        """The axis labels: y above its axis, where it need not be read sideways."""
        middle = number(self.left + self.plot_width / 2)
        return Html(
            f'<text x="0" y="16" class="label">{escape(y_label)}</text>'
            f'<text x="{middle}" y="{number(self.height - 6)}" class="label middle">{escape(x_label)}</text>'
        )

    def below(self, x: float, text: str) -> Html:
        """A tick label under the x axis."""
        return Html(
            f'<text x="{number(x)}" y="{number(self.height - self.bottom + 25)}" class="middle">{escape(text)}</text>'
        )


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round values within [low, high], in steps of 1, 2, 2.5 or 5 times a power of ten."""
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def nice_range(values: Sequence[float]) -> tuple[float, float]:
    """The finite values' range, widened to round numbers; a single value gets room on both sides."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if low == high:
        room = abs(low) * 0.1 or 1.0
        low, high = low - room, high + room
    ticks = nice_ticks(low, high)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def tick_labels(low: float, high: float, count: int = 5) -> list[tuple[float, str]]:
    """Ticks with their text, all with the same number of decimals."""
    ticks = nice_ticks(low, high, count)
    largest = max(abs(tick) for tick in ticks) if ticks else 0.0
    if largest >= 1e5 or 0 < largest < 1e-3:
        return [(tick, f"{tick:.3g}") for tick in ticks]
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    decimals = next((digits for digits in range(7) if abs(round(step, digits) - step) < step * 1e-6), 7)
    return [(tick, f"{tick + 0.0:,.{decimals}f}") for tick in ticks]


def number(value: float) -> str:
    """A coordinate as short as a hundredth of a unit allows."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def line(x1: float, y1: float, x2: float, y2: float, css_class: str) -> Html:
    """A straight line."""
    return Html(f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" class="{css_class}"/>')


def color(index: int) -> str:
    """The palette's colour for the index-th series or class, light or dark as the page is."""
    return f"var(--c{index % PALETTE_SIZE})"


def legend(items: Sequence[tuple[str, str]]) -> Html:
    """Names beside their colours; an item is (name, inline style of its swatch)."""
    entries = join(
        Html(f'<li><span class="swatch" style="{style}"></span>{escape(name)}</li>') for name, style in items
    )
    return Html(f'<ul class="legend">{entries}</ul>')
