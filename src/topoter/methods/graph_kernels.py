"""Similarities between whole graphs, without training; and counts of degrees, the trivial row.

What is in GraKeL and works on these sets is GraKeL's. Its shortest path kernel fails on isolated nodes and its
graphlets are connected ones only, so these two are counted in `substructures.py`. Deep graph kernels, which learn how
alike the parts are, are in `deep_graph_kernels.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from topoter.errors import TopoterError
from topoter.methods.base import Fitted, Method, register
from topoter.methods.substructures import (
    GRAPHLET_SIZES,
    count,
    graphlets,
    matrices,
    node_labels,
    shortest_paths,
)
from topoter.methods.substructures import read as read_set
from topoter.structure.graph_sets import GraphSet
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


def normalized(kernel: np.ndarray) -> np.ndarray:
    """k(a, b) / sqrt(k(a, a) k(b, b)); a graph without any part is alike to none but itself."""
    scale = np.sqrt(np.diagonal(kernel)).astype(np.float64)
    empty = scale == 0
    scaled: np.ndarray = kernel / np.outer(np.where(empty, 1, scale), np.where(empty, 1, scale))
    scaled[empty, empty] = 1
    return scaled


def _neighbours(matrix: sparse.csr_matrix) -> dict[int, list[int]]:
    """Those of every node, also of one without any: whole matrices of all graphs could fill the memory."""
    ends = matrix.indptr.tolist()
    return {node: matrix.indices[ends[node] : ends[node + 1]].tolist() for node in range(matrix.shape[0])}


class _GraKeL(Method):
    """A kernel of GraKeL, normalised; what is random about one is drawn the same for all seeds."""

    seedless = True

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        try:
            import grakel
        except ImportError as error:
            raise TopoterError(
                f'The graph kernel {type(self).__name__} needs GraKeL: pip install "topoter[baselines]".'
            ) from error
        graph_set = read_set(graph)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", 'changing format from "adjacency"', UserWarning)
            warnings.filterwarnings("ignore", ".*makes the random walk series diverge", RuntimeWarning)
            kernel: np.ndarray = self.kernel(grakel).fit_transform(self.graphs(grakel, graph_set))
        return Fitted(kernel=kernel)

    def kernel(self, grakel: Any) -> Any:
        """GraKeL's class with the parameters set."""
        raise NotImplementedError

    def graphs(self, grakel: Any, graph_set: GraphSet) -> list[Any]:
        """The set as GraKeL reads it; nodes with equal features have the same label."""
        labels = node_labels(graph_set)
        converted = []
        for nodes, matrix in matrices(graph_set):
            named = dict(enumerate(labels[nodes].tolist()))
            converted.append(grakel.Graph(_neighbours(matrix), node_labels=named))
        return converted


@register("wl", "graph")
class WeisfeilerLehman(_GraKeL):
    """The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011): labels refined by the neighbours', counted."""

    def kernel(self, grakel: Any) -> Any:
        base = grakel.VertexHistogram
        iterations = self.parameters.get("iterations", 5)
        return grakel.WeisfeilerLehman(n_iter=iterations, base_graph_kernel=base, normalize=True)


@register("rw", "graph")
class RandomWalk(_GraKeL):
    """The random walk kernel (Gärtner et al., 2003): walks with the same labels in both graphs, long ones weigh less.

    GraKeL lowers `decay` where the sum over all lengths would not end: it must be below the inverse square of the
    largest eigenvalue of a graph of the set.
    """

    def kernel(self, grakel: Any) -> Any:
        return grakel.RandomWalkLabeled(lamda=self.parameters.get("decay", 0.1), normalize=True)


@register("mlg", "graph")
class MultiscaleLaplacian(_GraKeL):
    """The multiscale Laplacian kernel (Kondor and Pan, 2016): Laplacians of ever larger neighbourhoods compared."""

    def kernel(self, grakel: Any) -> Any:
        chosen = {name: self.parameters[own] for own, name in _MLG.items() if own in self.parameters}
        return grakel.MultiscaleLaplacian(normalize=True, random_state=0, **chosen)

    def graphs(self, grakel: Any, graph_set: GraphSet) -> list[Any]:
        """With features in place of labels; where nodes have none, the degree, as in the authors' experiments."""
        features = graph_set.x.numpy()
        if np.ptp(features, axis=0).max() == 0:
            features = torch.bincount(graph_set.adjacency.edges.flatten(), minlength=len(features)).numpy()[:, None]
        converted = []
        for nodes, matrix in matrices(graph_set):
            attributes = dict(enumerate(features[nodes].astype(float)))
            converted.append(grakel.Graph(_neighbours(matrix), node_labels=attributes))
        return converted


_MLG = {"levels": "L", "rank": "P", "gamma": "gamma", "eta": "heta", "sampled_nodes": "n_samples"}


@register("sp", "graph")
class ShortestPath(Method):
    """The shortest path kernel (Borgwardt and Kriegel, 2005): shared paths, by length and labels of the ends."""

    seedless = True

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        counts, _ = count([words for _, words in shortest_paths(read_set(graph))])
        return Fitted(kernel=normalized((counts @ counts.T).toarray()))


@register("gk", "graph")
class Graphlets(Method):
    """The graphlet kernel (Shervashidze et al., 2009): the shares of all graphs of 3, 4 and 5 nodes within a graph.

    Args:
        samples: sets of nodes looked at for each size; all sets where a graph has no more.
    """

    def __init__(self, *, samples: int = 5000) -> None:
        self.samples = samples

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        generator = np.random.default_rng(seed)
        shares = graphlet_shares(read_set(graph), self.samples, generator)
        return Fitted(kernel=normalized(shares @ shares.T))


def graphlet_shares(graph_set: GraphSet, samples: int, generator: np.random.Generator) -> np.ndarray:
    """What share of the sets of 3, of 4 and of 5 nodes forms each graphlet, [graphs, 4 + 11 + 34]."""
    rows = []
    for _, matrix in matrices(graph_set):
        found = [graphlets(matrix, size, samples, generator) for size in GRAPHLET_SIZES]
        rows.append(np.concatenate([counts / max(counts.sum(), 1) for counts in found]))
    return np.stack(rows)


@register("degree-histogram", "graph")
class DegreeHistogram(Method):
    """How many nodes of each degree a graph has; those of `bins - 1` and more together. The trivial row."""

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        return Fitted(embedding=self.embed)

    def embed(self, graphs: list[Data]) -> np.ndarray:
        graph_set = read_set(graphs)
        degree = torch.bincount(graph_set.adjacency.edges.flatten(), minlength=graph_set.adjacency.num_nodes)
        bins = self.parameters["bins"]
        graph = torch.repeat_interleave(graph_set.nodes.diff())
        counts = torch.bincount(graph * bins + degree.clamp(max=bins - 1), minlength=len(graph_set) * bins)
        return counts.view(-1, bins).float().numpy()
