"""Deep graph kernels (Yanardag and Vishwanathan, 2015): parts of graphs that occur together are alike, and count so.

A kernel phi phi^T counts shared parts only. Word2Vec, which reads parts as words and what they occur with as sentences,
gives every part a vector; with M their inner products the kernel is phi M phi^T.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from topoter.errors import unknown_name
from topoter.methods.base import Fitted, Method, register
from topoter.methods.graph_kernels import normalized
from topoter.methods.substructures import (
    count,
    graphlet_of,
    matrices,
    pattern,
    read,
    refined_labels,
    sample_sets,
    shortest_paths,
)
from topoter.methods.words import skip_gram
from topoter.structure.graph_sets import GraphSet
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data

GRAPHLET_SIZE = 5

# The parts of every graph as words, and the sentences in which they occur together.
Corpus = tuple[list[np.ndarray], list[np.ndarray]]


def _paths(graph_set: GraphSet, samples: int, generator: np.random.Generator) -> Corpus:
    """Shortest paths that begin at the same node occur together."""
    words, sentences = [], []
    for source, path in shortest_paths(graph_set):
        words.append(path)
        sentences += np.split(path, np.flatnonzero(np.diff(source)) + 1) if len(path) else []
    return words, sentences


def _subtrees(graph_set: GraphSet, samples: int, generator: np.random.Generator) -> Corpus:
    """Weisfeiler and Lehman's subtrees of one node occur together: its labels after 0, 1, ... iterations."""
    labels = refined_labels(graph_set, iterations=2)
    labels += np.concatenate([[0], labels.max(axis=0)[:-1] + 1]).cumsum()  # no two iterations share a label
    graphs = np.split(labels, graph_set.nodes[1:-1].tolist())
    return [graph.ravel() for graph in graphs], list(labels)


def _graphlets(graph_set: GraphSet, samples: int, generator: np.random.Generator) -> Corpus:
    """A graphlet occurs together with those that differ from it in one node."""
    words, sentences = [], []
    for _, matrix in matrices(graph_set):
        if matrix.shape[0] <= GRAPHLET_SIZE:
            words.append(np.empty(0, np.int64))
            continue
        dense = matrix.toarray().astype(bool)
        sets = sample_sets(len(dense), GRAPHLET_SIZE + 1, samples, generator)  # one node more, to replace others by
        columns = [sets[:, :GRAPHLET_SIZE]]
        for place in range(GRAPHLET_SIZE):
            columns.append(np.delete(sets, place, axis=1))
        kinds = np.stack([graphlet_of(GRAPHLET_SIZE)[pattern(dense, chosen)] for chosen in columns], axis=1)
        words.append(kinds[:, 0])
        sentences += list(kinds)
    return words, sentences


PARTS: dict[str, Callable[[GraphSet, int, np.random.Generator], Corpus]] = {
    "shortest paths": _paths,
    "subtrees": _subtrees,
    "graphlets": _graphlets,
}


@register("dgk", "graph")
@dataclass(kw_only=True)
class DeepGraphKernel(Method):
    """A kernel of parts, weighed by how alike Word2Vec finds them.

    Args:
        parts: a name in `PARTS`.
        samples: graphlets drawn from each graph.
        channels, window, epochs: of Word2Vec (skip-gram).
    """

    parts: str = "shortest paths"
    samples: int = 100
    channels: int = 10
    window: int = 5
    epochs: int = 5

    def __post_init__(self) -> None:
        if self.parts not in PARTS:
            raise unknown_name("part of graphs", self.parts, PARTS)

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        words, sentences = PARTS[self.parts](read(graph), self.samples, np.random.default_rng(seed))
        counts, known = count(words)
        vectors = self.vectors(sentences, known, seed, callbacks)
        return Fitted(kernel=deep_kernel(counts, vectors))

    def vectors(
        self, sentences: list[np.ndarray], known: np.ndarray, seed: int, callbacks: Sequence[Callback] = ()
    ) -> np.ndarray:
        """A vector of length 1 for every part [parts, channels]."""
        shape = {"channels": self.channels, "window": self.window, "epochs": self.epochs}
        found = skip_gram("dgk", sentences, known, seed=seed, callbacks=callbacks, **shape)
        unit: np.ndarray = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit


def deep_kernel(counts: sparse.csr_matrix, vectors: np.ndarray) -> np.ndarray:
    """phi M phi^T, normalised; M are the inner products of the parts' vectors."""
    z = counts @ vectors
    return normalized(z @ z.T)
