"""Node classification: the paper's table on Cora, CiteSeer and PubMed, with the reference rows it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.datasets import load
from topoter.experiments.experiment import Experiment, Measured, Progress, Row, epochs_of
from topoter.experiments.runs import Run
from topoter.tasks import node_classification
from topoter.tasks.paper_protocol import score_as_the_authors

if TYPE_CHECKING:
    from torch_geometric.data import Data

RESTARTS = 50  # of the classifier, in the authors' protocol


def load_labelled(dataset: str, data_root: Path | None) -> Data:
    return load(dataset, data_root=data_root)


def measure(run: Run, data: Data, progress: Progress | None) -> Measured:
    """Embed and score once; the authors' protocol restarts the classifier many times on that one encoder."""
    data = node_classification.split_by_seed(data, run.seed)
    on_epoch = epochs_of(progress, run.parameters.get("epochs", 0))
    embedding = node_classification.embed(data, run.recipe.method, run.parameters, run.seed, on_epoch)
    if run.protocol == "paper":
        split = node_classification.split_of(data)
        scored = score_as_the_authors(embedding.z, data.y.numpy(), split, RESTARTS, run.seed)
        result: dict[str, Any] = {"test": scored.test, "classifier_epochs": scored.epochs}
    else:
        result = node_classification.score(embedding, data)
    return Measured.trained(result, embedding.losses, embedding.history)


def scores(result: dict[str, Any]) -> dict[str, list[float]]:
    """The test accuracy (of every restart, in the authors' protocol), and that on validation where it was used."""
    test = result["test"]
    found = {"accuracy": test if isinstance(test, list) else [test]}
    return found | ({"validation accuracy": [result["val"]]} if "val" in result else {})


EXPERIMENT = Experiment(
    name="node-classification",
    datasets=("cora", "citeseer", "pubmed"),
    # The authors' protocol only for their own recipe: it selects on test labels.
    rows=(
        Row("raw", "best"),
        Row("propagated", "best"),
        Row("propagated-tuned", "best"),
        Row("random-init", "best"),
        Row("gae", "paper"),
        Row("vgae", "paper"),
        Row("dgi", "paper"),
        Row("topoter", "paper"),
        Row("topoter", "paper", "paper"),
        Row("topoter", "best"),
    ),
    metrics=("accuracy",),
    load=load_labelled,
    measure=measure,
    scores=scores,
    protocols=("validation", "paper"),
    single=frozenset({"paper"}),
)
