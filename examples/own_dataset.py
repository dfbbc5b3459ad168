"""A dataset of your own under a name: one function that returns a graph.

    python examples/own_dataset.py                                             # the few lines below
    PYTHONPATH=examples topoter evaluate node --dataset own_dataset:digits --method propagated

A package of yours can also declare it as an entry point in the group `topoter.datasets`; then its name is enough, and
`topoter datasets` lists it. A graph with labels `y` and no masks is split at random by the seed.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data
from torch_geometric.utils import from_scipy_sparse_matrix

from topoter.datasets import dataset, load
from topoter.methods import build
from topoter.tasks.node_classification import score, without_labels


@dataset("node")
def digits() -> Data:
    """scikit-learn's handwritten digits, each joined to the five most similar ones."""
    images, y = load_digits(return_X_y=True)
    edge_index, _ = from_scipy_sparse_matrix(kneighbors_graph(images, 5))
    return Data(x=torch.from_numpy(images).float(), edge_index=edge_index, y=torch.from_numpy(y).long())


if __name__ == "__main__":
    data = load("__main__:digits")
    graph = without_labels(data)
    for name in ("raw", "propagated"):
        z = build(name, "node", {}).fit(graph, seed=0).embed(graph)
        print(f"{name:10} {score(z, data)['test']:.1f} % of the digits are named rightly")
