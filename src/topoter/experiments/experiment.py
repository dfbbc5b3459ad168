"""What an experiment is: which runs it needs, how one run is made, and how its scores are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.errors import unknown_name
from topoter.experiments.recipes import load_recipe

if TYPE_CHECKING:
    from topoter.experiments.runs import Run
    from topoter.report import Html
    from topoter.training import EpochRecord

# Called with the steps done, the number of all steps, and a word on how it goes.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Measured:
    """What one run found: its result, plain values and lists only, and the loss of every epoch if it trained."""

    result: dict[str, Any]
    losses: list[float] = field(default_factory=list)

    @classmethod
    def trained(cls, result: dict[str, Any], losses: list[float], history: Sequence[EpochRecord]) -> Measured:
        """A result with how its training ended, if there was one: `history` is TopoTER's own, `losses` anyone's."""
        if losses:
            result = result | {"epochs": len(losses), "loss": losses[-1]}
        if history:
            last = history[-1]
            result = result | {"prior_entropy": last.prior_entropy, "accuracy_by_type": list(last.accuracy)}
        return cls(result, losses)


def epochs_of(progress: Progress | None, steps: int) -> Callable[[int, float], None] | None:
    """What a training calls with its epoch and loss, to tell how far a run of so many steps is."""
    return None if progress is None else lambda epoch, loss: progress(epoch, steps, f"loss {loss:.3f}")


@dataclass(frozen=True)
class Row:
    """A row of an experiment's table: a method by one of its recipes, scored under a protocol.

    `except_on` names datasets of the table that cannot have the row.
    """

    method: str
    recipe: str | None = None
    protocol: str = "validation"
    except_on: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Args:
        name: as in `topoter reproduce NAME`.
        datasets: the paper's; others can be asked for.
        rows: in the table's order.
        metrics: the names of its scores, the most important first, e.g. ("AUC", "AP").
        load: the data of a dataset, by its name and the folder of the published files.
        measure: one run on those data.
        scores: from a stored result to the values of each metric (a run may hold several values).
        recipes: the experiment whose recipes are used, if they are not its own.
        fixed: parameters that all runs on a dataset share, put over those of a recipe that has them.
        variations: parameters put over those of the recipe, one run each: the points of a study.
        protocols: those that make sense here, the default first.
        single: protocols that ask for one encoder only, whatever the number of seeds.
        means: datasets whose mean is of interest too, by the name it gets in the table.
        charts: what a table cannot show, drawn from stored runs: (title, markup for a page) of each figure.
        about: what a reader of the charts should know.
    """

    name: str
    datasets: Sequence[str]
    rows: Sequence[Row]
    metrics: Sequence[str]
    load: Callable[[str, Path | None], Any]
    measure: Callable[[Run, Any, Progress | None], Measured]
    scores: Callable[[dict[str, Any]], dict[str, list[float]]]
    recipes: str | None = None
    fixed: Callable[[str], dict[str, Any]] = lambda dataset: {}
    variations: Sequence[dict[str, Any]] = ({},)
    protocols: Sequence[str] = ("validation",)
    single: frozenset[str] = frozenset()
    means: dict[str, Sequence[str]] = field(default_factory=dict)
    charts: Callable[[Sequence[dict[str, Any]]], list[tuple[str, Html]]] | None = None
    about: str = ""

    @property
    def measures(self) -> str:
        """Its metrics in words; where they are many, the columns of its table name them."""
        return " and ".join(self.metrics) if len(self.metrics) < 3 else "numbers"

    def plan(self, datasets: Sequence[str] | None, methods: Sequence[str] | None, seeds: int) -> list[Run]:
        """The runs behind the table, or behind those rows and datasets that were asked for."""
        known = {row.method for row in self.rows}
        for method in methods or ():
            if method not in known:
                raise unknown_name("method", method, known)
        rows = [row for row in self.rows if methods is None or row.method in methods]
        return [
            run
            for dataset in datasets or self.datasets
            for row in rows
            if dataset not in row.except_on
            for run in self.runs(row, dataset, seeds)
        ]

    def runs(self, row: Row, dataset: str, seeds: int) -> list[Run]:
        """The runs behind one row on one dataset: every variation that makes a difference, with an encoder per seed."""
        from topoter.experiments.runs import Run

        recipe = load_recipe(self.recipes or self.name, row.method, dataset, row.recipe)
        if self.recipes:  # the paper's value there is not that of any point here
            recipe = replace(recipe, experiment=self.name, paper=None)
        fixed = {key: value for key, value in self.fixed(dataset).items() if key in recipe.parameters}
        recipe = replace(recipe, parameters=recipe.parameters | fixed)
        count = 1 if row.protocol in self.single else seeds
        variations = [recipe.of_interest(variation) for variation in self.variations]
        different = [item for place, item in enumerate(variations) if item not in variations[:place]]
        return [Run(recipe, row.protocol, seed, variation) for variation in different for seed in range(count)]
