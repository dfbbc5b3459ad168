"""Graphs read as documents by gensim's Doc2Vec: their parts are the words, and every graph gets a vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.methods.base import Fitted, Method, register
from topoter.methods.randomness import seeded
from topoter.methods.substructures import read, refined_labels
from topoter.methods.walks import random_walks
from topoter.methods.words import gensim_models, told_by_epoch
from topoter.structure.graph_sets import GraphSet
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


_SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 0.75)  # of the nodes that are neighbours, where sub2vec's words change


class _Documents:
    """Rows of words, each with the number of the graph it belongs to, again for every epoch."""

    def __init__(self, rows: list[tuple[int, np.ndarray]], tagged: Any) -> None:
        self.rows, self.tagged = rows, tagged

    def __iter__(self) -> Iterator[Any]:
        for graph, words in self.rows:
            yield self.tagged([str(word) for word in words.tolist()], [graph])


@dataclass(kw_only=True)
class _Doc2Vec(Method):
    """One vector for each graph of the set; a graph that is not in it has none."""

    out_channels: int = 128
    window: int = 5
    epochs: int = 20
    learning_rate: float = 0.025

    memory_of_order = False  # PV-DBOW, for which words have no order

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        models = gensim_models(type(self).__name__.lower())
        rows = self.rows(read(graph), torch.Generator().manual_seed(seed))
        with seeded(seed):
            model = models.Doc2Vec(
                _Documents(rows, models.doc2vec.TaggedDocument),
                dm=int(self.memory_of_order),
                vector_size=self.out_channels,
                window=self.window,
                alpha=self.learning_rate,
                epochs=self.epochs,
                min_count=0,
                workers=1,
                seed=seed,
                callbacks=[told_by_epoch(callbacks, self.epochs)],
            )
        z = np.stack([model.dv[number] for number in range(len(graph))])
        return Fitted(embedding=lambda _: z)

    def rows(self, graph_set: GraphSet, generator: torch.Generator) -> list[tuple[int, np.ndarray]]:
        """(graph, words) of all sentences."""
        raise NotImplementedError


@register("graph2vec", "graph")
@dataclass(kw_only=True)
class Graph2Vec(_Doc2Vec):
    """graph2vec (Narayanan et al., 2017): the words are Weisfeiler and Lehman's subtrees of all nodes.

    Args:
        iterations: how far subtrees reach.
    """

    iterations: int = 2

    def rows(self, graph_set: GraphSet, generator: torch.Generator) -> list[tuple[int, np.ndarray]]:
        labels = refined_labels(graph_set, self.iterations)
        labels += np.concatenate([[0], labels.max(axis=0)[:-1] + 1]).cumsum()  # no two iterations share a label
        parts = np.split(labels, graph_set.nodes[1:-1].tolist())
        return [(number, part.ravel()) for number, part in enumerate(parts)]


@register("sub2vec", "graph")
@dataclass(kw_only=True)
class Sub2Vec(_Doc2Vec):
    """sub2vec (Adhikari et al., 2018), its structural form: the words are degrees along random walks.

    A degree is given as its share of the nodes, in the steps of the authors' code.

    Args:
        walks, length: one walk from every node, so often, over so many nodes.
    """

    walks: int = 1
    length: int = 20

    memory_of_order = True  # PV-DM, as in the authors' code

    def rows(self, graph_set: GraphSet, generator: torch.Generator) -> list[tuple[int, np.ndarray]]:
        operator = graph_set.adjacency.summed
        sizes = graph_set.nodes.diff()
        graph = torch.repeat_interleave(sizes)
        share = torch.bucketize(operator.indptr.diff() / sizes[graph], torch.tensor(_SHARES))
        found = []
        for _ in range(self.walks):
            walks = random_walks(operator.indptr, operator.indices.long(), self.length, generator)
            found += list(zip(graph[walks[:, 0]].tolist(), share[walks].numpy()))
        return found
