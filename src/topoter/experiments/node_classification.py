"""Node classification: the paper's table on Cora, CiteSeer and PubMed, two more graphs, and the rows it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.datasets import load
from topoter.datasets.planetoid import CLASS_NAMES
from topoter.errors import DataError, UsageError
from topoter.experiments.experiment import Experiment, Measured, Progress, Row
from topoter.experiments.following import Follow, how_it_ended
from topoter.experiments.runs import Run
from topoter.methods import build
from topoter.tasks.node_classification import graph_for, score, score_classes, split_by_seed, split_of
from topoter.tasks.paper_protocol import score_as_the_authors
from topoter.tasks.projection import project_2d

if TYPE_CHECKING:
    from torch_geometric.data import Data

RESTARTS = 50  # of the classifier, in the authors' protocol
MAPPED = ("cora",)  # one picture is enough to see what training does
LABELLED = {"trained_with": "labels"}  # marks the runs of semi-supervised methods


def load_labelled(dataset: str, data_root: Path | None) -> Data:
    data = load(dataset, data_root=data_root)
    if data.get("y") is None:
        raise DataError(f"{dataset} has no labels to classify by; `topoter evaluate link` needs none.")
    return data


def measure(run: Run, data: Data, progress: Progress | None) -> Measured:
    """Embed and score once; the authors' protocol restarts the classifier many times on that one encoder.

    A method that was trained with labels is scored by its own predictions.
    """
    data = split_by_seed(data, run.seed)
    made = build(run.recipe.method, "node", run.parameters)
    given = graph_for(made, data)
    labelled = "y" in given
    if labelled and run.protocol == "paper":
        raise UsageError(
            f"{run.recipe.method} predicts classes itself: there is no classifier to restart (--protocol)."
        )
    fitted = made.fit(given, run.seed, [Follow(progress)])
    ended = how_it_ended(fitted)
    if labelled:
        found = score_classes(fitted.predict(given), data) | LABELLED
        return Measured(_scores(found), found | ended, fitted.losses)
    z = fitted.embed(given)
    if run.protocol == "paper":
        authors = score_as_the_authors(z, data.y.numpy(), split_of(data), RESTARTS, run.seed)
        return Measured({"accuracy": authors.test}, {"classifier_epochs": authors.epochs} | ended, fitted.losses)
    found = score(z, data)
    return Measured(_scores(found), found | ended, fitted.losses, _map(run, data, given, z))


def _scores(found: dict[str, Any]) -> dict[str, list[float]]:
    """What is shown of what was found, taken out of it."""
    return {"accuracy": [found.pop("test")], "validation accuracy": [found.pop("val")]}


def _map(run: Run, data: Data, unlabelled: Data, z: np.ndarray) -> dict[str, Any]:
    """The embeddings before and after training on a plane, of one run; labels colour the dots and place none."""
    recipe = run.recipe
    wanted = ("node-classification", "topoter", "tuned", 0)
    if (recipe.experiment, recipe.method, recipe.name, run.seed) != wanted or recipe.dataset not in MAPPED:
        return {}
    untrained = build("random-init", "node", run.parameters).fit(unlabelled, run.seed).embed(unlabelled)
    content = {
        "dataset": recipe.dataset,
        "method": recipe.method,
        "recipe": recipe.name,
        "parameters": run.parameters,
        "seed": run.seed,
        "maps": {"before training": _plane(untrained, run.seed), "after training": _plane(z, run.seed)},
        "labels": data.y.tolist(),
        "label_names": list(CLASS_NAMES.get(recipe.dataset, [])),
    }
    return {f"maps/{recipe.dataset}.json": content}


def _plane(z: np.ndarray, seed: int) -> list[list[float]]:
    return [[round(float(x), 3), round(float(y), 3)] for x, y in project_2d(z, seed=seed)]


# In the paper's order, what it does not have after it.
WITH_LABELS = ("gcn", "monet", "gat", "sgc", "gwnn", "mixhop", "dfnet")
WITHOUT_LABELS = (
    "deepwalk", "deepwalk+features", "node2vec", "gae", "vgae", "dgi", "gmi", "graphter",
    "grace", "bgrl", "cca-ssg", "graphmae", "maskgae",
)  # fmt: skip

EXPERIMENT = Experiment(
    name="node-classification",
    task="node",
    datasets=("cora", "citeseer", "pubmed", "computers", "physics"),
    # The authors' protocol only for their own recipe: it selects on test labels.
    rows=(
        Row("raw", "tuned"),
        Row("propagated", "tuned"),
        Row("propagated-tuned", "best"),
        Row("hop-svd", "default"),
        Row("spectral", "default"),
        Row("random-init", "tuned"),
        Row("random-init", "default"),
        *(Row(method, "paper") for method in WITHOUT_LABELS),
        Row("topoter", "paper"),
        Row("topoter", "paper", "paper"),
        Row("topoter", "tuned"),
        Row("topoter", "best", except_on=frozenset({"computers", "physics"})),  # searched for on the paper's graphs
        Row("topoter", "default"),
        *(Row(method, "paper") for method in WITH_LABELS),
    ),
    metrics=("accuracy",),
    load=load_labelled,
    measure=measure,
    protocols=("validation", "paper"),
    single=frozenset({"paper"}),
)
