"""What needs no training: features as they are, propagated along the edges, singular vectors, eigenvectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from topoter.methods.base import Fitted, Method, register
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import FEATURE_SCALINGS, prepare_features
from topoter.structure.hops import leading_directions, propagate
from topoter.structure.spectral import eigenvectors, regularized
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


@register("raw", "node")
class Raw(Method):
    """The features as they are."""

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        return Fitted(embedding=self.embed)

    def embed(self, graph: Data) -> np.ndarray:
        return self.scaled(graph).numpy()

    def scaled(self, graph: Data) -> Tensor:
        scaling = self.parameters.get("feature_scaling", "none")
        return FEATURE_SCALINGS[scaling](graph.x.to_dense().to(torch.float32))


@register("propagated", "node")
@register("propagated-tuned", "node")  # with parameters of its own, not those of TopoTER's recipe
class Propagated(Raw):
    """(D^-1/2 (A + I) D^-1/2)^k X: the encoder's propagation, with no weights and no training."""

    def embed(self, graph: Data) -> np.ndarray:
        return propagate(_adjacency(graph), self.scaled(graph), self.parameters.get("order", 2)).numpy()


@register("hop-svd", "node")
class HopSVD(Raw):
    """Truncated singular vectors of the features at hops 0, 1 and 2, side by side."""

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        adjacency = _adjacency(graph)
        x, generator = prepare_features(self.scaled(graph)), torch.Generator().manual_seed(seed)
        rank = self.parameters.get("rank", 256)
        hops = [(hop, leading_directions(x, adjacency, hop, rank, generator)) for hop in range(3)]

        def embed(other: Data) -> np.ndarray:
            features, graph_of = prepare_features(self.scaled(other)), _adjacency(other)
            return torch.cat([propagate(graph_of, features @ basis, hop) for hop, basis in hops], dim=1).numpy()

        return Fitted(embedding=embed)


@register("spectral", "node")
class Spectral(Method):
    """Leading eigenvectors of the regularised adjacency: the graph alone."""

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        def embed(other: Data) -> np.ndarray:
            generator = torch.Generator().manual_seed(seed)
            operator, _ = regularized(_adjacency(other))
            return eigenvectors(operator, self.parameters.get("eigenvectors", 32), generator)[1].numpy()

        return Fitted(embedding=embed)


def _adjacency(graph: Data) -> Adjacency:
    adjacency, _ = Adjacency.from_edge_index(graph.edge_index, graph.num_nodes, graph.get("edge_weight"))
    return adjacency
