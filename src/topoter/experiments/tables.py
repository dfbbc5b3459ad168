"""From runs to a table: mean and deviation over seeds, the paper's value beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topoter.experiments.recipes import Recipe


@dataclass(frozen=True)
class Cell:
    """Ours and the paper's for one method on one dataset, in percent."""

    recipe: Recipe
    protocol: str
    runs: list[float]
    val: list[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.runs)

    @property
    def std(self) -> float:
        """Deviation over seeds; 0 for a single run."""
        return statistics.stdev(self.runs) if len(self.runs) > 1 else 0.0

    def ours(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}"

    def paper(self) -> str:
        published = self.recipe.paper
        return "–" if not published else f"{published['mean']:.1f} ± {published['std']:.1f}"


def cell(recipe: Recipe, protocol: str, stored: Sequence[dict[str, Any]]) -> Cell:
    """Put the runs of one recipe together."""
    tests = [run["result"]["test"] for run in stored]
    if protocol == "paper":  # one run holds all restarts of the classifier
        tests = [value for restarts in tests for value in restarts]
    return Cell(recipe, protocol, tests, [run["result"]["val"] for run in stored if "val" in run["result"]])


def row_name(recipe: Recipe, protocol: str) -> str:
    """How a row is called: the method, its recipe where there are two, and a mark if test labels chose anything."""
    name = f"{recipe.method} ({recipe.name})" if recipe.method == "topoter" else recipe.method
    return f"{name} [selects on test]" if protocol == "paper" else name


def markdown(cells: Sequence[Cell], datasets: Sequence[str]) -> str:
    """A Markdown table, one row per method, ours and the paper's per dataset."""
    rows: dict[str, dict[str, Cell]] = {}
    for item in cells:
        rows.setdefault(row_name(item.recipe, item.protocol), {})[item.recipe.dataset] = item
    header = ["method", *(f"{dataset}, {side}" for dataset in datasets for side in ("ours", "paper"))]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for name, by_dataset in rows.items():
        values = [name]
        for dataset in datasets:
            item = by_dataset.get(dataset)
            values += [item.ours(), item.paper()] if item else ["", ""]
        lines.append("| " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"
