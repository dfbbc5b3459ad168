"""Graph classification: the paper's table on six sets of graphs, with the reference rows it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.datasets import load_graphs
from topoter.experiments.experiment import Experiment, Measured, Progress, Row, epochs_of
from topoter.experiments.runs import Run
from topoter.tasks import graph_classification
from topoter.tasks.support_vectors import FOLDS

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_labelled(dataset: str, data_root: Path | None) -> list[Data]:
    """The graphs, whose classes are checked now and not after a training."""
    graphs = load_graphs(dataset, data_root)
    graph_classification.labels_of(graphs)
    return graphs


def measure(run: Run, graphs: list[Data], progress: Progress | None) -> Measured:
    """Embed once, cross-validate once: the steps are epochs, then folds."""
    epochs = run.parameters.get("epochs", 0)
    steps = epochs + FOLDS

    def on_fold(fold: int, folds: int) -> None:
        if progress is not None:
            progress(epochs + fold, steps, f"fold {fold} of {folds}")

    on_epoch = epochs_of(progress, steps)
    embedding = graph_classification.embed(graphs, run.recipe.method, run.parameters, run.seed, on_epoch)
    result = graph_classification.score(embedding, graphs, run.seed, on_fold)
    return Measured.trained(result, embedding.losses, embedding.history)


def scores(result: dict[str, Any]) -> dict[str, list[float]]:
    """The mean over test folds, and that over the folds within the training folds that chose C."""
    return {"accuracy": [result["test"]], "validation accuracy": [result["val"]]}


EXPERIMENT = Experiment(
    name="graph-classification",
    datasets=("mutag", "ptc_mr", "reddit-binary", "reddit-multi-5k", "imdb-binary", "imdb-multi"),
    rows=(
        Row("degree-histogram"),
        Row("wl"),
        Row("random-init"),
        Row("infograph"),
        Row("topoter", "paper"),
        Row("topoter", "best"),
    ),
    metrics=("accuracy",),
    load=load_labelled,
    measure=measure,
    scores=scores,
)
