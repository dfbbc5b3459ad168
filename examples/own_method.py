"""A baseline of your own, under the same protocol as every row of the tables: one class with `fit`.

    python examples/own_method.py                                              # the few lines below
    PYTHONPATH=examples topoter evaluate node --dataset cora --method own_method:Neighbourhood

A package of yours can also declare it as an entry point in the group `topoter.methods`; then its name is enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch_geometric.data import Data

from topoter.datasets import load
from topoter.methods import Fitted, Method, build
from topoter.structure.adjacency import Adjacency
from topoter.tasks.node_classification import score, without_labels
from topoter.training import Callback


class Neighbourhood(Method):
    """A node's own features beside the mean of its neighbours'."""

    tasks = ("node",)

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        return Fitted(embedding=self.embed)

    def embed(self, graph: Data) -> np.ndarray:
        adjacency, _ = Adjacency.from_edge_index(graph.edge_index, graph.num_nodes)
        return np.hstack([graph.x.numpy(), (adjacency.normalized @ graph.x.float()).numpy()])


if __name__ == "__main__":
    data = load("embedded-cora")
    graph = without_labels(data)
    for name in ("raw", "propagated"):
        print(f"{name:14} {score(build(name, 'node', {}).fit(graph, 0).embed(graph), data)['test']:.1f} %")
    print(f"{'neighbourhood':14} {score(Neighbourhood().fit(graph, 0).embed(graph), data)['test']:.1f} %")
