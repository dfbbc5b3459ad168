"""Graph classification: labels of a set of graphs, and the score of embeddings by one support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.errors import DataError
from topoter.tasks.support_vectors import check_classes, cross_validate

if TYPE_CHECKING:
    from torch_geometric.data import Data


def without_labels(graphs: list[Data]) -> list[Data]:
    """The graphs as a method gets them."""
    from torch_geometric.data import Data

    keys = ("x", "edge_index", "edge_weight", "num_nodes")
    return [Data(**{key: graph[key] for key in keys if key in graph}) for graph in graphs]


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
    return {
        "test": float(np.mean([fold.test for fold in folds])),
        "val": float(np.mean([fold.inner for fold in folds])),
        "folds": [fold.test for fold in folds],
        "penalties": [fold.penalty for fold in folds],
    }
