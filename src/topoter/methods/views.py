"""Two views of one graph, each without some edges and some features, whose embeddings are to agree."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from topoter.errors import invalid_parameter
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features

View = tuple[Adjacency, Tensor]  # the graph, and what multiplies each column of X


def check_shares(method: str, **shares: float | Sequence[float]) -> None:
    """Raise for the first share that is none."""
    for name, value in shares.items():
        for share in value if isinstance(value, Sequence) else [value]:
            if not 0 <= share < 1:
                raise invalid_parameter(name, method, "at least 0 and less than 1", value)


def draw_view(
    x: Features, adjacency: Adjacency, drop_edges: float, drop_features: float, generator: torch.Generator
) -> View:
    """A graph that lost a share of its edges, both directions at once, and whole columns of its features."""
    kept = torch.rand(adjacency.num_edges, generator=generator) >= drop_edges
    columns = torch.rand(x.shape[1], generator=generator) >= drop_features
    return (adjacency.keep(kept) if drop_edges > 0 else adjacency), columns.float()
