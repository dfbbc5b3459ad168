"""The graph that an embedding believes in: every node joined to those most like it, whether or not an edge is there."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from topoter.structure.adjacency import Adjacency

NEIGHBOURS = 30
_AXES = 256  # leading columns that are compared
_MOST_TOGETHER = 24_000  # nodes compared with each other; larger graphs are cut into such groups first
_BLOCK_ENTRIES = 1 << 24  # of the products of a block of nodes with all others: 64 MB


@torch.no_grad()
def likely_graph(z: Tensor, neighbours: int = NEIGHBOURS) -> Adjacency:
    """Each node and the `neighbours` others whose rows of `z` point most nearly the same way, weighted by the cosine.

    Args:
        z: centred embeddings on their principal axes, the leading ones first, [N, F].
    """
    num_nodes = z.size(0)
    unit = torch.nn.functional.normalize(z[:, :_AXES], dim=1)
    found = [_nearest(unit, group, neighbours) for group in _groups(unit)]
    source, target, cosine = (torch.cat(part) for part in zip(*found))
    alike = cosine > 0
    graph, _ = Adjacency.from_edge_index(torch.stack([source, target])[:, alike], num_nodes, cosine[alike])
    return graph


def _nearest(unit: Tensor, group: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each node of the group its nearest ones in it: source, target and cosine, [n * count] each."""
    rows = unit[group]
    count = min(count + 1, group.numel())  # one of them is the node itself, a loop that is dropped
    block = max(_BLOCK_ENTRIES // max(group.numel(), 1), 1)
    cosines, places = zip(*((part @ rows.t()).topk(count, dim=1) for part in rows.split(block)))
    return group.repeat_interleave(count), group[torch.cat(places).view(-1)], torch.cat(cosines).view(-1)


def _groups(unit: Tensor) -> Iterator[Tensor]:
    """All nodes, or where they are too many, halves of halves along the column that varies most."""
    waiting = [torch.arange(unit.size(0), device=unit.device)]
    while waiting:
        group = waiting.pop()
        if group.numel() <= _MOST_TOGETHER:
            yield group
            continue
        rows = unit[group]
        order = rows[:, rows.var(0).argmax()].argsort(stable=True)
        half = group.numel() // 2
        waiting += [group[order[:half]], group[order[half:]]]
