"""From runs to a table: mean and deviation over seeds, the paper's value beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
MOST_COLUMNS = 8  # a table with more is not read any more: every dataset gets its own


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
    def method_name(self) -> str:
        """The method, and its recipe where there are two."""
        several = self.recipe.method == "topoter" or "decoder" in self.recipe.parameters
        return f"{self.recipe.method} ({self.recipe_name})" if several else self.recipe.method

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
        spread = f" ± {self.std(metric):.1f}" if len(self.scores[metric]) > 1 else ""
        return f"{self.mean(metric):.1f}{spread}"

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


def group_means(experiment: Experiment, found: Sequence[Cell]) -> list[Cell]:
    """The rows averaged over the datasets of each of the experiment's `means`, seed by seed, where all of them are."""
    averaged = []
    for name, datasets in experiment.means.items():
        rows: dict[str, list[Cell]] = {}
        for item in found:
            if item.recipe.dataset in datasets:
                rows.setdefault(str((item.method_name, item.protocol, item.variation)), []).append(item)
        averaged += [_mean(name, items) for items in rows.values() if len(items) == len(datasets)]
    return averaged


def _mean(name: str, items: Sequence[Cell]) -> Cell:
    scores = {
        metric: [statistics.fmean(values) for values in zip(*(item.scores[metric] for item in items))]
        for metric in items[0].scores
        if all(metric in item.scores for item in items)
    }
    first = items[0]
    return Cell(replace(first.recipe, dataset=name), first.protocol, first.variation, scores)


def markdown(found: Sequence[Cell], metrics: Sequence[str], seeds: int) -> str:
    """Markdown, one row per method; per dataset and metric ours, by each protocol, and the paper's where there is one.

    All datasets stand side by side where they fit, else every one gets a table of its own.
    """
    varied = _varied(found)
    table = _table(found, metrics, seeds, varied, several=True)
    datasets = list(dict.fromkeys(item.recipe.dataset for item in found))
    if table.split("\n", 1)[0].count("|") - 1 <= MOST_COLUMNS or len(datasets) == 1:
        return table
    own = [[item for item in found if item.recipe.dataset == dataset] for dataset in datasets]
    return "\n".join(
        f"**{dataset}**\n\n{_table(items, metrics, seeds, varied, several=False)}"
        for dataset, items in zip(datasets, own)
    )


def _varied(found: Sequence[Cell]) -> list[str]:
    """The parameters that a study changes from row to row; those that are the same in all of them say nothing."""
    names = dict.fromkeys(name for item in found for name in item.variation)
    values = {name: {str(item.variation[name]) for item in found if name in item.variation} for name in names}
    return [name for name in names if len(values[name]) > 1]


def _table(found: Sequence[Cell], metrics: Sequence[str], seeds: int, varied: Sequence[str], several: bool) -> str:
    """One table; its columns name their dataset if there are several."""
    datasets = list(dict.fromkeys(item.recipe.dataset for item in found))
    protocols = [name for name in COLUMNS if any(item.protocol == name for item in found)]
    protocols += [name for name in dict.fromkeys(item.protocol for item in found) if name not in COLUMNS]
    rows: dict[str, dict[tuple[str, str], Cell]] = {}
    for item in found:
        name = " ".join(
            [item.method_name, *(f"{key}={item.variation[key]}" for key in varied if key in item.variation)]
        )
        rows.setdefault(name, {})[item.recipe.dataset, item.protocol] = item
    published = any(item.published(metric) for item in found for metric in metrics)
    alone = not published and len(protocols) == 1  # then there is nothing to tell ours from
    columns: list[tuple[str, list[str]]] = []  # each with its title and a value per row
    for dataset in datasets:
        for metric in metrics:
            title = " ".join([dataset] * several + [metric] * (len(metrics) > 1))
            parts = [
                (COLUMNS.get(protocol, protocol), [row.get((dataset, protocol)) for row in rows.values()])
                for protocol in protocols
            ]
            used = [(part, items) for part, items in parts if any(item is not None for item in items)]
            columns += [
                (
                    _joined(title, "" if alone and title else part),
                    ["" if item is None else _counted(item, metric, seeds) for item in items],
                )
                for part, items in used
            ]
            first = [next((item for item in items if item is not None), None) for items in zip(*(i for _, i in used))]
            if any(item is not None and item.published(metric) for item in first):
                paper = ["" if item is None else item.paper(metric) for item in first]
                columns.append((_joined(title, "paper"), paper))
    lines = [["method", *(title for title, _ in columns)], ["---"] * (len(columns) + 1)]
    lines += [list(line) for line in zip(rows, *(values for _, values in columns))]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _counted(item: Cell, metric: str, seeds: int) -> str:
    """Ours; with the number of runs where it is smaller than that of the table."""
    count = len(item.scores[metric])
    return item.ours(metric) if count >= seeds else f"{item.ours(metric)} ({count} seed{'s' if count > 1 else ''})"
