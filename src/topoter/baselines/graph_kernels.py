"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011) by GraKeL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.errors import TopoterError
from topoter.graph_sets import GraphSet

if TYPE_CHECKING:
    from torch_geometric.data import Data


def weisfeiler_lehman(graphs: list[Data], iterations: int = 5) -> np.ndarray:
    """How many labels two graphs share, refined `iterations` times by those of the neighbours; normalised, [G, G].

    Nodes with equal features start with the same label.
    """
    try:
        from grakel import Graph, VertexHistogram, WeisfeilerLehman
    except ImportError as error:
        raise TopoterError('The method wl needs the package grakel: pip install "topoter[baselines]".') from error

    graph_set, _ = GraphSet.from_graphs(graphs)
    _, labels = torch.unique(graph_set.x, dim=0, return_inverse=True)
    converted = []
    for number in range(len(graph_set)):
        first, last = graph_set.nodes[number : number + 2].tolist()
        neighbours: dict[int, list[int]] = {node: [] for node in range(last - first)}
        start, stop = graph_set.edges[number : number + 2].tolist()
        for i, j in (graph_set.adjacency.edges[:, start:stop] - first).t().tolist():
            neighbours[i].append(j)
            neighbours[j].append(i)
        converted.append(Graph(neighbours, node_labels=dict(enumerate(labels[first:last].tolist()))))
    kernel: np.ndarray = WeisfeilerLehman(
        n_iter=iterations, base_graph_kernel=VertexHistogram, normalize=True
    ).fit_transform(converted)
    return kernel
