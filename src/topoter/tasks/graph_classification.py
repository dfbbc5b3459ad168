"""Graph classification: labels of a set of graphs, and the score of embeddings by one support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.errors import DataError
from topoter.tasks.support_vectors import FoldScore, check_classes, cross_validate, folds_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.methods import Fitted


def without_labels(graphs: list[Data]) -> list[Data]:
    """The graphs as a method gets them."""
    from torch_geometric.data import Data

    keys = ("x", "edge_index", "edge_weight", "num_nodes")
    return [Data(**{key: graph[key] for key in keys if key in graph}) for graph in graphs]


def known_labels(graphs: list[Data], train: np.ndarray) -> list[Data]:
    """The graphs as a method that needs labels gets them: only the training ones have theirs."""
    known = without_labels(graphs)
    for number in train.tolist():
        known[number].y = graphs[number].y
    return known


def labels_of(graphs: list[Data]) -> np.ndarray:
    """The class of every graph [G], of which each has enough members to be cross-validated."""
    for number, graph in enumerate(graphs):
        if graph.get("y") is None or graph.y.numel() != 1:
            raise DataError(f"Graph {number} of the set (counted from 0) has no label: its y must be one number.")
    y = np.array([int(graph.y) for graph in graphs])
    check_classes(y)
    return y


def score(
    graphs: list[Data],
    seed: int,
    *,
    z: np.ndarray | None = None,
    kernel: np.ndarray | None = None,
    on_fold: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Mean accuracy in percent over ten folds; that of every fold, and what was chosen inside it.

    Args:
        z, kernel: embeddings [G, F], or similarities [G, G].
    """
    folds = cross_validate(labels_of(graphs), seed, z=z, kernel=kernel, on_fold=on_fold)
    return _means(folds) | {"penalties": [fold.penalty for fold in folds]}


def score_labelled(graphs: list[Data], seed: int, fit: Callable[[int, list[Data]], Fitted]) -> dict[str, Any]:
    """The same of a method that is trained with labels: anew for each fold, scored by its own predictions.

    Args:
        fit: a fitted method, from the number of the fold and the graphs, of which only the training ones have labels.
    """
    y = labels_of(graphs)
    unlabelled = without_labels(graphs)
    folds, epochs = [], []
    for number, (train, test) in enumerate(folds_of(y, seed)):
        fitted = fit(number, known_labels(graphs, train))
        predicted = fitted.predict([unlabelled[graph] for graph in test])
        epochs.append(fitted.best_epoch)
        folds.append(FoldScore(fitted.validation or 0.0, 100 * float((predicted == y[test]).mean())))
    return _means(folds) | {"best_epochs": epochs}


def _means(folds: list[FoldScore]) -> dict[str, Any]:
    return {
        "test": float(np.mean([fold.test for fold in folds])),
        "val": float(np.mean([fold.inner for fold in folds])),
        "folds": [fold.test for fold in folds],
    }
