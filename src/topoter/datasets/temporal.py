"""Animal social networks observed over time (Animal Social Network Repository)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.datasets.base import Dataset, register
from topoter.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Snapshots:
    """One undirected weighted graph per point in time, over the same nodes.

    `edges[t]` is [2, M_t] with i < j, each pair once; `weights[t]` is [M_t]. Row i of every snapshot is the
    animal `node_names[i]`; one that is absent at a time has no edges then.
    """

    name: str
    node_names: list[str]
    times: list[int]
    edges: list[Tensor]
    weights: list[Tensor]

    @property
    def num_nodes(self) -> int:
        """The animals seen at any time."""
        return len(self.node_names)


class Animals(Dataset):
    """One network over time: its edges, and the animals' names. The collection's names begin with the class."""

    family = "temporal"
    kind = "temporal"
    source = "https://github.com/bansallab/asnr (as 'u v weight time' lines and a table 'id,name')"
    strict = True

    def __init__(self, folder: str, nodes: int, edges: int, snapshots: int) -> None:
        super().__init__(folder, nodes, edges, graphs=snapshots, name=folder.split("-", 1)[1], aliases=[folder])

    def file_sets(self) -> list[list[str]]:
        return [[f"temporal/edges/{self.folder}.edges", f"temporal/edges/{self.folder}.nodes.csv"]]

    def read(self, paths: dict[str, Path]) -> Snapshots:
        edges, nodes = paths.values()
        return read_temporal(edges, nodes, self.name)


register(  # animals, edges of all snapshots together, snapshots
    Animals("aves-sparrow-social", 52, 516, 2),
    Animals("aves-wildbird-network", 202, 11900, 6),
    Animals("insecta-ant-colony1", 113, 111578, 41),
    Animals("insecta-ant-colony2", 131, 139941, 41),
    Animals("insecta-ant-colony3", 160, 241280, 41),
    Animals("insecta-ant-colony4", 102, 81599, 41),
    Animals("insecta-ant-colony5", 152, 194317, 41),
    Animals("insecta-ant-colony6", 164, 247214, 39),
)


def read_temporal(edge_file: Path, node_file: Path, name: str) -> Snapshots:
    """Read `u v weight time` lines, with ids from 1, and the table that names the ids."""
    with node_file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    if [row[0] for row in rows] != [str(i) for i in range(1, len(rows) + 1)]:
        raise DataError(f"{node_file} must name the ids 1, 2, ... in order.")
    node_names = [row[1] for row in rows]

    try:
        table = np.loadtxt(edge_file, ndmin=2)  # [M, 4]
        ends, weight, time = table[:, :2].astype(np.int64) - 1, table[:, 2], table[:, 3].astype(np.int64)
    except (ValueError, IndexError) as error:
        raise DataError(f"{edge_file} must hold lines 'u v weight time': {error}.") from error
    if ends.size and not (ends.min() >= 0 and ends.max() < len(rows)):
        raise DataError(f"{edge_file} names a node id outside 1..{len(rows)}, the ids of {node_file.name}.")

    edges, weights = [], []
    times = np.unique(time)
    for t in times:
        pairs, pair_weights = _simple(ends[time == t], weight[time == t], len(rows))
        edges.append(pairs)
        weights.append(pair_weights)
    return Snapshots(name, node_names, times.tolist(), edges, weights)


def _simple(ends: np.ndarray, weight: np.ndarray, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Pairs with i < j, each once; weights of repeated pairs add up; self-loops are dropped."""
    low, high = ends.min(axis=1), ends.max(axis=1)
    keep = low < high
    key, group = np.unique(low[keep] * num_nodes + high[keep], return_inverse=True)
    total = np.bincount(group, weights=weight[keep], minlength=len(key))
    pairs = np.stack([key // num_nodes, key % num_nodes])
    return torch.from_numpy(pairs), torch.from_numpy(total.astype(np.float32))
