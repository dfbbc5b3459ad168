"""Named datasets: one file for each family says what it has, where it is found, how it is checked and read."""

from importlib import import_module
from pkgutil import iter_modules

from topoter.datasets.base import Dataset
from topoter.datasets.loading import load, load_graphs, load_snapshots
from topoter.datasets.own import dataset
from topoter.datasets.registry import DatasetInfo, available, dataset_kind, known_as
from topoter.datasets.splits import random_split
from topoter.datasets.synthetic import block_model
from topoter.datasets.temporal import Snapshots

for _file in iter_modules(__path__):  # the file of a family registers its datasets
    import_module(f"{__name__}.{_file.name}")

__all__ = [
    "Dataset",
    "DatasetInfo",
    "Snapshots",
    "available",
    "block_model",
    "dataset",
    "dataset_kind",
    "known_as",
    "load",
    "load_graphs",
    "load_snapshots",
    "random_split",
]
