"""Edges held out for choosing and for testing, and how predictions of them are scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from topoter.errors import DataError
from topoter.methods.randomness import seeded
from topoter.structure.adjacency import Adjacency

if TYPE_CHECKING:
    from torch_geometric.data import Data

VAL_SHARE, TEST_SHARE = 0.05, 0.10
HITS = (20, 50, 100)


@dataclass(frozen=True)
class HeldOut:
    """Pairs [2, P] to be told apart: connected (1) or not (0), as many of each."""

    pairs: Tensor
    label: Tensor

    @classmethod
    def of(cls, connected: Tensor, disconnected: Tensor) -> HeldOut:
        label = torch.cat([torch.ones(connected.size(1)), torch.zeros(disconnected.size(1))])
        return cls(torch.cat([connected, disconnected], dim=1), label)


@dataclass(frozen=True)
class LinkSplit:
    """A graph without its held-out edges, and those edges with as many disconnected pairs.

    Whoever trains gets `data` alone, which holds the validation pairs as well; `test` is scored once, at the end.
    """

    data: Data  # features, training edges only, and the validation pairs as edge_label_index and edge_label
    val: HeldOut
    test: HeldOut


def split_links(data: Data, seed: int) -> LinkSplit:
    """Hold out 5 % of the undirected edges for validation and 10 % for testing, by PyG's RandomLinkSplit.

    Messages pass along the training edges only, also when test pairs are predicted (PyG's own test graph has the
    validation edges too).
    """
    from torch_geometric.transforms import RandomLinkSplit

    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
    check_splittable(adjacency)
    plain = type(data)(x=data.x, edge_index=adjacency.edge_index, num_nodes=data.num_nodes)
    if adjacency.edge_weight is not None:
        plain.edge_weight = adjacency.edge_weight
    split = RandomLinkSplit(VAL_SHARE, TEST_SHARE, is_undirected=True, add_negative_train_samples=False)
    with seeded(seed):  # PyG draws from global random state
        train, val, test = split(plain)
    held_out = []
    for part in (val, test):
        pairs, label = part.edge_label_index, part.edge_label > 0
        held_out.append(HeldOut.of(pairs[:, label], pairs[:, ~label]))
    # What a method may decide by when to stop, under the names that PyG gives such pairs.
    train.edge_label_index, train.edge_label = held_out[0].pairs, held_out[0].label
    return LinkSplit(train, *held_out)


def check_splittable(adjacency: Adjacency) -> None:
    """Raise unless there are edges and disconnected pairs enough for all three parts."""
    num_edges = adjacency.num_edges
    num_val, num_test = int(VAL_SHARE * num_edges), int(TEST_SHARE * num_edges)
    if num_val < 1:
        raise DataError(
            f"The graph has {num_edges} edges: too few to hold out {VAL_SHARE:.0%} for validation and {TEST_SHARE:.0%} "
            f"for testing. At least {round(1 / VAL_SHARE)} are needed."
        )
    free = int(adjacency.pair_space.num_disconnected.sum())
    if free < num_val + num_test:
        raise DataError(
            f"The graph has {free} disconnected pairs; {num_val + num_test} are needed to hold out as many as edges."
        )


def auc_and_ap(held_out: HeldOut, scores: Tensor | np.ndarray) -> tuple[float, float]:
    """Area under the ROC curve and average precision, in percent."""
    label, values = held_out.label.numpy(), np.asarray(scores, dtype=np.float64)
    return 100 * float(roc_auc_score(label, values)), 100 * float(average_precision_score(label, values))


def hits_and_mrr(held_out: HeldOut, scores: Tensor | np.ndarray) -> dict[str, float]:
    """Hits@20, 50 and 100 and the mean reciprocal rank in percent, as OGB's evaluator has them.

    Each edge is held against all disconnected pairs of the same part. Hits@K is the share of edges above the K-th best
    of those; an edge's rank among them, ties counted by half, is 1 at best. They differ where AUC is near 100.
    """
    label, values = held_out.label.numpy() > 0, np.asarray(scores, dtype=np.float64)
    edges, others = values[label], np.sort(values[~label])
    found = {}
    for k in HITS:  # where there are fewer than K, every edge is a hit
        found[f"Hits@{k}"] = 100 * float((edges > others[-k]).mean()) if k <= len(others) else 100.0
    above = len(others) - np.searchsorted(others, edges, side="right")
    at_least = len(others) - np.searchsorted(others, edges, side="left")
    return found | {"MRR": 100 * float((1 / ((above + at_least) / 2 + 1)).mean())}
