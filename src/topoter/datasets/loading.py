"""From a name to a graph, a set of graphs, or a graph over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.datasets import files
from topoter.datasets.registry import resolve
from topoter.datasets.splits import random_split
from topoter.datasets.temporal import Snapshots
from topoter.errors import UsageError

if TYPE_CHECKING:
    from torch_geometric.data import Data

_LOADERS = {
    "node": ("one graph", "load"),
    "graphs": ("a set of graphs", "load_graphs"),
    "temporal": ("a graph over time", "load_snapshots"),
}


def load(name: str, *, data_root: str | Path | None = None, seed: int = 0) -> Data:
    """Load a graph for node tasks: x, edge_index, y, train_mask, val_mask, test_mask and its name.

    Planetoid's graphs have their public split. The others are split at random by `seed`: 20 nodes per class
    for training, 30 for validation, the rest for test. Files are looked for in `data_root`, else in the
    folder TOPOTER_DATA, else in the user cache, which is filled by a download if need be.
    """
    found, data = _load(name, "node", data_root, seed)
    if "train_mask" not in data and data.get("y") is not None:
        data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=seed)
        data.split_is_random = True
    data.name = found
    return data


def load_graphs(name: str, data_root: str | Path | None = None) -> list[Data]:
    """Load a set of graphs, each with x (one-hot node labels or ones), edge_index and y (from 0).

    Any set of the TU collection whose files are there can be named. Files are looked for as in `load`.
    """
    graphs: list[Data] = _load(name, "graphs", data_root)[1]
    return graphs


def load_snapshots(name: str, data_root: str | Path | None = None) -> Snapshots:
    """Load a temporal graph: one weighted graph per point in time, over the same named nodes."""
    snapshots: Snapshots = _load(name, "temporal", data_root)[1]
    return snapshots


def _load(name: str, kind: str, data_root: str | Path | None, seed: int = 0) -> tuple[str, Any]:
    """The dataset's one name and its content; it must be of the kind that the caller loads."""
    dataset = resolve(name, files.given_root(data_root) or files.user_cache())
    if dataset.kind != kind:
        what, loader = _LOADERS[dataset.kind]
        raise UsageError(f"The dataset {name!r} is {what}, not {_LOADERS[kind][0]} (in Python: {loader}({name!r})).")
    return dataset.name, dataset.load(data_root, seed)
