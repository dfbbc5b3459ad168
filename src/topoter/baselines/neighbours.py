"""Scores of pairs that need no training: how alike two nodes' features are, and which neighbours they share."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from topoter.adjacency import Adjacency


def feature_cosine(x: Tensor, pairs: Tensor) -> Tensor:
    """The cosine of the angle between two nodes' features [N, C]; the graph is not looked at."""
    unit = torch.nn.functional.normalize(x.to_dense().float(), dim=1)
    return (unit[pairs[0]] * unit[pairs[1]]).sum(1)


def adamic_adar(adjacency: Adjacency, pairs: Tensor) -> Tensor:
    """The sum of 1 / log(degree) over shared neighbours (Adamic and Adar, 2003); features are not looked at."""
    edge_index = adjacency.edge_index.numpy()
    shape = (adjacency.num_nodes, adjacency.num_nodes)
    a = sparse.csr_matrix((np.ones(edge_index.shape[1]), (edge_index[0], edge_index[1])), shape=shape)
    degree = np.asarray(a.sum(axis=0)).ravel()
    # A shared neighbour has two neighbours at least; others are never counted, whatever weight they get.
    weighted = a @ sparse.diags(1 / np.log(np.maximum(degree, 2)))
    rows, columns = pairs.numpy()
    return torch.from_numpy(np.asarray(weighted[rows].multiply(a[columns]).sum(axis=1)).ravel())
