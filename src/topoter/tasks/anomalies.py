"""Nodes and pairs that do not fit, by the prediction error of the pretext task.

The graph is transformed by deleting edges, a fold of them at a time, and of every pair looked at it is asked what was
done to it: an edge was deleted here, or there never was one. A true edge is easily told; one that joins what does not
belong together is taken for a pair that never was an edge, and its cross entropy is high. No edge is judged in a graph
where messages pass along it, nor by a decoder that has learned from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import softplus

from topoter.errors import DataError
from topoter.estimator import TopoTER
from topoter.graphs.features import STRUCTURAL_NAMES
from topoter.structure.adjacency import Adjacency
from topoter.tasks.link_ranking import FEWEST_EDGES, RankedLinks, embed_visible, fit_channel_weights, rank_links
from topoter.tasks.link_split import HeldOut

if TYPE_CHECKING:
    from torch_geometric.data import Data

FOLDS = 5
MOST_LEARNED = 5_000  # pairs of each kind that a decoder learns from at most
PRIOR_EDGES = 2.0  # a node's error is drawn to the mean as if it had so many usual edges more


@dataclass(frozen=True)
class Anomalies:
    """How badly every node and every edge is predicted.

    Args:
        edges: [2, E], each once, i < j; `probability` [E] that such a pair is an edge, where edges and disconnected
            pairs are equally many.
        node_error: mean cross entropy of each node's edges [N], drawn to the mean of all for nodes with few.
        missing: disconnected pairs that look like edges, the likeliest first.
    """

    edges: Tensor
    probability: Tensor
    degree: Tensor
    node_error: Tensor
    missing: RankedLinks

    def false_edges(self, top: int) -> Tensor:
        """The numbers of the edges least likely to be true."""
        return self.probability.argsort(stable=True)[:top]

    def odd_nodes(self, top: int) -> Tensor:
        """The nodes whose neighbourhood fits them least."""
        return self.node_error.argsort(descending=True, stable=True)[:top]


def find_anomalies(model: TopoTER, data: Data, top: int = 100, seed: int = 0) -> Anomalies:
    """Judge every node and edge of a graph by a fitted model, and rank pairs that should be edges."""
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
    if adjacency.num_edges < FEWEST_EDGES:
        raise DataError(f"The graph has {adjacency.num_edges} edges: too few to tell which are odd.")
    logits, views = judged_edges(model, data, adjacency, seed)
    error = softplus(-views)  # cross entropy of "this was an edge", [2, E]
    total, degree = torch.zeros(adjacency.num_nodes), torch.zeros(adjacency.num_nodes)
    for end, seen in zip(adjacency.edges, error):
        total.index_add_(0, end, seen)
        degree.index_add_(0, end, torch.ones_like(seen))
    node_error = (total + PRIOR_EDGES * error.mean()) / (degree + PRIOR_EDGES)
    missing = rank_links(model, data, top, seed)
    return Anomalies(adjacency.edges, torch.sigmoid(logits), degree.long(), node_error, missing)


def judged_edges(model: TopoTER, data: Data, adjacency: Adjacency, seed: int) -> tuple[Tensor, Tensor]:
    """The log odds that each edge is one, judged while it is deleted: of the pair [E], and as each end sees it [2, E].

    An end sees its neighbours by what it is itself, before any message reaches it: once it has taken over what its
    neighbours are, a node that does not belong among them looks as if it did.
    """
    generator = torch.Generator().manual_seed(seed)
    alone = None
    if data.get("feature_names") != STRUCTURAL_NAMES:  # of degrees nothing is left without edges
        alone = embed_visible(model, data, adjacency.keep(torch.zeros(adjacency.num_edges, dtype=torch.bool)))
    order = torch.randperm(adjacency.num_edges, generator=generator)
    logits, views = torch.empty(adjacency.num_edges), torch.empty(2, adjacency.num_edges)
    for fold in order.tensor_split(FOLDS):
        hidden = torch.zeros(adjacency.num_edges, dtype=torch.bool)
        hidden[fold] = True
        z = embed_visible(model, data, adjacency.keep(~hidden))
        halves = fold.tensor_split(2)
        for judged, learned in (halves, halves[::-1]):
            edges, some = adjacency.edges[:, judged], adjacency.edges[:, learned[:MOST_LEARNED]]
            count = torch.minimum(torch.tensor([some.size(1)]), adjacency.pair_space.num_disconnected)
            pairs = HeldOut.of(some, adjacency.pair_space.disconnected(count, generator))
            decoder = fit_channel_weights(z, pairs, seed)
            logits[judged] = decoder.logits(decoder.prepare(z), edges)
            if alone is None:
                views[:, judged] = logits[judged]
                continue
            # Rows of nodes as they are alone, and below them as they are among their neighbours.
            both, num_nodes = torch.cat([_of_one_scale(alone), _of_one_scale(z)]), len(z)
            seen = HeldOut.of(*(_views(part, num_nodes) for part in (some, pairs.pairs[:, some.size(1) :])))
            decoder = fit_channel_weights(both, seen, seed)
            views[:, judged] = decoder.logits(decoder.prepare(both), _views(edges, num_nodes)).view(2, -1)
    return logits, views


def _views(pairs: Tensor, num_nodes: int) -> Tensor:
    """Pairs [2, P] as both ends see them, [2, 2 P]: a node alone, the other among its neighbours."""
    return torch.cat(
        [pairs + torch.tensor([[0], [num_nodes]]), pairs.flip(0) + torch.tensor([[0], [num_nodes]])], dim=1
    )


def _of_one_scale(z: Tensor) -> Tensor:
    centred = z - z.mean(0)
    return centred / (centred.square().mean().sqrt() or 1.0)
