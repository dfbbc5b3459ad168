"""The graph that an embedding believes in: every node joined to those most like it, whether or not an edge is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from topoter.kernels.nearest import joined_both_ways, nearest
from topoter.kernels.sparse import SparseOperator
from topoter.structure.adjacency import Adjacency

NEIGHBOURS = 30
_AXES = 256  # leading columns that are compared
MOST_TOGETHER = 24_000  # nodes compared with each other; larger graphs are cut into such groups first
_PIECE = 1 << 16  # rows
_COLUMNS = 128

ReadRows = Callable[[Tensor], Iterable[Tensor]]


@dataclass(frozen=True)
class Likely:
    """S^, the normalised adjacency of the likely graph of each group of nodes; None stands for all nodes."""

    graphs: list[tuple[Tensor | None, SparseOperator]]

    @classmethod
    @torch.no_grad()
    def of(cls, z: Tensor) -> Likely:
        if len(z) <= MOST_TOGETHER:
            return cls([(None, likely_graph(z).normalized)])
        groups = likely_groups(lambda nodes: (z[some] for some in nodes.split(_PIECE)), z.size(0), z.device)
        return cls([(group, likely_graph(z[group]).normalized) for group in groups])

    @torch.no_grad()
    def norm(self, z: Tensor) -> Tensor:
        """The length of S^ Z."""
        return torch.stack([torch.linalg.vector_norm(sums) for _, _, sums in self._sums(z)]).norm()

    @torch.no_grad()
    def draw(self, z: Tensor, strength: float | Tensor) -> Tensor:
        """Z + c S^ Z, in the place of Z."""
        for group, columns, sums in self._sums(z):
            if group is None:
                columns.add_(sums.mul_(strength))
            else:
                columns.index_add_(0, group, sums.mul_(strength))
        return z

    def _sums(self, z: Tensor) -> Iterator[tuple[Tensor | None, Tensor, Tensor]]:
        """Group, columns of Z and S^ Z of both: a few columns at a time, so that no second Z is needed."""
        for group, operator in self.graphs:
            for columns in z.split(_COLUMNS, dim=1):
                yield group, columns, operator @ (columns.contiguous() if group is None else columns[group])


@torch.no_grad()
def likely_means(z: Tensor, some: Tensor, num_nodes: int) -> Tensor:
    """S^ Z of nodes whose graph is not at hand, as far as some [m, F] of its N nodes tell it, [n, F]."""
    count = min(max(round(NEIGHBOURS * len(some) / max(num_nodes, 1)), 1), len(some))
    cosine, place = (_directions(z) @ _directions(some).t()).topk(count, dim=1)
    weight = cosine.clamp(min=0) * (NEIGHBOURS / max(count, 1))  # each stands for those that are not there
    theirs = (weight.unsqueeze(2) * some[place]).sum(1)
    return (z + theirs) / (1 + weight.sum(1, keepdim=True))


@torch.no_grad()
def likely_groups(read: ReadRows, num_nodes: int, device: torch.device | None = None) -> Iterator[Tensor]:
    """All nodes, or where they are too many to compare, halves of halves along the column that varies most.

    Args:
        read: the rows of z of some nodes, in pieces.
    """
    waiting = [torch.arange(num_nodes, device=device)]
    while waiting:
        group = waiting.pop()
        if group.numel() <= MOST_TOGETHER:
            yield group
            continue
        order = _widest_column(read, group).argsort(stable=True)
        half = group.numel() // 2
        waiting += [group[order[:half]].sort().values, group[order[half:]].sort().values]


@torch.no_grad()
def likely_graph(z: Tensor, neighbours: int = NEIGHBOURS) -> Adjacency:
    """Each node and the `neighbours` others whose rows of `z` point most nearly the same way, weighted by the cosine.

    Args:
        z: centred embeddings on their principal axes, the leading ones first, [N, F].
    """
    num_nodes = z.size(0)
    found = nearest(_directions(z), min(neighbours, max(num_nodes - 1, 0)))
    edges, cosine = joined_both_ways(*found)
    return Adjacency(edges, num_nodes, cosine)


def _directions(z: Tensor) -> Tensor:
    return torch.nn.functional.normalize(z[:, :_AXES], dim=1)


def _widest_column(read: ReadRows, group: Tensor) -> Tensor:
    """Of the directions of some nodes the column that varies most, [n]."""
    total = squares = torch.zeros((), dtype=torch.float64)
    for rows in read(group):
        directions = _directions(rows).double()
        total, squares = total + directions.sum(0), squares + directions.square().sum(0)
    column = (squares / group.numel() - (total / group.numel()).square()).argmax()
    return torch.cat([_directions(rows)[:, column] for rows in read(group)])
