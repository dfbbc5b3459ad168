"""Embeddings from the edges alone: the Laplacian's eigenvectors, and DeepWalk."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from topoter.methods.base import Fitted, Method, register
from topoter.methods.frozen_links import FrozenLinks
from topoter.methods.links import VALIDATION
from topoter.methods.randomness import seeded
from topoter.methods.words import gensim_models
from topoter.structure.adjacency import Adjacency
from topoter.training import Keep, TrainingSettings
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


def spectral(adjacency: Adjacency, *, out_channels: int = 128, regularization: float = 0.03, seed: int) -> Tensor:
    """Eigenvectors of the normalised Laplacian [N, F] by scikit-learn (Tang and Liu, 2011), regularised.

    Every component of a graph has an eigenvector of its own at eigenvalue 0. CiteSeer without its held-out edges has
    about 650 components, so that the first 128 eigenvectors only tell components apart. One more node, tied to all
    others by a weight that is small beside the mean degree, connects the graph: what is cut off now has to be large to
    count (Zhang and Rohe, 2018). Its own row is left out.

    Args:
        regularization: the weight of those ties, in mean degrees; 0 leaves the graph as it is.
    """
    from sklearn.manifold import spectral_embedding

    num_nodes = adjacency.num_nodes
    edge_index = adjacency.edge_index.numpy()
    matrix = sparse.csr_matrix((np.ones(edge_index.shape[1]), (edge_index[0], edge_index[1])), shape=(num_nodes,) * 2)
    if regularization > 0:
        ties = sparse.csr_matrix(np.full((num_nodes, 1), regularization * edge_index.shape[1] / num_nodes))
        matrix = sparse.bmat([[matrix, ties], [ties.T, None]]).tocsr()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Graph is not fully connected")  # with regularization 0
        components = min(out_channels, num_nodes - 1)
        # The first eigenvector of a connected graph is its degrees' square roots: it says nothing of pairs.
        z = spectral_embedding(matrix, n_components=components, random_state=seed, drop_first=regularization > 0)
    return torch.from_numpy(np.ascontiguousarray(z[:num_nodes])).float()


def deepwalk(
    adjacency: Adjacency,
    *,
    out_channels: int = 128,
    walks: int = 10,
    length: int = 80,
    window: int = 10,
    seed: int,
    on_walk: Callable[[int, int], None] | None = None,
) -> Tensor:
    """DeepWalk [N, F] (Perozzi et al., 2014): random walks read as sentences by gensim's Word2Vec.

    A node without edges walks on the spot: its vector says nothing of others.
    """
    models = gensim_models("deepwalk")
    generator = torch.Generator().manual_seed(seed)
    corpus = _Walks(adjacency, walks, length, generator, on_walk)
    with seeded(seed):
        model = models.Word2Vec(
            vector_size=out_channels, window=window, min_count=0, sample=0, sg=1, hs=1, negative=0, workers=1, seed=seed
        )
        # All nodes, each as often as it has edges: the Huffman tree of the hierarchical softmax needs only that.
        degree = torch.bincount(adjacency.edges.flatten(), minlength=adjacency.num_nodes) + 1
        model.build_vocab_from_freq({str(node): int(d) for node, d in enumerate(degree)})
        model.train(corpus, total_examples=walks * adjacency.num_nodes, epochs=1)
    return torch.from_numpy(np.stack([model.wv[str(node)] for node in range(adjacency.num_nodes)]))


class _Walks:
    """Walks as lists of words, drawn round by round: one walk from every node, all of a round side by side."""

    def __init__(
        self,
        adjacency: Adjacency,
        rounds: int,
        length: int,
        generator: torch.Generator,
        on_round: Callable[[int, int], None] | None,
    ) -> None:
        self.adjacency, self.rounds, self.length = adjacency, rounds, length
        self.generator, self.on_round = generator, on_round

    def __iter__(self) -> Iterator[list[str]]:
        operator = self.adjacency.summed
        words = np.array([str(node) for node in range(self.adjacency.num_nodes)], dtype=object)
        for done in range(1, self.rounds + 1):
            steps = random_walks(operator.indptr, operator.indices.long(), self.length, self.generator)
            for walk in words[steps.numpy()]:
                yield walk.tolist()
            if self.on_round is not None:
                self.on_round(done, self.rounds)


def random_walks(indptr: Tensor, neighbours: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """One walk of `length` nodes from every node, [N, length], in random order; without edges it stays."""
    degree = indptr.diff()
    at = torch.randperm(degree.numel(), generator=generator)
    steps = [at]
    for _ in range(length - 1):
        chosen = (torch.rand(at.numel(), generator=generator, dtype=torch.float64) * degree[at]).long()
        place = (indptr[at] + chosen).clamp(max=max(neighbours.numel() - 1, 0))
        at = torch.where(degree[at] > 0, neighbours[place], at) if neighbours.numel() else at
        steps.append(at)
    return torch.stack(steps, dim=1)


class _FromEdges(Method):
    """Embeddings of the training graph from its edges alone.

    Args:
        decoder: a name in `PAIR_DECODERS`; one with weights is learned on the training edges, the embeddings staying
            as they are (`frozen_links.py`).
        epochs, patience, learning_rate, weight_decay: of that decoder, if it has weights.
    """

    def __init__(
        self,
        decoder: str = "inner product",
        epochs: int = 300,
        patience: int = 60,
        learning_rate: float = 1e-2,
        weight_decay: float = 0.0,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.decoder = decoder
        self.settings = TrainingSettings(
            epochs, patience, learning_rate, weight_decay, Keep(VALIDATION, highest=True, weights="after"), fused=True
        )

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        adjacency, _ = Adjacency.from_edge_index(graph.edge_index, graph.num_nodes)
        z = self.embed(adjacency, seed, callbacks)
        module = FrozenLinks(z, self.decoder, seed)
        history, best = module.learn(adjacency, graph, self.settings, callbacks)
        return Fitted(
            embedding=lambda _: z.numpy(), pairs=lambda _, pairs: module.scores(pairs), history=history, best_epoch=best
        )

    def embed(self, adjacency: Adjacency, seed: int, callbacks: Sequence[Callback]) -> Tensor:
        raise NotImplementedError


@register("spectral", "link")
class Spectral(_FromEdges):
    """Eigenvectors of the normalised Laplacian."""

    def embed(self, adjacency: Adjacency, seed: int, callbacks: Sequence[Callback]) -> Tensor:
        return spectral(adjacency, seed=seed, **self.parameters)


@register("deepwalk", "link")
class DeepWalk(_FromEdges):
    """Random walks read as sentences."""

    def embed(self, adjacency: Adjacency, seed: int, callbacks: Sequence[Callback]) -> Tensor:
        def on_walk(done: int, rounds: int) -> None:
            for callback in callbacks:
                callback.on_progress(done, rounds, "rounds of walks")

        return deepwalk(adjacency, seed=seed, on_walk=on_walk, **self.parameters)
