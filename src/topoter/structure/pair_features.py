"""What the graph alone says of a pair of nodes: their degrees, and the short paths between them."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from topoter.structure.adjacency import Adjacency
from topoter.structure.history import matrix

NAMES = (
    "lower degree",
    "higher degree",
    "common neighbours",
    "Adamic-Adar",
    "resource allocation",
    "3 steps",
    "4 steps",
)


def pair_features(adjacency: Adjacency, pairs: Tensor) -> Tensor:
    """Of pairs [2, P] the numbers in `NAMES`, [P, 7]; the same for (i, j) and (j, i).

    Degrees and counts by their logarithm; paths of three and four steps by entries of powers of D^-1/2 A D^-1/2.
    A pair that is an edge shows in all of them: hide an edge before asking for it.
    """
    a, (i, j) = matrix(adjacency), pairs.numpy()
    degree = np.asarray(a.sum(axis=1)).ravel()
    shared = a[i].multiply(a[j]).tocsr()
    scale = sparse.diags(1 / np.sqrt(np.maximum(degree, 1)))
    one = (scale @ a @ scale).tocsr()
    two = (one @ one).tocsr()
    from_i = two[i]
    steps = [np.asarray(from_i.multiply(to[j]).sum(axis=1)).ravel() for to in (one, two)]
    columns = [
        np.log1p(np.minimum(degree[i], degree[j])),
        np.log1p(np.maximum(degree[i], degree[j])),
        np.log1p(shared @ np.ones(len(degree))),
        shared @ (1 / np.log(np.maximum(degree, 2))),  # a shared neighbour has two neighbours at least
        shared @ (1 / np.maximum(degree, 1)),
        *(np.log1p(10 * values) for values in steps),
    ]
    return torch.from_numpy(np.stack(columns, axis=1)).float()
