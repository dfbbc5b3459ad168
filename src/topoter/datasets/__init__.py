"""Named public datasets: where they are found, how they are checked, how they are read."""

from topoter.datasets.loading import load, load_graphs, load_snapshots
from topoter.datasets.registry import DatasetInfo, available, dataset_kind, known_as
from topoter.datasets.splits import random_split
from topoter.datasets.synthetic import block_model
from topoter.datasets.temporal import Snapshots

__all__ = [
    "DatasetInfo",
    "Snapshots",
    "available",
    "block_model",
    "dataset_kind",
    "known_as",
    "load",
    "load_graphs",
    "load_snapshots",
    "random_split",
]
