"""Embeddings of nodes from random walks: DeepWalk, alone and beside the features, and node2vec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from topoter.errors import TopoterError, invalid_parameter
from topoter.methods.base import Fitted, Method, register
from topoter.methods.randomness import seeded
from topoter.methods.walks import deepwalk
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import FEATURE_SCALINGS
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


class _Walked(Method):
    """Embeddings of the nodes that were walked on; other nodes have none.

    Args:
        walks, length: how many walks start at every node, and of how many nodes each is.
        window: how far apart two nodes of a walk may be to count as neighbours.
    """

    def __init__(self, *, out_channels: int = 128, walks: int = 10, length: int = 80, window: int = 10) -> None:
        self.shape = {"out_channels": out_channels, "walks": walks, "length": length, "window": window}

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        def on_round(done: int, rounds: int) -> None:
            for callback in callbacks:
                callback.on_progress(done, rounds, "rounds of walks")

        adjacency, _ = Adjacency.from_edge_index(graph.edge_index, graph.num_nodes)
        z = self.walk(adjacency, seed, on_round).numpy()

        def embed(other: Data) -> np.ndarray:
            if other.num_nodes != len(z):
                raise TopoterError(f"Walks know the {len(z)} nodes they met; the graph has {other.num_nodes}.")
            return self.beside(z, other)

        return Fitted(embedding=embed)

    def walk(self, adjacency: Adjacency, seed: int, on_round: OnRound) -> Tensor:
        return deepwalk(adjacency, seed=seed, on_walk=on_round, **self.shape)

    def beside(self, z: np.ndarray, graph: Data) -> np.ndarray:
        """The embedding of the nodes from what the walks found."""
        return z


if TYPE_CHECKING:
    from collections.abc import Callable

    OnRound = Callable[[int, int], None]


@register("deepwalk", "node")
class DeepWalk(_Walked):
    """DeepWalk (Perozzi et al., 2014): random walks read as sentences."""


@register("deepwalk+features", "node")
class DeepWalkAndFeatures(_Walked):
    """DeepWalk's embeddings and the features side by side, of the same mean squared length (as in DGI's paper).

    Args:
        feature_scaling: of the features' rows, before the two are brought to the same length.
    """

    def __init__(self, *, feature_scaling: str = "sum", **walks: int) -> None:
        super().__init__(**walks)
        self.feature_scaling = feature_scaling

    def beside(self, z: np.ndarray, graph: Data) -> np.ndarray:
        x = FEATURE_SCALINGS[self.feature_scaling](graph.x.to_dense().to(torch.float32)).numpy()
        return np.hstack([part / _length(part) for part in (z, x)])


def _length(rows: np.ndarray) -> float:
    return float(np.sqrt((rows**2).sum(axis=1).mean())) or 1.0


@register("node2vec", "node")
class Node2Vec(_Walked):
    """node2vec (Grover and Leskovec, 2016): walks that lean towards going back (1/p) or away (1/q).

    Args:
        p, q: return and in-out parameter; 1 and 1 is a plain walk.
        negative: how many random nodes a pair of neighbours is told from.
        passes: how often the walks are read.
    """

    def __init__(self, *, p: float = 1.0, q: float = 1.0, negative: int = 5, passes: int = 1, **walks: int) -> None:
        super().__init__(**walks)
        for name, value in (("p", p), ("q", q)):
            if not value > 0:
                raise invalid_parameter(name, "Node2Vec", "a positive number", value)
        self.p, self.q, self.negative, self.passes = p, q, negative, passes

    def walk(self, adjacency: Adjacency, seed: int, on_round: OnRound) -> Tensor:
        try:
            from gensim.models import Word2Vec
        except ImportError as error:
            raise TopoterError("node2vec needs gensim: pip install 'topoter[baselines]'.") from error

        generator = torch.Generator().manual_seed(seed)
        words = np.array([str(node) for node in range(adjacency.num_nodes)], dtype=object)
        rounds = []
        for done in range(1, self.shape["walks"] + 1):
            rounds.append(biased_walks(adjacency, self.shape["length"], self.p, self.q, generator))
            on_round(done, self.shape["walks"])
        sentences = _Sentences(words, torch.cat(rounds).numpy())
        with seeded(seed):
            model = Word2Vec(
                sentences, vector_size=self.shape["out_channels"], window=self.shape["window"], min_count=0, sample=0,
                sg=1, hs=0, negative=self.negative, workers=1, epochs=self.passes, seed=seed,
            )  # fmt: skip
        return torch.from_numpy(np.stack([model.wv[word] for word in words]))


class _Sentences:
    """Walks as lists of words, read as often as one likes."""

    def __init__(self, words: np.ndarray, walks: np.ndarray) -> None:
        self.words, self.walks = words, walks

    def __iter__(self) -> Iterator[list[str]]:
        for walk in self.walks:
            yield self.words[walk].tolist()


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
