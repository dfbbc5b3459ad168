"""Cora, CiteSeer and PubMed with Planetoid's public split (Yang et al., 2016).

Equal to PyG's `Planetoid(split="public")` without transforms, but the pickled files can run no code.
"""

from __future__ import annotations

import collections
import pickle
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.datasets import embedded
from topoter.datasets.base import Dataset, register
from topoter.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NUM_VALIDATION = 500
# What the files number only, in their order.
CLASS_NAMES = {
    "cora": (
        "theory",
        "reinforcement learning",
        "genetic algorithms",
        "neural networks",
        "probabilistic methods",
        "case-based",
        "rule learning",
    )
}


class Planetoid(Dataset):
    """One citation graph: eight files, most of them pickles, so none is opened that is not the published one."""

    family = "planetoid"
    source = "https://github.com/kimiyoung/planetoid (data/)"
    downloader = "Planetoid"
    strict = True

    def file_sets(self) -> list[list[str]]:
        return [[f"planetoid/{self.folder}/raw/ind.{self.folder.lower()}.{part}" for part in PARTS]]

    def read(self, paths: dict[str, Path]) -> Data:
        return read_planetoid(next(iter(paths.values())).parent, self.folder.lower())

    def read_bundled(self, folder: Path) -> Data:
        return embedded.read_embedded_cora(folder)


register(  # nodes, edges, features, classes
    Planetoid("Cora", 2708, 5278, 1433, 7, bundled=embedded.CORA),
    Planetoid("CiteSeer", 3327, 4552, 3703, 6),
    Planetoid("PubMed", 19717, 44324, 500, 3),
)


class _RestrictedUnpickler(pickle.Unpickler):
    """Knows the few classes that Planetoid's files are made of and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        import scipy.sparse

        # Old names map to today's objects, so neither NumPy's nor SciPy's renamed modules are touched.
        allowed = {
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
            ("scipy.sparse.csr", "csr_matrix"): scipy.sparse.csr_matrix,
            ("collections", "defaultdict"): collections.defaultdict,
            ("__builtin__", "list"): list,
        }
        try:
            return allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def unpickle(path: Path) -> Any:
    """Read one of Planetoid's pickles; anything but arrays, sparse matrices and lists is refused."""
    try:
        with path.open("rb") as stream:
            return _RestrictedUnpickler(stream, encoding="latin1").load()
    # A damaged pickle can raise nearly anything; none of it is a defect of ours.
    except Exception as error:
        raise DataError(
            f"{path} is not a Planetoid file and was not loaded: {error or type(error).__name__}."
        ) from error


def read_planetoid(folder: Path, prefix: str) -> Data:
    """Read the eight `ind.PREFIX.*` files of a raw folder."""
    from torch_geometric.data import Data

    part = {part: unpickle(folder / f"ind.{prefix}.{part}") for part in PARTS if part not in ("x", "test.index")}
    allx, ally, tx, ty = part["allx"], part["ally"], part["tx"], part["ty"]
    test = np.loadtxt(folder / f"ind.{prefix}.test.index", dtype=np.int64)
    ordered = np.sort(test)

    # CiteSeer's isolated test nodes have no row in tx and ty: they get zero features and, as in PyG, class 0.
    first, size = ordered[0], int(ordered[-1] - ordered[0]) + 1
    features = np.zeros((allx.shape[0] + size, allx.shape[1]), dtype=np.float32)
    labels = np.zeros((ally.shape[0] + size, ally.shape[1]), dtype=ally.dtype)
    features[: allx.shape[0]], labels[: ally.shape[0]] = allx.toarray(), ally
    offset = allx.shape[0] - first
    features[ordered + offset], labels[ordered + offset] = tx.toarray(), ty
    # Row i of tx belongs to the i-th entry of test.index, which is not sorted.
    features[test], labels[test] = features[ordered], labels[ordered]

    num_nodes = features.shape[0]
    num_train = len(part["y"])
    train, val = np.arange(num_train), np.arange(num_train, num_train + NUM_VALIDATION)
    return Data(
        x=torch.from_numpy(features),
        edge_index=_edges_of_lists(part["graph"], num_nodes),
        y=torch.from_numpy(labels.argmax(axis=1)),
        train_mask=_mask(train, num_nodes),
        val_mask=_mask(val, num_nodes),
        test_mask=_mask(test, num_nodes),
    )


def _edges_of_lists(neighbours: dict[int, list[int]], num_nodes: int) -> Tensor:
    """Neighbour lists as an edge_index without self-loops and duplicates, in PyG's order."""
    from torch_geometric.utils import coalesce, remove_self_loops

    degrees = [len(column) for column in neighbours.values()]
    row = np.repeat(np.fromiter(neighbours, dtype=np.int64, count=len(degrees)), degrees)
    col = np.fromiter(chain.from_iterable(neighbours.values()), dtype=np.int64, count=len(row))
    edge_index, _ = remove_self_loops(torch.from_numpy(np.stack([row, col])))
    return coalesce(edge_index, num_nodes=num_nodes, sort_by_row=False)


def _mask(index: np.ndarray, size: int) -> Tensor:
    mask = torch.zeros(size, dtype=torch.bool)
    mask[torch.from_numpy(index)] = True
    return mask
