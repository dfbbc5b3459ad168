"""Node classification: splits of a labelled graph, and the score of embeddings by one linear probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.datasets.splits import random_split
from topoter.errors import DataError
from topoter.methods import UNKNOWN_LABEL, Method
from topoter.tasks.probe import Split, fit_probe

if TYPE_CHECKING:
    from torch_geometric.data import Data

LABELS = ("y", "train_mask", "val_mask", "test_mask")


def graph_for(method: Method, data: Data) -> Data:
    """The graph as a method gets it: without labels, or if it needs them, without those of the test."""
    return known_labels(data) if getattr(method, "needs_labels", False) else without_labels(data)


def known_labels(data: Data) -> Data:
    """The graph with the labels of training and validation nodes; all others are erased."""
    split_of(data)  # all three parts are there
    known = data.clone()
    known.y = torch.where(data.train_mask | data.val_mask, data.y, torch.full_like(data.y, UNKNOWN_LABEL))
    del known["test_mask"]
    return known


def without_labels(data: Data) -> Data:
    """The graph without a label."""
    unlabelled = data.clone()
    for name in LABELS:
        if name in unlabelled:
            del unlabelled[name]
    return unlabelled


def split_by_seed(data: Data, seed: int) -> Data:
    """The same graph; where no split was published, with the random one of this seed."""
    if not data.get("split_is_random", False):
        return data
    other = data.clone()
    other.train_mask, other.val_mask, other.test_mask = random_split(data.y, seed=seed)
    return other


def split_of(data: Data) -> Split:
    """The split that comes with a dataset."""
    if any(data.get(name) is None for name in LABELS):
        raise DataError("The graph has no labels or no split: node classification needs y and three masks.")
    parts = {name: data[f"{name}_mask"].nonzero().view(-1).numpy() for name in ("train", "val", "test")}
    for name, nodes in parts.items():
        if not len(nodes):
            raise DataError(
                f"The split of the {data.num_nodes} nodes has none for {name}. Label more nodes, or give the graph "
                "masks of its own; random splits take 20 nodes of each class for training and 30 for validation."
            )
    return Split(**parts)


def score(z: np.ndarray, data: Data) -> dict[str, Any]:
    """Validation and test accuracy in percent, and the probe that validation chose."""
    result = fit_probe(z, data.y.numpy(), split_of(data))
    return {"val": result.val, "test": result.test, "scaling": result.scaling, "penalty": result.penalty}


def score_classes(predicted: np.ndarray, data: Data) -> dict[str, Any]:
    """The accuracies of a method's own predictions [N] in percent."""
    split, y = split_of(data), data.y.numpy()
    val, test = (100 * float((predicted[nodes] == y[nodes]).mean()) for nodes in (split.val, split.test))
    return {"val": val, "test": test}
