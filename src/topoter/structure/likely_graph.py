"""The graph that an embedding believes in: every node joined to those most like it, whether or not an edge is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from topoter.structure.adjacency import Adjacency

NEIGHBOURS = 30
_AXES = 256  # leading columns that are compared
MOST_TOGETHER = 24_000  # nodes compared with each other; larger graphs are cut into such groups first
_BLOCK_ENTRIES = 1 << 24  # of the products of a block of nodes with all others: 64 MB
_PIECE = 1 << 16  # rows

ReadRows = Callable[[Tensor], Iterable[Tensor]]


@torch.no_grad()
def likely_sums(z: Tensor) -> Tensor:
    """S^ Z, with S^ the normalised adjacency of the likely graph of each group, [N, F]."""
    sums = torch.empty_like(z)
    for group in likely_groups(lambda nodes: (z[some] for some in nodes.split(_PIECE)), z.size(0), z.device):
        sums[group] = likely_graph(z[group]).normalized @ z[group]
    return sums


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
    unit = _directions(z)
    count = min(neighbours + 1, num_nodes)  # one of them is the node itself, a loop that is dropped
    block = max(_BLOCK_ENTRIES // max(num_nodes, 1), 1)
    cosines, places = zip(*((part @ unit.t()).topk(count, dim=1) for part in unit.split(block)))
    source = torch.arange(num_nodes, device=z.device).repeat_interleave(count)
    target, cosine = torch.cat(places).view(-1), torch.cat(cosines).view(-1)
    alike = cosine > 0
    graph, _ = Adjacency.from_edge_index(torch.stack([source, target])[:, alike], num_nodes, cosine[alike])
    return graph


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
