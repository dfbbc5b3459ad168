"""A user's imported graph in the place of a dataset's name: what needs no labels can be evaluated on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topoter.datasets.base import Dataset
from topoter.graphs.directory import GraphDirectory


class Imported(Dataset):
    """A graph directory that `topoter import` made, by its path."""

    family = "imported"

    def __init__(self, path: str) -> None:
        super().__init__("", name=path)

    def load(self, data_root: str | Path | None, seed: int) -> Any:
        return GraphDirectory.open(self.name).as_data()
