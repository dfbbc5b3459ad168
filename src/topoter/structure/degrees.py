"""Places by degrees: how many edges a node has, and how many those around it; roles rather than communities."""

from __future__ import annotations

import torch
from torch import Tensor

from topoter.structure.adjacency import Adjacency
from topoter.structure.hops import propagate
from topoter.structure.places import LEAST_EDGES, Places, strength_by_hidden_edges

_HOPS = 2


@torch.no_grad()
def degree_places(adjacency: Adjacency, count: int, generator: torch.Generator) -> Places:
    """log(1 + degree) of a node and of those up to two hops away, each of mean 0 and deviation 1, [N, 3]."""
    if adjacency.num_edges < LEAST_EDGES:
        return Places.none(adjacency.num_nodes)
    place = degrees_around(adjacency)
    return Places(place, place, strength_by_hidden_edges(degrees_around, adjacency, generator))


def degrees_around(adjacency: Adjacency) -> Tensor:
    ones = torch.ones(adjacency.num_nodes, 1, device=adjacency.device)
    degree = torch.log1p(adjacency.summed @ ones)
    columns = torch.cat([degree, *(propagate(adjacency, degree, hops) for hops in range(1, _HOPS + 1))], dim=1)
    deviation, mean = torch.std_mean(columns, 0, correction=0)
    return (columns - mean) / deviation.clamp(min=1e-6)
