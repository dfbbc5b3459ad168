"""node2vec (Grover and Leskovec, 2016) on a set of graphs: vectors of the nodes from biased walks, and their mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.methods.base import Fitted, Method, register
from topoter.methods.substructures import read
from topoter.methods.walk_embeddings import biased_walks
from topoter.methods.words import skip_gram
from topoter.structure.adjacency import Adjacency
from topoter.structure.graph_sets import pool
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


@register("node2vec", "graph")
class PooledNode2Vec(Method):
    """The mean of a graph's node vectors, learned on all graphs side by side.

    Args:
        walks, length, p, q: so many walks from every node, over so many nodes, see `biased_walks`.
        window, out_channels, epochs: of Word2Vec (skip-gram with negative samples).
    """

    def __init__(
        self,
        *,
        out_channels: int = 128,
        walks: int = 10,
        length: int = 80,
        window: int = 10,
        p: float = 1.0,
        q: float = 1.0,
        epochs: int = 1,
    ) -> None:
        self.out_channels, self.window, self.epochs = out_channels, window, epochs
        self.walks, self.length, self.p, self.q = walks, length, p, q

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        graph_set = read(graph)
        walks = _Walks(self, graph_set.adjacency, seed)
        shape = {"channels": self.out_channels, "window": self.window, "epochs": self.epochs}
        known = range(graph_set.adjacency.num_nodes)
        nodes = skip_gram("node2vec", walks, known, seed=seed, callbacks=callbacks, **shape)
        z = pool(torch.from_numpy(nodes), graph_set.nodes, "mean").numpy()
        return Fitted(embedding=lambda _: z)


class _Walks:
    """The walks of all rounds, drawn anew but the same whenever they are read: kept, they could fill the memory."""

    def __init__(self, method: PooledNode2Vec, adjacency: Adjacency, seed: int) -> None:
        self.method, self.adjacency, self.seed = method, adjacency, seed

    def __iter__(self) -> Iterator[np.ndarray]:
        generator, chosen = torch.Generator().manual_seed(self.seed), self.method
        for _ in range(chosen.walks):
            yield from biased_walks(self.adjacency, chosen.length, chosen.p, chosen.q, generator).numpy()
