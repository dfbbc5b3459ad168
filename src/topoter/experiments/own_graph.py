"""The protocol of our tables on a user's own graph: the same rows, splits by seed, a paired test, a plain verdict."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.experiments import TASKS, experiment
from topoter.experiments.experiment import Progress
from topoter.experiments.recipes import DEFAULT, Recipe, load_recipe
from topoter.experiments.runs import Run
from topoter.methods import methods_of
from topoter.tasks.node_classification import score
from topoter.tasks.own_labels import Labels, with_split

if TYPE_CHECKING:
    from torch_geometric.data import Data

# By task, in the order of the table: what needs no training, then what does. Those that are not installed are skipped.
ROWS = {
    "node": ("raw", "propagated", "spectral", "hop-svd", "random-init", "topoter"),
    "graph": ("degree-histogram", "random-init", "topoter"),
    "link": ("feature-cosine", "adamic-adar", "spectral", "no-pretraining", "topoter"),
}
OURS = "topoter"
TWINS = ("random-init", "no-pretraining")  # TopoTER itself, without its training
GUESSING = "largest class"
SMALL = 1.0  # points that make no difference in practice
CERTAIN = 0.05  # a difference as large as this would be seen by chance once in twenty times
IN_WORDS = {
    "raw": "raw features",
    "propagated": "propagated features",
    "spectral": "the spectral embedding",
    "hop-svd": "the SVD of features of all hops",
    "random-init": "the same encoder untrained",
    "degree-histogram": "the histogram of degrees",
    "feature-cosine": "the cosine of features",
    "adamic-adar": "common neighbours (Adamic-Adar)",
    "no-pretraining": "the same training without pre-training",
}


@dataclass(frozen=True)
class OwnRow:
    """A method's scores in percent, by metric, a value per seed; the first metric counts."""

    method: str
    scores: Mapping[str, Sequence[float]]

    @property
    def values(self) -> Sequence[float]:
        return next(iter(self.scores.values()))

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def std(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Difference:
    """How much better one row is than another on the same splits, and how likely chance alone would do it.

    `p` is that of the paired t-test, None for one seed.
    """

    mean: float
    std: float | None
    p: float | None

    @property
    def certain(self) -> bool:
        return self.p is not None and self.p < CERTAIN


@dataclass
class OwnData:
    """What is evaluated: a graph with labels for some nodes, a list of labelled graphs, or a graph for its links.

    `embeddings` of the user's own, [N, F] in the order of the nodes, by name.
    """

    task: str
    content: Any
    labels: Labels | None = None
    embeddings: Mapping[str, np.ndarray] = field(default_factory=dict)


def rows_for(task: str, methods: Sequence[str]) -> list[str]:
    """The rows of a table: the usual ones that are there, and those asked for."""
    if task not in ROWS:
        raise UsageError(f"Own graphs can be evaluated for {', '.join(ROWS)}. Got {task!r} instead.")
    known = methods_of(task)
    return list(dict.fromkeys([*(name for name in ROWS[task] if name in known), *methods]))


def evaluate(
    own: OwnData,
    methods: Sequence[str],
    seeds: int,
    on_run: Callable[[str, int], Progress | None] = lambda method, seed: None,
    parameters: Mapping[str, Any] | None = None,
) -> list[OwnRow]:
    """A row for every method, each with the same splits; `parameters` are put over those of TopoTER's recipe."""
    chosen = experiment(TASKS[own.task])
    rows = [] if own.labels is None else [_guessing(own, seeds)]
    splits = [_split(own, seed) for seed in range(seeds)]
    for name, z in own.embeddings.items():
        rows.append(OwnRow(name, {"accuracy": [score(z, split)["test"] for split in splits]}))
    for method in methods:
        recipe = load_recipe(chosen.name, method, DEFAULT)
        varied = _varied(recipe, parameters or {})
        found: dict[str, list[float]] = {metric: [] for metric in chosen.metrics}
        for seed, split in enumerate(splits):
            measured = chosen.measure(Run(recipe, "validation", seed, varied), split, on_run(method, seed))
            for metric in chosen.metrics:
                found[metric] += measured.scores[metric]
        rows.append(OwnRow(method, found))
    return rows


def _varied(recipe: Recipe, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What of TopoTER's parameters makes a difference to a method; its default recipe leaves all of them out."""
    borrowed = recipe.known is not None
    known = None if recipe.method == OURS or borrowed else recipe.parameters
    return recipe.of_interest({key: value for key, value in parameters.items() if known is None or key in known})


def _split(own: OwnData, seed: int) -> Any:
    if own.task != "node":
        return own.content  # links and folds are split by seed where they are measured
    if own.labels is None:
        raise DataError("Labels are needed to evaluate nodes.")
    return with_split(own.content, own.labels.y, seed)


def _guessing(own: OwnData, seeds: int) -> OwnRow:
    """Always the class that most training nodes have."""
    values = []
    for seed in range(seeds):
        split: Data = _split(own, seed)
        y, counts = split.y.numpy(), np.bincount(split.y.numpy()[split.train_mask.numpy() | split.val_mask.numpy()])
        values.append(100 * float((y[split.test_mask.numpy()] == counts.argmax()).mean()))
    return OwnRow(GUESSING, {"accuracy": values})


def difference(row: OwnRow, other: OwnRow) -> Difference:
    """Seed by seed, so that what a split does to both does not count."""
    from scipy.stats import ttest_rel

    gaps = np.subtract(row.values, other.values)
    if len(gaps) < 2:
        return Difference(float(gaps.mean()), None, None)
    same = bool(np.ptp(gaps) < 1e-9)  # the test is not defined where all differences are equal
    p = float(abs(gaps[0]) < 1e-9) if same else float(ttest_rel(row.values, other.values).pvalue)
    return Difference(float(gaps.mean()), float(gaps.std(ddof=1)), p)


def verdict(rows: Sequence[OwnRow]) -> list[str]:
    """What the table says, in plain words: TopoTER beside what needs none of it, and what its training adds."""
    found = {row.method: row for row in rows}
    ours, usual = found.get(OURS), [row for row in rows if row.method in IN_WORDS and row.method not in TWINS]
    said = []
    if ours is not None and usual:
        said.append(_against(ours, max(usual, key=lambda row: row.mean)))
    twin = next((found[name] for name in TWINS if name in found), None)
    if ours is not None and twin is not None and len(ours.values) > 1:
        said.append(_of_training(ours, twin))
    best = max(rows, key=lambda row: row.mean)
    ahead = ours is None or best.mean > ours.mean + 0.05  # what a table rounds away is a tie
    if best.method not in (OURS, GUESSING, *TWINS) and best not in usual and ahead:
        said.append(f"Best of all is {best.method}, with {best.mean:.1f} %.")
    guessing = found.get(GUESSING)
    if guessing is not None and best.mean < guessing.mean + 3 * (guessing.std or 1.0):
        said.append(
            "No row is much better than always naming the largest class: graph and features tell little of the labels."
        )
    return said


def _of_training(ours: OwnRow, twin: OwnRow) -> str:
    """What the training adds to the same encoder without it."""
    gap, without = difference(ours, twin), IN_WORDS[twin.method]
    amount = f"{gap.mean:+.1f} ± {gap.std or 0:.1f} points beside {without}, p = {gap.p:.2g}"
    if not gap.certain:
        return f"Its training makes no difference that {len(ours.values)} splits can tell ({amount})."
    return f"Its training {'helps' if gap.mean > 0 else 'hurts'} ({amount})."


def _against(ours: OwnRow, best: OwnRow) -> str:
    """Ours beside the best of the usual rows."""
    gap, name = difference(ours, best), IN_WORDS.get(best.method, best.method)
    amount = f"{abs(gap.mean):.1f}" + (f" ± {gap.std:.1f}" if gap.std is not None else "")
    more = "above" if gap.mean >= 0 else "below"
    if gap.p is None:
        return f"TopoTER is {amount} points {more} {name} on one split: ask for more --seeds to tell it from luck."
    tested = f"paired t-test over {len(ours.values)} splits, p = {gap.p:.2g}"
    if gap.certain and gap.mean > 0:
        return f"TopoTER adds {amount} points over {name} ({tested})."
    if gap.certain:
        hint = "you may not need topoter, or its parameters do not fit (topoter search)"
        return f"On this graph TopoTER is {amount} points below {name} ({tested}): {hint}."
    if abs(gap.mean) > SMALL:
        hint = "That may be luck: ask for more --seeds"
        return f"TopoTER is {amount} points {more} {name} ({tested}). {hint}."
    gained = f"{gap.mean:+.1f} points for TopoTER"
    return f"On this graph {name} will do as well ({gained}, {tested}): you may not need topoter."
