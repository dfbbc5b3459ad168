"""GraphCL (You et al., 2020): a graph and a changed copy of it are told from the other graphs of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from topoter.encoders import GIN
from topoter.methods.base import register
from topoter.methods.convolutions import glorot
from topoter.methods.infograph import SeveralGraphs
from topoter.methods.pretrained import PretextModule, PretrainedOnSet
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.graph_sets import pool
from topoter.weights import linear_layers

# A change is made to some graphs of a batch: those where `chosen` [G]. `share` is how much of a graph it changes.
Changed = tuple[Tensor, Adjacency]
Change = Callable[[Tensor, Adjacency, Tensor, float, torch.Generator], Changed]


def drop_nodes(x: Tensor, adjacency: Adjacency, chosen: Tensor, share: float, generator: torch.Generator) -> Changed:
    """A share of the nodes is left out."""
    return induced(x, adjacency, ~_some_nodes(adjacency, chosen, share, generator))


def perturb_edges(x: Tensor, adjacency: Adjacency, chosen: Tensor, share: float, generator: torch.Generator) -> Changed:
    """A share of the edges is left out, and as many pairs of nodes of the graph are connected."""
    ptr, graph = _graphs(adjacency)
    of_edge = graph[adjacency.edges[0]]
    moved = chosen[of_edge] & (torch.rand(of_edge.numel(), generator=generator) < share)
    first, size = ptr[of_edge[moved]], ptr.diff()[of_edge[moved]]
    drawn = torch.rand(2, int(moved.sum()), generator=generator, dtype=torch.float64)
    added = first + (drawn * size).long()
    edges = torch.cat([adjacency.edges[:, ~moved], added], dim=1)
    return x, Adjacency.from_edge_index(edges, adjacency.num_nodes, ptr=ptr)[0]


def mask_features(x: Tensor, adjacency: Adjacency, chosen: Tensor, share: float, generator: torch.Generator) -> Changed:
    """A share of the nodes loses its features: they are drawn from a normal distribution, as in the authors' code."""
    masked = _some_nodes(adjacency, chosen, share, generator)
    x = x.clone()
    x[masked] = 0.5 + 0.5 * torch.randn(int(masked.sum()), x.size(1), generator=generator)
    return x, adjacency


def subgraph(x: Tensor, adjacency: Adjacency, chosen: Tensor, share: float, generator: torch.Generator) -> Changed:
    """All but a share of the nodes is left: a connected part that grows from a random node."""
    ptr, graph = _graphs(adjacency)
    sizes = ptr.diff()
    left = torch.where(chosen, ((1 - share) * sizes).ceil().long(), sizes)
    kept = ~chosen[graph]
    start = ptr[:-1] + (torch.rand(sizes.numel(), generator=generator, dtype=torch.float64) * sizes).long()
    kept[start[chosen & (sizes > 0)]] = True
    source, target = adjacency.edge_index
    while True:
        room = left - torch.bincount(graph[kept], minlength=sizes.numel())
        near = torch.zeros_like(kept)
        near[target[kept[source]]] = True
        near &= ~kept & (room[graph] > 0)
        if not near.any():
            return induced(x, adjacency, kept)
        # Half of what is near at a time, so that the part is not always a ball; never more than there is room for.
        order = torch.rand(kept.numel(), generator=generator)
        candidates = near.nonzero().squeeze(1)
        candidates = candidates[torch.argsort(graph[candidates] + order[candidates].double())]
        counts = torch.bincount(graph[candidates], minlength=sizes.numel())
        rank = torch.arange(candidates.numel()) - (counts.cumsum(0) - counts)[graph[candidates]]
        kept[candidates[rank < torch.minimum(room, (counts + 1) // 2)[graph[candidates]]]] = True


CHANGES: dict[str, Change] = {
    "drop nodes": drop_nodes,
    "perturb edges": perturb_edges,
    "mask features": mask_features,
    "subgraph": subgraph,
}


def induced(x: Tensor, adjacency: Adjacency, kept: Tensor) -> Changed:
    """The batch without the nodes that are not kept [N], and without their edges; graphs may become empty."""
    _, graph = _graphs(adjacency)
    assert adjacency.ptr is not None
    place = kept.cumsum(0) - 1
    edges = adjacency.edges[:, kept[adjacency.edges].all(dim=0)]
    counts = torch.bincount(graph[kept], minlength=adjacency.ptr.numel() - 1)
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return x[kept], Adjacency(place[edges], int(kept.sum()), ptr=ptr)


def _graphs(adjacency: Adjacency) -> tuple[Tensor, Tensor]:
    """Where each graph of a batch starts, and to which each node belongs."""
    assert adjacency.ptr is not None
    return adjacency.ptr, torch.repeat_interleave(adjacency.ptr.diff())


def _some_nodes(adjacency: Adjacency, chosen: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """floor(share * n) nodes of each chosen graph, as a mask."""
    ptr, graph = _graphs(adjacency)
    order = torch.argsort(graph + torch.rand(graph.numel(), generator=generator, dtype=torch.float64))
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel()) - ptr[graph]
    return chosen[graph] & (rank < (share * ptr.diff()).long()[graph])


def contrast(z: Tensor, z_t: Tensor, temperature: float) -> Tensor:
    """-log of a graph's similarity to its own copy over those to the other copies, the mean over the batch."""
    similarity = functional.normalize(z, dim=1) @ functional.normalize(z_t, dim=1).t() / temperature
    own = similarity.diagonal()
    others = similarity.masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
    return (others.logsumexp(dim=1) - own).mean()


class GraphCL(PretextModule):
    """The encoder, a projection of the pooled graph, and one change drawn for each graph of a batch."""

    def __init__(self, encoder: GIN, share: float, temperature: float, pooling: str, seed: int) -> None:
        super().__init__(seed)
        self.encoder = encoder
        encoder.initialize("glorot", self.generator)
        self.share, self.temperature, self.pooling = share, temperature, pooling
        self.projection = linear_layers([encoder.out_channels] * 3)
        glorot(self.projection, self.generator)

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        assert adjacency.ptr is not None
        kind = torch.randint(len(CHANGES), (adjacency.ptr.numel() - 1,), generator=self.generator)
        changed = (cast("Tensor", x), adjacency)
        for number, change in enumerate(CHANGES.values()):
            changed = change(*changed, kind == number, self.share, self.generator)
        return contrast(self.project(x, adjacency), self.project(*changed), self.temperature), {}

    def project(self, x: Features, adjacency: Adjacency) -> Tensor:
        assert adjacency.ptr is not None
        g = pool(self.encoder(x, adjacency), adjacency.ptr, self.pooling)
        first, second = self.projection
        z: Tensor = second(torch.relu(first(g)))
        return z


@register("graphcl", "graph")
@dataclass(kw_only=True)
class GraphCLMethod(PretrainedOnSet):
    """GraphCL with the authors' encoder, which is InfoGraph's and TopoTER's.

    Args:
        share: how much of a graph a change takes.
    """

    learning_rate: float = 1e-2
    batch_size: int = 128
    share: float = 0.2
    temperature: float = 0.2

    batches = SeveralGraphs

    def module(self, in_channels: int, seed: int) -> PretextModule:
        encoder = GIN(in_channels, self.hidden_channels, self.num_layers)
        return GraphCL(encoder, self.share, self.temperature, self.pooling, seed)
