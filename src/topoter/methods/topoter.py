"""TopoTER itself, and its encoder before the first step, on nodes, whole graphs and graphs over time.

How it learns links, where a decoder of pairs is trained as well, is in `links.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from topoter.errors import unknown_name
from topoter.estimator import TopoTER
from topoter.methods.base import Fitted, Method, inner_products, register
from topoter.methods.over_time import OverTimeSettings, fit_over_time
from topoter.structure.history import Known
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
    """TopoTER on the changes that happened, by one of two decoders.

    Args:
        decoder: "inner product" of frozen representations, X being all ones, as in the paper; or "history", which is
            learned and sees all past snapshots (`over_time.py`).
    """

    def __init__(self, decoder: str = "inner product", **parameters: Any) -> None:
        if decoder not in ("inner product", "history"):
            raise unknown_name("decoder", decoder, ("inner product", "history"))
        super().__init__(**parameters)
        self.decoder = decoder

    def fit(self, graph: list[Transition], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        if self.decoder == "history":
            return fit_over_time(graph, OverTimeSettings(**self.parameters), seed, callbacks)
        x = torch.ones(graph[0].before.num_nodes, 1)
        model = self.model(seed).fit_transitions(x, graph, callbacks=callbacks)

        def scores(known: Known, pairs: Tensor) -> Tensor:
            return inner_products(model.model_.embed(x, known.latest), pairs)

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
