"""Graph classification: the paper's table on six sets of graphs, with the reference rows it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from topoter.datasets import load_graphs
from topoter.experiments.experiment import Experiment, Measured, Progress, Row
from topoter.experiments.following import Follow, how_it_ended
from topoter.experiments.runs import Run
from topoter.methods import build
from topoter.tasks.graph_classification import labels_of, score, without_labels
from topoter.tasks.support_vectors import FOLDS

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_labelled(dataset: str, data_root: Path | None) -> list[Data]:
    """The graphs, whose classes are checked now and not after a training."""
    graphs = load_graphs(dataset, data_root)
    labels_of(graphs)
    return graphs


def measure(run: Run, graphs: list[Data], progress: Progress | None) -> Measured:
    """Embed once, cross-validate once: the steps are epochs, then folds."""
    epochs = run.parameters.get("epochs", 0)
    steps = epochs + FOLDS

    def on_fold(fold: int, folds: int) -> None:
        if progress is not None:
            progress(epochs + fold, steps, f"fold {fold} of {folds}")

    unlabelled = without_labels(graphs)
    fitted = build(run.recipe.method, "graph", run.parameters).fit(unlabelled, run.seed, [Follow(progress, steps)])
    z = None if fitted.kernel is not None else fitted.embed(unlabelled)
    found = score(graphs, run.seed, z=z, kernel=fitted.kernel, on_fold=on_fold)
    # The mean over test folds, and that over the folds within the training folds that chose C.
    scores = {"accuracy": [found.pop("test")], "validation accuracy": [found.pop("val")]}
    return Measured(scores, found | how_it_ended(fitted), fitted.losses)


EXPERIMENT = Experiment(
    name="graph-classification",
    task="graph",
    datasets=("mutag", "ptc_mr", "reddit-binary", "reddit-multi-5k", "imdb-binary", "imdb-multi"),
    rows=(
        Row("degree-histogram"),
        Row("rw"),
        Row("sp"),
        Row("gk"),
        Row("wl"),
        Row("dgk"),
        Row("mlg"),
        Row("node2vec"),
        Row("sub2vec"),
        Row("graph2vec"),
        Row("random-init"),
        Row("infograph"),
        Row("graphcl"),
        Row("graphmae"),
        Row("topoter", "paper"),
        Row("topoter", "best"),
    ),
    metrics=("accuracy",),
    load=load_labelled,
    measure=measure,
)
