"""From runs to a table: mean and deviation over seeds, the paper's value beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topoter.experiments.experiment import Experiment
from topoter.experiments.recipes import Recipe
from topoter.experiments.runs import Run

# The authors' protocol selects on test labels: its numbers stand in a column of their own.
COLUMNS = {
    "validation": "ours",
    "paper": "ours, selects on test",
    "held-out-pairs": "held-out pairs",
    "next-snapshot": "next snapshot",
}


@dataclass(frozen=True)
class Cell:
    """Ours and the paper's for one method on one dataset, in percent; `scores` by metric, one value per run."""

    recipe: Recipe
    protocol: str
    variation: dict[str, Any]
    scores: dict[str, list[float]]

    def mean(self, metric: str) -> float:
        return statistics.fmean(self.scores[metric])

    def std(self, metric: str) -> float:
        """Deviation over runs; 0 for a single one."""
        values = self.scores[metric]
        return statistics.stdev(values) if len(values) > 1 else 0.0

    def published(self, metric: str) -> dict[str, float] | None:
        """The paper's mean and deviation of a metric; a recipe with a single metric does not name it."""
        paper = self.recipe.paper
        if paper is None or "mean" in paper:
            return paper
        found: dict[str, float] | None = paper.get(metric.lower())  # type: ignore[assignment]
        return found

    @property
    def recipe_name(self) -> str:
        """The recipe, and the decoder of pairs where there is one: a number of links means little without it."""
        decoder = self.recipe.parameters.get("decoder")
        return f"{self.recipe.name}, {decoder}" if decoder else self.recipe.name

    @property
    def row_name(self) -> str:
        """The method, its recipe where there are two, and what a study changed."""
        several = self.recipe.method == "topoter" or "decoder" in self.recipe.parameters
        name = f"{self.recipe.method} ({self.recipe_name})" if several else self.recipe.method
        return " ".join([name, *(f"{key}={value}" for key, value in self.variation.items())])

    def as_dict(self) -> dict[str, Any]:
        """For `--json` and for whoever draws the table: the first metric plain, the others by their names."""
        first, *others = self.scores
        content: dict[str, Any] = {
            "dataset": self.recipe.dataset,
            "method": self.recipe.method,
            "recipe": self.recipe.name,
            "protocol": self.protocol,
            "metric": first,
            "mean": self.mean(first),
            "std": self.std(first),
            "runs": self.scores[first],
            "paper": self.recipe.paper,
        }
        if "decoder" in self.recipe.parameters:
            content["decoder"] = self.recipe.parameters["decoder"]
        if self.variation:
            content["variation"] = self.variation
        for metric in others:
            name = {"validation accuracy": "val", "validation AUC": "val"}.get(metric, metric.lower())
            content |= {f"{name}_mean": self.mean(metric), f"{name}_std": self.std(metric)}
        return content

    def ours(self, metric: str) -> str:
        return f"{self.mean(metric):.1f} ± {self.std(metric):.1f}"

    def paper(self, metric: str) -> str:
        published = self.published(metric)
        if not published:
            return "–"
        spread = f" ± {published['std']:.1f}" if "std" in published else ""
        return f"{published['mean']:.1f}{spread}"


def cells(experiment: Experiment, runs: Sequence[tuple[Run, dict[str, Any]]]) -> list[Cell]:
    """Put the seeds of every row together, in the order of the runs."""
    grouped: dict[str, list[tuple[Run, dict[str, Any]]]] = {}
    for run, stored in runs:
        key = str({**run.description(), "seed": None})
        grouped.setdefault(key, []).append((run, stored))
    return [_cell(experiment, group) for group in grouped.values()]


def _cell(experiment: Experiment, group: list[tuple[Run, dict[str, Any]]]) -> Cell:
    scores: dict[str, list[float]] = {}
    for _, stored in group:
        for metric, values in experiment.scores(stored["result"]).items():
            scores.setdefault(metric, []).extend(values)
    run = group[0][0]
    return Cell(run.recipe, run.protocol, run.variation, scores)


def markdown(found: Sequence[Cell], metrics: Sequence[str], seeds: int) -> str:
    """A Markdown table, one row per method; per dataset and metric ours, by each protocol, and the paper's."""
    datasets = list(dict.fromkeys(item.recipe.dataset for item in found))
    protocols = [name for name in COLUMNS if any(item.protocol == name for item in found)]
    protocols += [name for name in dict.fromkeys(item.protocol for item in found) if name not in COLUMNS]
    rows: dict[str, dict[tuple[str, str], Cell]] = {}
    for item in found:
        rows.setdefault(item.row_name, {})[item.recipe.dataset, item.protocol] = item
    columns = [(dataset, metric) for dataset in datasets for metric in metrics]
    header = ["method"]
    for dataset, metric in columns:
        title = dataset if len(metrics) == 1 else f"{dataset} {metric}"
        header += [f"{title}, {COLUMNS.get(protocol, protocol)}" for protocol in protocols] + [f"{title}, paper"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for name, row in rows.items():
        values = [name]
        for dataset, metric in columns:
            here = [row.get((dataset, protocol)) for protocol in protocols]
            values += ["" if item is None else _counted(item, metric, seeds) for item in here]
            values.append(next((item.paper(metric) for item in here if item is not None), ""))
        lines.append("| " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def _counted(item: Cell, metric: str, seeds: int) -> str:
    """Ours; with the number of runs where it is smaller than that of the table."""
    count = len(item.scores[metric])
    return item.ours(metric) if count >= seeds else f"{item.ours(metric)} ({count} seed{'s' if count > 1 else ''})"
