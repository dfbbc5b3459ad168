"""Where nodes are in a graph, told by its edges alone, and how far that foretells edges it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from topoter.structure.adjacency import Adjacency

HIDDEN_SHARE = 0.2
HIDDEN_DRAWS = 2
LEAST_EDGES = 20


@dataclass(frozen=True)
class Places:
    """
    Args:
        of_nodes: the place of each node, [N, k].
        to_spread: what is propagated to tell the places of surroundings, [N, m].
        strength: how well hidden edges are foretold, 0 to 1.
    """

    of_nodes: Tensor
    to_spread: Tensor
    strength: float

    @classmethod
    def none(cls, num_nodes: int) -> Places:
        nothing = torch.zeros(num_nodes, 0)
        return cls(nothing, nothing, 0.0)


def strength_by_hidden_edges(
    find: Callable[[Adjacency], Tensor], adjacency: Adjacency, generator: torch.Generator
) -> float:
    """How alike the two ends of edges are that were hidden when places were found: 0 by chance, 1 if they are the same.

    Args:
        find: the places of the nodes of a graph, [N, k].
    """
    found = []
    for _ in range(HIDDEN_DRAWS):
        hidden = (torch.rand(adjacency.num_edges, generator=generator) < HIDDEN_SHARE).to(adjacency.device)
        place = find(adjacency.keep(~hidden))
        place = place - place.mean(0)
        i, j = adjacency.edges[:, hidden]
        alike = (place[i] * place[j]).sum(1).mean() / place.square().sum(1).mean().clamp(min=1e-30)
        found.append(float(alike))
    return max(fmean(found), 0.0)
