"""What needs no training: the features as they are, and propagated along the edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from topoter.methods.base import Fitted, Method, register
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import FEATURE_SCALINGS
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
        adjacency, _ = Adjacency.from_edge_index(graph.edge_index, graph.num_nodes, graph.get("edge_weight"))
        h = self.scaled(graph)
        for _ in range(self.parameters.get("order", 2)):
            h = adjacency.normalized @ h
        return h.numpy()
