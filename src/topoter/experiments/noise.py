"""The paper's study of noisy features: trained on clean ones, tested on X + E, Gaussian or Laplace, at k = 1.

A run trains one encoder and measures every kind and level of noise on it (see `tasks/feature_noise.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.experiments.experiment import Experiment, Measured, Progress, Row, epochs_of
from topoter.experiments.node_classification import load_labelled
from topoter.experiments.runs import Run
from topoter.experiments.studies import DATASETS, REFERENCES, averaged, curves, draw_curves
from topoter.tasks import node_classification
from topoter.tasks.feature_noise import LEVELS, NOISES, score_under_noise

if TYPE_CHECKING:
    from torch_geometric.data import Data

AXES = {"gaussian": "standard deviation of Gaussian noise", "laplace": "scale of Laplace noise"}
CLEAN = "no noise"
SHOWN = (0.02, 0.05, 0.1)  # the levels of the table; the figure has them all


def measure(run: Run, data: Data, progress: Progress | None) -> Measured:
    """Embed once, then classify under all noise: the steps are epochs, then levels."""
    data = node_classification.split_by_seed(data, run.seed)
    epochs = run.parameters.get("epochs", 0)
    steps = epochs + len(NOISES) * len(LEVELS)

    def on_level(level: int, levels: int) -> None:
        if progress is not None:
            progress(epochs + level, steps, f"noise {level} of {levels}")

    method, on_epoch = run.recipe.method, epochs_of(progress, steps)
    embedding = node_classification.embed(data, method, run.parameters, run.seed, on_epoch)
    result = score_under_noise(embedding, data, run.seed, on_level)
    return Measured.trained(result, embedding.losses, embedding.history)


def scores(result: dict[str, Any]) -> dict[str, list[float]]:
    """The test accuracy without noise and at every level of each kind, and that on (clean) validation nodes."""
    found = {CLEAN: [result["test"]]}
    for kind in NOISES:
        found |= {name(kind, level): [score] for level, score in zip(result["levels"], result[kind]) if level > 0}
    return found | {"validation accuracy": [result["val"]]}


def name(kind: str, level: float) -> str:
    """A column of the table."""
    return f"{kind.capitalize()} {level:.2f}"


def figures(stored: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """One page with two charts per dataset: mean accuracy over seeds by the level of each noise."""
    return [draw_curves("noisy features", stored, folder, lambda runs: [chart(runs, kind) for kind in NOISES])]


def chart(runs: Sequence[dict[str, Any]], kind: str) -> Any:
    """The curves of every method on one dataset under one kind of noise."""

    def points(of_method: Sequence[dict[str, Any]]) -> list[tuple[float, float, float]]:
        results = [run["result"] for run in of_method]
        return averaged(point for result in results for point in zip(result["levels"], result[kind]))

    return curves(runs, points, AXES[kind], kind.capitalize())


EXPERIMENT = Experiment(
    name="noise",
    recipes="node-classification",
    datasets=DATASETS,
    rows=tuple(Row(method) for method in ("topoter", "dgi", "gae", *REFERENCES)),
    metrics=(CLEAN, *(name(kind, level) for kind in NOISES for level in SHOWN)),
    load=load_labelled,
    measure=measure,
    scores=scores,
    variations=({"order": 1},),
    figures=figures,
)
