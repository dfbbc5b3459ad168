"""Places by random walks: random numbers of far nodes, averaged along walks (FastRP: Chen et al., CIKM 2019).

Nodes that meet the same others within a few steps get like numbers. It costs a few products with the adjacency and no
solver, so it is the quick way on a large graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from topoter.structure.adjacency import Adjacency
from topoter.structure.places import LEAST_EDGES, Places, strength_by_hidden_edges
from topoter.structure.spectral import regularized

_STEPS = (0.0, 1.0, 1.0, 1.0)  # what walks of one step, two, ... count


@torch.no_grad()
def walk_places(adjacency: Adjacency, count: int, generator: torch.Generator) -> Places:
    """`count` coordinates of every node."""
    if adjacency.num_edges < LEAST_EDGES:
        return Places.none(adjacency.num_nodes)
    drawn = torch.randn(adjacency.num_nodes, count, generator=generator).to(adjacency.device)

    def find(graph: Adjacency) -> Tensor:
        return projected_walks(graph, drawn)

    place = find(adjacency)
    place = place - place.mean(0)
    return Places(place, place, strength_by_hidden_edges(find, adjacency, generator))


def projected_walks(adjacency: Adjacency, drawn: Tensor) -> Tensor:
    """The sum over steps t of P^t R with rows of length one, P the regularised adjacency and R random, [N, count]."""
    operator, _ = regularized(adjacency)
    total, current = torch.zeros_like(drawn), drawn
    for weight in _STEPS:
        current = operator @ current
        total += weight * torch.nn.functional.normalize(current, dim=1)
    return total
