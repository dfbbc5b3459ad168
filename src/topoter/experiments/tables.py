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

    def as_dict(self) -> dict[str, Any]:
        """For `--json` and for whoever draws the table."""
        return {
            "dataset": self.recipe.dataset,
            "method": self.recipe.method,
            "recipe": self.recipe.name,
            "protocol": self.protocol,
            "mean": self.mean,
            "std": self.std,
            "val_mean": statistics.fmean(self.val) if self.val else None,
            "runs": self.runs,
            "paper": self.recipe.paper,
        }

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


def row_name(recipe: Recipe) -> str:
    """How a row is called: the method, and its recipe where there are two."""
    return f"{recipe.method} ({recipe.name})" if recipe.method == "topoter" else recipe.method


# The authors' protocol selects on test labels: its numbers stand in a column of their own.
COLUMNS = {"validation": "ours", "paper": "ours, selects on test"}


def markdown(cells: Sequence[Cell], datasets: Sequence[str], seeds: int) -> str:
    """A Markdown table, one row per method; per dataset ours, ours by the authors' protocol, and the paper's."""
    rows: dict[str, dict[tuple[str, str], Cell]] = {}
    for item in cells:
        rows.setdefault(row_name(item.recipe), {})[item.recipe.dataset, item.protocol] = item
    protocols = [name for name in COLUMNS if any(item.protocol == name for item in cells)]
    header = ["method"]
    for dataset in datasets:
        header += [f"{dataset}, {COLUMNS[protocol]}" for protocol in protocols] + [f"{dataset}, paper"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for name, found in rows.items():
        values = [name]
        for dataset in datasets:
            here = [found.get((dataset, protocol)) for protocol in protocols]
            values += ["" if item is None else _counted(item, seeds) for item in here]
            values.append(next((item.paper() for item in here if item is not None), ""))
        lines.append("| " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def _counted(item: Cell, seeds: int) -> str:
    """Ours; with the number of runs where it is smaller than that of the table."""
    count = len(item.runs)
    return item.ours() if count >= seeds else f"{item.ours()} ({count} seed{'s' if count > 1 else ''})"
