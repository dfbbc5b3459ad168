"""Amazon Computers and Photo, Coauthor CS and Physics (Shchur et al., 2018): one npz file per graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.datasets.base import Dataset, register
from topoter.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Amazon(Dataset):
    """Products that are often bought together."""

    family = "amazon"
    source = "https://github.com/shchur/gnn-benchmark (data/npz/)"
    downloader = "Amazon"

    def file_sets(self) -> list[list[str]]:
        return [[f"amazon/{self.folder}/raw/amazon_electronics_{self.folder.lower()}.npz"]]

    def read(self, paths: dict[str, Path]) -> Data:
        return read_npz(next(iter(paths.values())))


class Coauthor(Amazon):
    """Authors who wrote a paper together."""

    family = "coauthor"
    downloader = "Coauthor"

    def file_sets(self) -> list[list[str]]:
        return [[f"coauthor/{self.folder}/raw/ms_academic_{self.folder[:3].lower()}.npz"]]


register(  # nodes, edges, features, classes
    Amazon("Computers", 13752, 245861, 767, 10, aliases=["amazon-computers"]),
    Amazon("Photo", 7650, 119081, 745, 8, aliases=["amazon-photo"]),
    Coauthor("CS", 18333, 81894, 6805, 15, aliases=["coauthor-cs"]),
    Coauthor("Physics", 34493, 247962, 8415, 5, aliases=["coauthor-physics"]),
)


def read_npz(path: Path) -> Data:
    """Read one graph: 0/1 features, undirected edges without self-loops, labels; no split.

    Equal to PyG's `read_npz`, which binarises the features as well.
    """
    import scipy.sparse
    from torch_geometric.data import Data
    from torch_geometric.utils import remove_self_loops, to_undirected

    def matrix(kind: str) -> scipy.sparse.csr_matrix:
        parts = (arrays[f"{kind}_data"], arrays[f"{kind}_indices"], arrays[f"{kind}_indptr"])
        return scipy.sparse.csr_matrix(parts, shape=tuple(arrays[f"{kind}_shape"]))

    try:
        # Only plain arrays are read: a few of the files also hold pickled objects (class names). Opened here, because
        # NumPy leaves a damaged archive open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            attributes, adjacency = matrix("attr"), matrix("adj").tocoo()
            labels = arrays["labels"].astype(np.int64)
    # A damaged archive can raise nearly anything; none of it is a defect of ours.
    except Exception as error:
        raise DataError(f"{path} is not a graph in npz form: {error}.") from error

    # Binarised while sparse: Physics is 1.2 GB when dense, and one copy of that is enough.
    attributes.sum_duplicates()
    attributes.data = (attributes.data > 0).astype(np.float32)
    edges = torch.from_numpy(np.stack([adjacency.row, adjacency.col]).astype(np.int64))
    edges, _ = remove_self_loops(edges)
    return Data(
        x=torch.from_numpy(attributes.toarray()),
        edge_index=to_undirected(edges, num_nodes=attributes.shape[0]),
        y=torch.from_numpy(labels),
    )
