"""The paper's study of noisy features: trained on clean ones, tested on X + E, Gaussian or Laplace, at k = 1.

A run trains one encoder and measures every kind and level of noise on it (see `tasks/feature_noise.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topoter.experiments.experiment import Experiment, Measured, Progress, Row, epochs_of
from topoter.experiments.node_classification import load_labelled
from topoter.experiments.runs import Run
from topoter.experiments.studies import DATASETS, REFERENCES, WIDTHS, Point, averaged, curves, paper_width
from topoter.tasks.feature_noise import CURVES, LEVELS, embed_scaled, score_under_noise
from topoter.tasks.node_classification import split_by_seed

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.report import Html

AXES = {"gaussian": "standard deviation of Gaussian noise", "laplace": "scale of Laplace noise"}
CLEAN = "no noise"
SHOWN = (0.05, 0.1)  # the levels of the table; the figure has them all
ABOUT = (
    "Encoder and probe are trained on clean features. Noise is added to the features as the dataset gives them, then "
    "rows are scaled as each method's recipe says: to sum one (DGI, GAE; TopoTER on Cora) or to length one (TopoTER on "
    "CiteSeer and PubMed). Where most features are zero, noise multiplies that sum, and dividing by it shrinks all the "
    f"rest; “clean scale” divides by the sum or length that the row had without noise. {WIDTHS}"
)


def measure(run: Run, data: Data, progress: Progress | None) -> Measured:
    """Embed once, then classify under all noise: the steps are epochs, then levels."""
    data = split_by_seed(data, run.seed)
    epochs = run.parameters.get("epochs", 0)
    steps = epochs + len(CURVES) * len(LEVELS)

    def on_level(level: int, levels: int) -> None:
        if progress is not None:
            progress(epochs + level, steps, f"noise {level} of {levels}")

    method, on_epoch = run.recipe.method, epochs_of(progress, steps)
    embedding = embed_scaled(data, method, run.parameters, run.seed, on_epoch)
    result = score_under_noise(embedding, data, run.parameters.get("feature_scaling", "none"), run.seed, on_level)
    return Measured.trained(result, embedding.losses, embedding.history)


def scores(result: dict[str, Any]) -> dict[str, list[float]]:
    """The test accuracy without noise and at every level of each kind, and that on (clean) validation nodes."""
    found = {CLEAN: [result["test"]]}
    for curve in CURVES:
        found |= {name(curve, level): [score] for level, score in zip(result["levels"], result[curve]) if level > 0}
    return found | {"validation accuracy": [result["val"]]}


def name(curve: str, level: float) -> str:
    """A column of the table."""
    kind, as_clean = CURVES[curve]
    return f"{kind.capitalize()} {level:.2f}{' (clean scale)' if as_clean else ''}"


def charts(stored: Sequence[dict[str, Any]]) -> list[tuple[str, Html]]:
    """Mean accuracy over seeds by the level of noise: for each kind, and its twin, a chart of every dataset."""
    datasets = dict.fromkeys(run["dataset"] for run in stored)
    return [
        (title(dataset, curve), chart([run for run in stored if run["dataset"] == dataset], dataset, curve))
        for curve in CURVES
        for dataset in datasets
    ]


def title(dataset: str, curve: str) -> str:
    kind, as_clean = CURVES[curve]
    return f"{dataset}, {kind.capitalize()}{', clean scale' if as_clean else ''}"


def chart(runs: Sequence[dict[str, Any]], dataset: str, curve: str) -> Html:
    """The curves of every method on one dataset under one kind of noise."""

    def points(of_method: Sequence[dict[str, Any]]) -> list[Point]:
        results = [run["result"] for run in of_method]
        return averaged(point for result in results for point in zip(result["levels"], result[curve]))

    return curves(runs, points, AXES[CURVES[curve][0]], title(dataset, curve))


EXPERIMENT = Experiment(
    name="noise",
    recipes="node-classification",
    datasets=DATASETS,
    rows=tuple(Row(method) for method in ("topoter", "dgi", "gae", *REFERENCES)),
    metrics=(CLEAN, *(name(kind, level) for kind in CURVES for level in SHOWN)),
    load=load_labelled,
    measure=measure,
    scores=scores,
    fixed=paper_width,
    variations=({"order": 1},),
    charts=charts,
    about=ABOUT,
)
