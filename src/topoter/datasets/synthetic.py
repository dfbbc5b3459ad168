"""Graphs made on the spot, of any size: the stochastic block model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from topoter.datasets.base import Dataset, register
from topoter.errors import invalid_parameter

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data


class BlockModel(Dataset):
    """A block model by name, as its function makes it where nothing is said."""

    family = "synthetic"
    how = "made on the spot"

    def load(self, data_root: str | Path | None, seed: int) -> Data:
        return block_model(seed=seed)


register(BlockModel("", 1000, 5000, 32, 4, name="sbm", aliases=["block-model"]))


def block_model(
    num_nodes: int = 1000,
    num_blocks: int = 4,
    mean_degree: float = 10.0,
    num_features: int = 32,
    seed: int = 0,
    *,
    within: float = 0.8,
    noise: float = 1.0,
) -> Data:
    """A simple undirected graph of equal blocks, mostly linked inside, with noisy features.

    It has exactly `round(num_nodes * mean_degree / 2)` edges, each inside a block with probability `within`
    (its other end anywhere outside otherwise). Labels are the blocks. Features are the block's indicator in
    the first `num_blocks` of `num_features` columns, plus normal noise of standard deviation `noise`.
    Time and memory grow with the number of edges: a million nodes with five million edges take seconds.
    """
    smallest = num_nodes // max(num_blocks, 1)
    if num_blocks < 1 or smallest < 2:
        raise invalid_parameter("num_blocks", "block_model", "from 1 to half of num_nodes", num_blocks)
    if num_features < num_blocks:
        raise invalid_parameter("num_features", "block_model", "at least num_blocks", num_features)
    if not 0 <= within <= 1:
        raise invalid_parameter("within", "block_model", "from 0 to 1", within)
    # Edges are drawn until enough differ, which is quick only while at least half of the pairs stay free.
    if not 0 <= mean_degree <= (smallest - 1) / 2:
        raise invalid_parameter(
            "mean_degree", "block_model", f"from 0 to {(smallest - 1) / 2} (half a block)", mean_degree
        )
    from torch_geometric.data import Data

    generator = torch.Generator().manual_seed(seed)
    # Nodes are drawn as positions in block order; the permutation then hides that order.
    starts = torch.arange(num_blocks + 1) * num_nodes // num_blocks
    block = torch.repeat_interleave(torch.arange(num_blocks), starts.diff())
    node_at = torch.randperm(num_nodes, generator=generator)

    count = round(num_nodes * mean_degree / 2)
    key = torch.empty(0, dtype=torch.long)
    while len(key) < count:
        u, v = _draw(count - len(key), block, starts, within if num_blocks > 1 else 1.0, generator)
        key = torch.cat([key, torch.minimum(u, v) * num_nodes + torch.maximum(u, v)]).unique()
    u, v = node_at[key // num_nodes], node_at[key % num_nodes]
    both = torch.cat([u * num_nodes + v, v * num_nodes + u]).sort().values

    y = torch.empty(num_nodes, dtype=torch.long)
    y[node_at] = block
    x = torch.randn(num_nodes, num_features, generator=generator).mul_(noise)
    x[torch.arange(num_nodes), y] += 1
    return Data(x=x, edge_index=torch.stack([both // num_nodes, both % num_nodes]), y=y)


def _draw(
    count: int, block: Tensor, starts: Tensor, within: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Pairs u != v of positions, with repetitions, each inside one block with probability `within`."""
    num_nodes = len(block)
    u = torch.randint(num_nodes, (count,), generator=generator)
    inside = torch.rand(count, generator=generator) < within
    first, last = starts[block[u]], starts[block[u] + 1]
    size = last - first
    # Steps round the circle from u (inside: of its block, otherwise: of all nodes beyond it) never reach u.
    choices = torch.where(inside, size - 1, num_nodes - size)
    # float64: with float32 only every 2^24-th of the range could be drawn.
    step = (torch.rand(count, generator=generator, dtype=torch.float64) * choices).long()
    return u, torch.where(inside, first + (u - first + 1 + step) % size, (last + step) % num_nodes)
