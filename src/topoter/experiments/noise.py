"""The paper's study of noisy features: trained on clean ones, tested on X + E, Gaussian or Laplace, at k = 1.

A run trains one encoder and measures every kind and level of noise on it (see `tasks/feature_noise.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoter.experiments.experiment import Experiment, Measured, Progress, Row
from topoter.experiments.following import Follow, how_it_ended
from topoter.experiments.node_classification import LABELLED, load_labelled
from topoter.experiments.runs import Run
from topoter.experiments.studies import DATASETS, OURS, REFERENCES, paper_width
from topoter.methods import build
from topoter.tasks.feature_noise import CURVES, LEVELS, scaled_rows, score_under_noise
from topoter.tasks.node_classification import graph_for, split_by_seed

if TYPE_CHECKING:
    from torch_geometric.data import Data

CLEAN = "no noise"
SHOWN = (0.05, 0.1)  # the levels of the table; the figure has them all


def measure(run: Run, data: Data, progress: Progress | None) -> Measured:
    """Embed once, then classify under all noise: the steps are epochs, then levels."""
    data = split_by_seed(data, run.seed)
    epochs = run.parameters.get("epochs", 0)
    steps = epochs + len(CURVES) * len(LEVELS)

    def on_level(level: int, levels: int) -> None:
        if progress is not None:
            progress(epochs + level, steps, f"noise {level} of {levels}")

    scaling = run.parameters.get("feature_scaling", "none")
    unscaled = {"feature_scaling": "none"} if "feature_scaling" in run.parameters else {}
    made = build(run.recipe.method, "node", run.parameters | unscaled)
    clean = scaled_rows(graph_for(made, data), scaling)
    fitted = made.fit(clean, run.seed, [Follow(progress, steps)])
    found = score_under_noise(fitted.embed, data, scaling, run.seed, on_level, fitted.classes)
    found |= LABELLED if fitted.classes else {}
    scores = {CLEAN: [found.pop("test")]}
    for curve in CURVES:
        scores |= {name(curve, level): [score] for level, score in zip(LEVELS, found[curve]) if level > 0}
    scores["validation accuracy"] = [found.pop("val")]
    return Measured(scores, found | how_it_ended(fitted), fitted.losses)


def name(curve: str, level: float) -> str:
    """A column of the table."""
    kind, as_clean = CURVES[curve]
    return f"{kind.capitalize()} {level:.2f}{' (clean scale)' if as_clean else ''}"


EXPERIMENT = Experiment(
    name="noise",
    task="node",
    recipes="node-classification",
    datasets=DATASETS,
    rows=(OURS, Row("dgi"), Row("gae"), *REFERENCES),
    metrics=(CLEAN, *(name(kind, level) for kind in CURVES for level in SHOWN)),
    load=load_labelled,
    measure=measure,
    fixed=paper_width,
    variations=({"order": 1},),
)
