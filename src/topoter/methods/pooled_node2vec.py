"""node2vec (Grover and Leskovec, 2016) on a set of graphs: vectors of the nodes from biased walks, and their mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.methods.base import Fitted, Method, register
from topoter.methods.randomness import seeded
from topoter.methods.substructures import read
from topoter.methods.words import Sentences, gensim_models, told_by_epoch
from topoter.structure.adjacency import Adjacency
from topoter.structure.graph_sets import pool
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


def biased_walks(adjacency: Adjacency, length: int, back: float, away: float, generator: torch.Generator) -> Tensor:
    """One walk of `length` nodes from every node, [N, length]; one without edges stays.

    The next node is a neighbour drawn with weight 1 / `back` if the walk comes from it, 1 if it is a neighbour of where
    the walk comes from, and else 1 / `away` (the paper's p and q). Neighbours are drawn uniformly and kept with a
    probability in proportion to that weight, until all are kept: no table of probabilities per edge is needed.
    """
    indptr, neighbours = adjacency.summed.indptr, adjacency.summed.indices.long()
    degree, num_nodes = indptr.diff(), adjacency.num_nodes
    edges = adjacency.edge_index
    keys = (edges[0] * num_nodes + edges[1]).sort().values
    most = max(1 / back, 1.0, 1 / away)
    before = at = torch.arange(num_nodes)
    steps = [at]
    for step in range(length - 1):
        after, waiting = at.clone(), (degree[at] > 0).nonzero().squeeze(1)
        while waiting.numel():
            here = at[waiting]
            drawn = (torch.rand(here.numel(), generator=generator, dtype=torch.float64) * degree[here]).long()
            candidate = neighbours[indptr[here] + drawn]
            weight = torch.ones(here.numel())
            if step:
                key = before[waiting] * num_nodes + candidate
                place = torch.searchsorted(keys, key).clamp(max=keys.numel() - 1)
                weight[keys[place] != key] = 1 / away
                weight[candidate == before[waiting]] = 1 / back
            kept = torch.rand(here.numel(), generator=generator) * (most if step else 1.0) < weight
            after[waiting[kept]] = candidate[kept]
            waiting = waiting[~kept]
        before, at = at, after
        steps.append(at)
    return torch.stack(steps, dim=1)


@register("node2vec", "graph")
class PooledNode2Vec(Method):
    """The mean of a graph's node vectors, learned on all graphs side by side.

    Args:
        walks, length, back, away: so many walks from every node, over so many nodes, with the paper's p and q.
        window, out_channels, epochs: of Word2Vec (skip-gram with negative samples).
    """

    def __init__(
        self,
        *,
        out_channels: int = 128,
        walks: int = 10,
        length: int = 80,
        window: int = 10,
        back: float = 1.0,
        away: float = 1.0,
        epochs: int = 1,
    ) -> None:
        self.out_channels, self.window, self.epochs = out_channels, window, epochs
        self.walks, self.length, self.back, self.away = walks, length, back, away

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        models = gensim_models("node2vec")
        graph_set = read(graph)
        with seeded(seed):
            model: Any = models.Word2Vec(
                Sentences(_Walks(self, graph_set.adjacency, seed)),
                vector_size=self.out_channels,
                window=self.window,
                epochs=self.epochs,
                min_count=0,
                sg=1,
                workers=1,
                seed=seed,
                callbacks=[told_by_epoch(callbacks, self.epochs)],
            )
        nodes = np.stack([model.wv[str(node)] for node in range(graph_set.adjacency.num_nodes)])
        z = pool(torch.from_numpy(nodes), graph_set.nodes, "mean").numpy()
        return Fitted(embedding=lambda _: z)


class _Walks:
    """The walks of all rounds, drawn anew but the same whenever they are read: kept, they could fill the memory."""

    def __init__(self, method: PooledNode2Vec, adjacency: Adjacency, seed: int) -> None:
        self.method, self.adjacency, self.seed = method, adjacency, seed

    def __iter__(self) -> Iterator[np.ndarray]:
        generator, chosen = torch.Generator().manual_seed(self.seed), self.method
        for _ in range(chosen.walks):
            yield from biased_walks(self.adjacency, chosen.length, chosen.back, chosen.away, generator).numpy()
