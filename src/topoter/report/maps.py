"""The map of an embedding: one dot per node, coloured by class, on a canvas (vector graphics would be too slow)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from topoter.errors import DataError, UsageError
from topoter.report.axes import PALETTE_SIZE
from topoter.report.page import templates

MOST_POINTS = 20_000
SHAPES = 3  # that a colour can have: circle, square, triangle
_GRID = 4095  # coordinates become whole numbers up to this: finer than any screen, and short as text


@dataclass(frozen=True)
class Map:
    """Dots coloured by class; the legend hides classes, pointing at a dot names it in every panel.

    Args:
        panels: name -> coordinates [N, 2]; several panels show the same nodes side by side.
        labels: the class of each node, from 0; -1 is a node without one.
        label_names: the classes' names; their numbers unless given.
        ids: what to call each node; its number unless given.
        noun: what a dot is.
    """

    panels: Mapping[str, npt.ArrayLike]
    labels: Sequence[int] | npt.NDArray[np.integer]
    title: str = ""
    label_names: Sequence[str] | None = None
    ids: Sequence[object] | None = None
    noun: str = "node"
    caption: str = ""

    def __html__(self) -> Markup:
        points = {name: np.asarray(panel, dtype=np.float64) for name, panel in self.panels.items()}
        classes = np.asarray(self.labels, dtype=np.int64)
        self._check(points, len(classes))
        # In random order no class is painted over all others; the seed keeps the page the same every time.
        order = np.random.default_rng(0).permutation(len(classes))[:MOST_POINTS]
        counts = Counter(classes.tolist())
        present = sorted(counts)
        groups = [self._group(value, counts[value]) for value in present]
        place = {value: index for index, value in enumerate(present)}
        data = {
            "noun": self.noun,
            "names": [group["name"] for group in groups],
            "colors": [group["color"] for group in groups],
            "shapes": [group["shape"] for group in groups],
            "class": [place[int(classes[index])] for index in order],
            "ids": [str(self.ids[index]) if self.ids is not None else int(index) for index in order],
            "panels": [to_grid(panel, _GRID)[order].T.tolist() for panel in points.values()],
        }
        markup: Markup = templates().get_template("map.html.j2").module.map(self, groups, data)
        return markup

    def _check(self, points: Mapping[str, npt.NDArray[np.float64]], count: int) -> None:
        for name, panel in points.items():
            if panel.shape != (count, 2):
                raise UsageError(f"The map {name!r} must be [{count}, 2]. Got the shape {panel.shape}.")
            if not np.isfinite(panel).all():
                raise DataError(f"The map {name!r} has coordinates that are not finite.")
        if self.ids is not None and len(self.ids) != count:
            raise UsageError(f"The map has {count} points and {len(self.ids)} ids.")

    def _group(self, value: int, count: int) -> dict[str, Any]:
        if value < 0:
            return {"name": "no label", "color": None, "shape": 0, "count": count}
        known = self.label_names is not None and value < len(self.label_names)
        return {
            "name": str(self.label_names[value]) if self.label_names and known else str(value),
            "color": value % PALETTE_SIZE,
            "shape": value // PALETTE_SIZE % SHAPES,
            "count": count,
        }


def to_grid(points: npt.NDArray[np.float64], largest: int) -> npt.NDArray[np.int64]:
    """Whole-number coordinates up to `largest`, [N, 2]; one scale for both axes, as distances are what a map shows."""
    if not len(points):
        return np.zeros((0, 2), dtype=np.int64)
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    centred = (points - (low + high) / 2) / size + 0.5
    centred[:, 1] = 1 - centred[:, 1]  # a screen counts from the top
    return np.rint(centred * largest).astype(np.int64)
