"""Why two nodes are likely to be connected, in words a user can check: shared neighbours, and features alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from topoter.structure.adjacency import Adjacency
from topoter.structure.history import matrix

if TYPE_CHECKING:
    from torch_geometric.data import Data

MOST_NEIGHBOURS, MOST_FEATURES = 5, 3


@dataclass(frozen=True)
class Reasons:
    """Of one pair: how many neighbours both have, the rarest of them, and the features that say most alike of both."""

    shared: int
    neighbours: list[int]
    alike: list[str]


def reasons(data: Data, pairs: Tensor) -> list[Reasons]:
    """For every pair [2, P]; a shared neighbour with few others counts before one with many.

    Features are alike where both nodes are far from the mean on the same side: the product of their standard scores. Of
    features that are 0 or 1 both nodes must have it: `team=red` is no reason for two nodes of the team blue.
    """
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    a = matrix(adjacency)
    degree = np.asarray(a.sum(axis=1)).ravel()
    x = data.x.to_dense().float()
    deviation, mean = torch.std_mean(x, 0)
    flag = ((x == 0) | (x == 1)).all(0)
    names = data.get("feature_names") or [f"feature {column}" for column in range(x.size(1))]
    found = []
    for i, j in pairs.t().tolist():
        both = np.intersect1d(a[i].indices, a[j].indices)
        rare = both[np.argsort(degree[both], kind="stable")][:MOST_NEIGHBOURS]
        score = ((x[i] - mean) * (x[j] - mean) / deviation.square()).nan_to_num(0.0, 0.0, 0.0)
        score[flag & (x[i] == 0)] = 0.0
        best = score.topk(min(MOST_FEATURES, score.numel()))
        alike = [str(names[column]) for value, column in zip(best.values.tolist(), best.indices.tolist()) if value > 0]
        found.append(Reasons(len(both), rare.tolist(), alike))
    return found
