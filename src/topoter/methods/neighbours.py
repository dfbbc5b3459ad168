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
from topoter.structure.history import matrix
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
    a = matrix(adjacency)
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


class _NextTime(Method):
    """A score that is read off the latest snapshot."""

    @staticmethod
    def scores(known: Adjacency, pairs: Tensor) -> Tensor:
        raise NotImplementedError

    def fit(self, graph: list[Transition], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        return Fitted(pairs=lambda known, pairs: self.scores(known.latest, pairs))


@register("persistence", "temporal")
class Persistence(_NextTime):
    """The persistence baseline: 1 for a pair that is connected now, 0 for one that is not."""

    @staticmethod
    def scores(known: Adjacency, pairs: Tensor) -> Tensor:
        low, high = torch.minimum(*pairs), torch.maximum(*pairs)
        return torch.isin(low * known.num_nodes + high, known.keys).float()


@register("common-neighbours", "temporal")
class CommonNeighbours(_NextTime):
    """How many neighbours two nodes share now."""

    @staticmethod
    def scores(known: Adjacency, pairs: Tensor) -> Tensor:
        a, (rows, columns) = matrix(known), pairs.numpy()
        return torch.from_numpy(np.asarray(a[rows].multiply(a[columns]).sum(axis=1)).ravel())


@register("preferential-attachment", "temporal")
class PreferentialAttachment(_NextTime):
    """The product of the numbers of neighbours that two nodes have now (Barabasi and Albert, 1999)."""

    @staticmethod
    def scores(known: Adjacency, pairs: Tensor) -> Tensor:
        degree = torch.bincount(known.edges.flatten(), minlength=known.num_nodes)
        return (degree[pairs[0]] * degree[pairs[1]]).float()
