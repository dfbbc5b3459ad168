"""TopoTER itself, and its encoder before the first step, on nodes, whole graphs and graphs over time.

How it learns links, where a decoder of pairs is trained as well, is in `links.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from topoter.estimator import TopoTER
from topoter.methods.base import Fitted, Method, inner_products, register
from topoter.structure.adjacency import Adjacency
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.pretext.transformation import Transition


@register("topoter", "node")
class NodeTopoTER(Method):
    """TopoTER, pre-trained on a graph without labels."""

    level = "node"

    def fit(self, graph: Data | list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        model = self.model(seed).fit(graph, callbacks=callbacks)
        return Fitted(embedding=model.transform, history=model.history_)

    def model(self, seed: int) -> TopoTER:
        return TopoTER(**{"level": self.level, **self.parameters}, random_state=seed)


@register("topoter", "graph")
class GraphTopoTER(NodeTopoTER):
    """TopoTER on a set of graphs."""

    level = "graph"


@register("topoter", "temporal")
class TemporalTopoTER(NodeTopoTER):
    """TopoTER on the changes that happened, then inner products of frozen representations; X is all ones."""

    def __init__(self, decoder: str = "inner product", **parameters: Any) -> None:
        super().__init__(**parameters)

    def fit(self, graph: list[Transition], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        x = torch.ones(graph[0].before.num_nodes, 1)
        model = self.model(seed).fit_transitions(x, graph, callbacks=callbacks)

        def scores(known: Adjacency, pairs: Tensor) -> Tensor:
            return inner_products(model.model_.embed(x, known), pairs)

        return Fitted(pairs=scores, history=model.history_)


def _untrained(kind: type[NodeTopoTER]) -> type[NodeTopoTER]:
    class Untrained(kind):  # type: ignore[misc, valid-type]
        """TopoTER's encoder before its first step."""

        def __init__(self, **parameters: Any) -> None:
            super().__init__(**{**parameters, "epochs": 0})

    return Untrained


register("random-init", "node")(_untrained(NodeTopoTER))
register("random-init", "graph")(_untrained(GraphTopoTER))
register("random-init", "temporal")(_untrained(TemporalTopoTER))
