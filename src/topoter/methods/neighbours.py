"""Scores of pairs that need no training: like features, shared neighbours, and edges that stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from topoter.methods.base import Fitted, Method, register
from topoter.structure.adjacency import Adjacency
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.pretext.transformation import Transition


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


@register("feature-cosine", "link")
class FeatureCosine(Method):
    """How alike two nodes' features are."""

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        return Fitted(pairs=lambda known, pairs: feature_cosine(known.x, pairs))


@register("adamic-adar", "link")
class AdamicAdar(Method):
    """How many neighbours two nodes share, the rare ones counting more."""

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        def scores(known: Data, pairs: Tensor) -> Tensor:
            adjacency, _ = Adjacency.from_edge_index(known.edge_index, known.num_nodes)
            return adamic_adar(adjacency, pairs)

        return Fitted(pairs=scores)


@register("persistence", "temporal")
class Persistence(Method):
    """The persistence baseline: 1 for a pair that is connected now, 0 for one that is not."""

    def fit(self, graph: list[Transition], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        def scores(known: Adjacency, pairs: Tensor) -> Tensor:
            low, high = torch.minimum(*pairs), torch.maximum(*pairs)
            return torch.isin(low * known.num_nodes + high, known.keys).float()

        return Fitted(pairs=scores)
