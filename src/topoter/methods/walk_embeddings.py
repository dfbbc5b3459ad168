"""Embeddings from random walks: DeepWalk, alone and beside the features, and node2vec, on a graph and on a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from topoter.errors import TopoterError, invalid_parameter
from topoter.methods.base import Fitted, Method, register
from topoter.methods.substructures import read
from topoter.methods.walks import deepwalk
from topoter.methods.words import skip_gram
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import FEATURE_SCALINGS
from topoter.structure.graph_sets import pool
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(kw_only=True)
class _Walks(Method):
    """Random walks: `walks` start at every node, of `length` nodes each, of which `window` apart are neighbours."""

    out_channels: int = 128
    walks: int = 10
    length: int = 80
    window: int = 10


@register("deepwalk", "node")
class DeepWalk(_Walks):
    """DeepWalk (Perozzi et al., 2014): random walks read as sentences; nodes that were not walked on have no vector."""

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        def on_round(done: int, rounds: int) -> None:
            for callback in callbacks:
                callback.on_progress(done, rounds, "rounds of walks")

        adjacency, _ = Adjacency.from_edge_index(graph.edge_index, graph.num_nodes)
        z = self.walk(adjacency, seed, on_round)

        def embed(other: Data) -> np.ndarray:
            if other.num_nodes != len(z):
                raise TopoterError(f"Walks know the {len(z)} nodes they met; the graph has {other.num_nodes}.")
            return self.beside(z, other)

        return Fitted(embedding=embed)

    def walk(self, adjacency: Adjacency, seed: int, on_round: Callable[[int, int], None]) -> np.ndarray:
        """What the walks find [N, F]."""
        shape = {"out_channels": self.out_channels, "walks": self.walks, "length": self.length, "window": self.window}
        return deepwalk(adjacency, seed=seed, on_walk=on_round, **shape).numpy()

    def beside(self, z: np.ndarray, graph: Data) -> np.ndarray:
        """The embedding of the nodes from what the walks found."""
        return z


@register("deepwalk+features", "node")
@dataclass(kw_only=True)
class DeepWalkAndFeatures(DeepWalk):
    """DeepWalk's embeddings and the features side by side, of the same mean squared length (as in DGI's paper).

    Args:
        feature_scaling: of the features' rows, before the two are brought to the same length.
    """

    feature_scaling: str = "sum"

    def beside(self, z: np.ndarray, graph: Data) -> np.ndarray:
        x = FEATURE_SCALINGS[self.feature_scaling](graph.x.to_dense().to(torch.float32)).numpy()
        return np.hstack([part / _length(part) for part in (z, x)])


def _length(rows: np.ndarray) -> float:
    return float(np.sqrt((rows**2).sum(axis=1).mean())) or 1.0


@dataclass(kw_only=True)
class _Biased(_Walks):
    """Walks that lean towards going back (1/p) or away (1/q); 1 and 1 is a plain walk."""

    p: float = 1.0
    q: float = 1.0

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            if not getattr(self, name) > 0:
                raise invalid_parameter(name, type(self).__name__, "a positive number", getattr(self, name))


@register("node2vec", "node")
@dataclass(kw_only=True)
class Node2Vec(_Biased, DeepWalk):
    """node2vec (Grover and Leskovec, 2016).

    Args:
        negative: how many random nodes a pair of neighbours is told from.
        passes: how often the walks are read.
    """

    negative: int = 5
    passes: int = 1

    def walk(self, adjacency: Adjacency, seed: int, on_round: Callable[[int, int], None]) -> np.ndarray:
        generator = torch.Generator().manual_seed(seed)
        rounds = []
        for done in range(1, self.walks + 1):
            rounds.append(biased_walks(adjacency, self.length, self.p, self.q, generator))
            on_round(done, self.walks)
        walks, known = torch.cat(rounds).numpy(), range(adjacency.num_nodes)
        return skip_gram(
            "node2vec", walks, known, channels=self.out_channels, window=self.window, epochs=self.passes, seed=seed,
            sample=0, negative=self.negative,
        )  # fmt: skip


@register("node2vec", "graph")
@dataclass(kw_only=True)
class PooledNode2Vec(_Biased):
    """The mean of a graph's node vectors, learned by node2vec on all graphs side by side; `epochs` are Word2Vec's."""

    epochs: int = 1

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        graph_set = read(graph)
        shape = {"channels": self.out_channels, "window": self.window, "epochs": self.epochs}
        known, rounds = range(graph_set.adjacency.num_nodes), _Rounds(self, graph_set.adjacency, seed)
        nodes = skip_gram("node2vec", rounds, known, seed=seed, callbacks=callbacks, **shape)
        z = pool(torch.from_numpy(nodes), graph_set.nodes, "mean").numpy()
        return Fitted(embedding=lambda _: z)


class _Rounds:
    """The walks of all rounds, drawn anew but the same whenever they are read: kept, they could fill the memory."""

    def __init__(self, method: PooledNode2Vec, adjacency: Adjacency, seed: int) -> None:
        self.method, self.adjacency, self.seed = method, adjacency, seed

    def __iter__(self) -> Iterator[np.ndarray]:
        generator, chosen = torch.Generator().manual_seed(self.seed), self.method
        for _ in range(chosen.walks):
            yield from biased_walks(self.adjacency, chosen.length, chosen.p, chosen.q, generator).numpy()


def biased_walks(adjacency: Adjacency, length: int, p: float, q: float, generator: torch.Generator) -> Tensor:
    """One walk of `length` nodes from every node [N, length]; the next node is weighed by where the walk came from.

    1/p for the node before, 1 for its neighbours, 1/q for all others. Steps are drawn uniformly and then accepted by
    their weight, all walks side by side: no table of all pairs of edges is made.
    """
    operator = adjacency.summed
    indptr, neighbours = operator.indptr, operator.indices.long()
    degree, num_nodes = indptr.diff(), adjacency.num_nodes
    directed = torch.sort(operator.row * num_nodes + neighbours).values
    largest = max(1 / p, 1.0, 1 / q)
    at = torch.randperm(num_nodes, generator=generator)
    before = torch.full_like(at, -1)
    steps = [at]
    for _ in range(length - 1):
        after = at.clone()
        waiting = (degree[at] > 0).nonzero().view(-1)  # without edges a walk stays
        while waiting.numel():
            here, origin = at[waiting], before[waiting]
            chosen = (torch.rand(here.numel(), generator=generator, dtype=torch.float64) * degree[here]).long()
            candidate = neighbours[indptr[here] + chosen]
            key = origin.clamp(min=0) * num_nodes + candidate
            place = torch.searchsorted(directed, key).clamp(max=directed.numel() - 1)
            weight = torch.where(directed[place] == key, 1.0, 1 / q)
            weight = torch.where(candidate == origin, 1 / p, weight)
            weight = torch.where(origin < 0, largest, weight)  # the first step comes from nowhere
            accepted = torch.rand(here.numel(), generator=generator) * largest < weight
            after[waiting[accepted]] = candidate[accepted]
            waiting = waiting[~accepted]
        before, at = at, after
        steps.append(at)
    return torch.stack(steps, dim=1)
