"""What is known about nodes, as the explorer takes it: categories with their colours, or numbers on a scale."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from numbers import Real
from typing import Any

from topoter.report.axes import LEVELS, ColorScale

MOST_GROUPS = 30  # ten colours in three shapes; rarer values share one grey group
RAMP = 33  # colours of a scale


def column_data(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """A column for the page's script.

    Whole numbers of few kinds are classes, as text is; other numbers lie on a scale.
    """
    numbers = [_number(value) for value in values]
    given = [number for number, value in zip(numbers, values) if not _missing(value)]
    if given and all(number is not None for number in given):
        whole = all(float(number).is_integer() for number in given if number is not None)
        if not whole or len(set(given)) > MOST_GROUPS:
            return _scale(name, [None if _missing(value) else number for number, value in zip(numbers, values)])
    return _categories(name, [None if _missing(value) else _text(value) for value in values])


def _scale(name: str, values: list[float | None]) -> dict[str, Any]:
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    ramp = ColorScale(0.0, 1.0)
    return {
        "name": name,
        "kind": "number",
        # Six digits are more than a tooltip shows, and keep the file short.
        "values": [None if value is None else float(f"{value:.6g}") for value in values],
        "range": [low, high],
        "ramp": [ramp.color(round(step * (LEVELS - 1) / (RAMP - 1))) for step in range(RAMP)],
    }


def _categories(name: str, values: list[str | None]) -> dict[str, Any]:
    counts = Counter(value for value in values if value is not None)
    if len(counts) <= MOST_GROUPS:
        order = sorted(counts, key=_natural)
    else:  # the commonest have colours of their own
        order = [value for value, _ in sorted(counts.items(), key=lambda item: (-item[1], _natural(item[0])))]
    place = {value: number for number, value in enumerate(order)}
    return {
        "name": name,
        "kind": "category",
        "names": order,
        "codes": [-1 if value is None else place[value] for value in values],
        "groups": len(order) if len(order) <= MOST_GROUPS else MOST_GROUPS - 1,
    }


def _missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else None


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _natural(value: str) -> list[tuple[int, float, str]]:
    """g2 before g10: runs of digits compare as numbers; numbers, also negative ones, before words."""
    try:
        return [(0, float(value), value)]
    except ValueError:
        parts = re.split(r"(\d+)", value)
        return [(1, float(part), "") if part.isdecimal() else (2, 0.0, part) for part in parts if part]
