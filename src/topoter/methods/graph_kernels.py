"""Whole graphs without training: the Weisfeiler-Lehman kernel by GraKeL, and counts of degrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.errors import TopoterError
from topoter.methods.base import Fitted, Method, register
from topoter.structure.graph_sets import GraphSet, read_graph_set
from topoter.training.callbacks import Callback

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


@register("wl", "graph")
class WeisfeilerLehman(Method):
    """The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011); nothing about it is random."""

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        return Fitted(kernel=weisfeiler_lehman(read_graph_set(graph), **self.parameters))


@register("degree-histogram", "graph")
class DegreeHistogram(Method):
    """How many nodes of each degree a graph has; those of `bins - 1` and more together. The trivial row."""

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        return Fitted(embedding=self.embed)

    def embed(self, graphs: list[Data]) -> np.ndarray:
        graph_set, _ = GraphSet.from_graphs(read_graph_set(graphs))
        degree = torch.bincount(graph_set.adjacency.edges.flatten(), minlength=graph_set.adjacency.num_nodes)
        bins = self.parameters["bins"]
        graph = torch.repeat_interleave(graph_set.nodes.diff())
        counts = torch.bincount(graph * bins + degree.clamp(max=bins - 1), minlength=len(graph_set) * bins)
        return counts.view(-1, bins).float().numpy()
