"""What an experiment is: which runs it needs, and how one run is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.errors import UsageError, unknown_name
from topoter.experiments.recipes import load_recipe, methods_of

if TYPE_CHECKING:
    from topoter.experiments.runs import Run

# Called with the steps done, the number of all steps, and a word on how it goes.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Measured:
    """What one run found, plain values and lists only.

    Args:
        scores: in percent, by metric; a run may hold several values of one.
        details: what else is worth keeping: what validation chose, how training ended.
        losses: of every epoch, if it trained.
        left: what the run leaves beside its row, by the name of the file, e.g. a map to draw.
    """

    scores: dict[str, list[float]]
    details: dict[str, Any] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    left: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A row of an experiment's table: a method by one of its recipes, scored under a protocol.

    `except_on` names datasets of the table that cannot have the row.
    """

    method: str
    recipe: str | None = None
    protocol: str = "validation"
    except_on: frozenset[str] = frozenset()


def _nothing(dataset: str) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Args:
        name: as in `topoter reproduce NAME`.
        task: node, graph, link or temporal: which methods can take part.
        datasets: the paper's; others can be asked for.
        rows: in the table's order.
        metrics: the names of its scores, the most important first, e.g. ("AUC", "AP").
        load: the data of a dataset, by its name and the folder of the published files.
        measure: one run on those data.
        recipes: the experiment whose recipes are used, if they are not its own.
        fixed: parameters that all runs on a dataset share, put over those of a recipe that has them.
        variations: parameters put over those of the recipe, one run each: the points of a study.
        protocols: those that make sense here, the default first.
        single: protocols that ask for one encoder only, whatever the number of seeds.
        means: datasets whose mean is of interest too, by the name it gets in the table.
    """

    name: str
    task: str
    datasets: Sequence[str]
    rows: Sequence[Row]
    metrics: Sequence[str]
    load: Callable[[str, Path | None], Any]
    measure: Callable[[Run, Any, Progress | None], Measured]
    recipes: str | None = None
    fixed: Callable[[str], Mapping[str, Any]] = _nothing
    variations: Sequence[dict[str, Any]] = ({},)
    protocols: Sequence[str] = ("validation",)
    single: frozenset[str] = frozenset()
    means: dict[str, Sequence[str]] = field(default_factory=dict)

    @property
    def measures(self) -> str:
        """Its metrics in words; where they are many, the columns of its table name them."""
        return " and ".join(self.metrics) if len(self.metrics) < 3 else "numbers"

    @property
    def varied(self) -> list[str]:
        """The parameters that a study changes from point to point; none for a table."""
        names = dict.fromkeys(name for variation in self.variations for name in variation)
        return [name for name in names if len({repr(variation.get(name)) for variation in self.variations}) > 1]

    def plan(self, datasets: Sequence[str] | None, methods: Sequence[str] | None, seeds: int) -> list[Run]:
        """The runs behind the table, or behind those rows and datasets that were asked for."""
        rows = [row for row in self.rows if methods is None or row.method in methods]
        own = {row.method for row in self.rows}
        rows += [self._further(method) for method in dict.fromkeys(methods or ()) if method not in own]
        return [
            run
            for dataset in datasets or self.datasets
            for row in rows
            if dataset not in row.except_on
            for run in self.runs(row, dataset, seeds)
        ]

    def _further(self, method: str) -> Row:
        """A row that the paper's study does not have: any method whose recipes know what is varied."""
        known = {row.method for row in self.rows} | (set(methods_of(self.recipes)) if self.recipes else set())
        if method not in known:
            raise unknown_name("method", method, known)
        assert self.recipes is not None
        recipe = load_recipe(self.recipes, method, self.datasets[0])
        if self.varied and not set(self.varied) & recipe.parameters.keys():
            raise UsageError(f"{self.name} varies {' and '.join(self.varied)}, which {method} does not have.")
        return Row(method)

    def runs(self, row: Row, dataset: str, seeds: int) -> list[Run]:
        """The runs behind one row on one dataset: every variation that makes a difference, with an encoder per seed."""
        from topoter.experiments.runs import Run

        recipe = load_recipe(self.recipes or self.name, row.method, dataset, row.recipe)
        if self.recipes:  # the paper's value there is not that of any point here
            recipe = replace(recipe, experiment=self.name, paper=None)
        fixed = {key: value for key, value in self.fixed(dataset).items() if key in recipe.parameters}
        recipe = replace(recipe, parameters=recipe.parameters | fixed)
        if row not in self.rows and recipe.known is None:  # only what it has can be varied
            recipe = replace(recipe, known=frozenset(recipe.parameters))
        count = 1 if row.protocol in self.single else seeds
        variations = [recipe.of_interest(variation) for variation in self.variations]
        different = [item for place, item in enumerate(variations) if item not in variations[:place]]
        return [
            Run(recipe, row.protocol, seed, variation, recipe.limits)
            for variation in different
            for seed in range(count)
        ]
