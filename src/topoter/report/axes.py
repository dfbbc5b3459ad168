"""Scales, round ticks and colours: what charts are measured and painted with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PALETTE_SIZE = 10  # the colours --c0 .. --c9 of report.css
LEVELS = 65  # of a heat map; odd, so that the middle of a diverging scale is a colour of its own

# Anchors of two scales that colour-blind readers can follow, since lightness carries the value: cividis for
# amounts, blue over pale to brown for values of both signs.
_SEQUENTIAL = ("#00224e", "#2a3f6d", "#575c6d", "#7d7c78", "#a59c74", "#d2c060", "#fee838")
_DIVERGING = ("#053061", "#2f79b5", "#9bc9e0", "#f4f2ee", "#f3c08d", "#c4712a", "#6b2c05")

Tick = tuple[float, str]  # where, and its text


@dataclass(frozen=True)
class Scale:
    """A linear map from data to drawing units: `low` lands on `start`, `high` on `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[Tick]:
        """Round values of the data, at their places in the drawing."""
        return [(self(value), text) for value, text in tick_labels(self.low, self.high, count)]


@dataclass(frozen=True)
class Frame:
    """Where a plot sits in its drawing, in drawing units: the size of the drawing, and the margins of the plot."""

    width: float = 520.0
    height: float = 320.0
    left: float = 58.0
    right: float = 14.0
    top: float = 36.0
    bottom: float = 58.0

    @property
    def end(self) -> float:
        """The right edge of the plot."""
        return self.width - self.right

    @property
    def foot(self) -> float:
        """The lower edge of the plot."""
        return self.height - self.bottom

    def x_scale(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.left, self.end)

    def y_scale(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.foot, self.top)


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


def tick_labels(low: float, high: float, count: int = 5) -> list[Tick]:
    """Round values with their text, all with the same number of decimals."""
    ticks = nice_ticks(low, high, count)
    largest = max(abs(tick) for tick in ticks) if ticks else 0.0
    if largest >= 1e5 or 0 < largest < 1e-3:
        return [(tick, f"{tick:.3g}") for tick in ticks]
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    decimals = next((digits for digits in range(7) if abs(round(step, digits) - step) < step * 1e-6), 7)
    return [(tick, f"{tick + 0.0:,.{decimals}f}") for tick in ticks]


@dataclass(frozen=True)
class ColorScale:
    """From a value to one of a fixed number of colours."""

    low: float
    high: float
    diverging: bool = False

    @classmethod
    def over(cls, matrices: Sequence[npt.NDArray[np.float64]]) -> ColorScale:
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
        return np.where(np.isfinite(values), np.rint(share * (LEVELS - 1)), -1).astype(np.int64)

    def color(self, level: int) -> str:
        """The colour of a level as a hex code."""
        anchors = _DIVERGING if self.diverging else _SEQUENTIAL
        rgb = np.array([[int(code[at : at + 2], 16) for at in (1, 3, 5)] for code in anchors])
        at = level / (LEVELS - 1) * (len(anchors) - 1)
        mixed = [np.interp(at, range(len(anchors)), rgb[:, channel]) for channel in range(3)]
        return "#" + "".join(f"{round(float(value)):02x}" for value in mixed)

    @property
    def ramp(self) -> str:
        """A few of the colours, for a gradient."""
        return ",".join(self.color(level) for level in range(0, LEVELS, 8))

    @property
    def ends(self) -> list[str]:
        return [f"{value + 0.0:.3g}" for value in (self.low, (self.low + self.high) / 2, self.high)]
