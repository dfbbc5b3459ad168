"""Copies of Cora and MUTAG that other Python packages carry: no files to fetch, no network."""

from __future__ import annotations

import csv
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.datasets.base import Bundled, Dataset, register
from topoter.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data


def _package_folder(package: str, *parts: str) -> Path | None:
    """A folder inside an installed package, found without importing the package (which can be slow)."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0], *parts)
    return folder if folder.is_dir() else None


def cora_folder() -> Path | None:
    """Where graphdatascience keeps Cora, or None if it is not installed."""
    return _package_folder("graphdatascience", "resources", "cora")


def mutag_folder() -> Path | None:
    """Where grakel keeps MUTAG's TU files, or None if it is not installed."""
    return _package_folder("grakel", "tests", "data", "MUTAG")


CORA = Bundled(cora_folder, 'pip install "topoter[demo]"')
MUTAG = Bundled(
    mutag_folder, 'pip install "topoter[baselines]" (Python 3.12 or older: GraKeL does not install on 3.13)'
)


class EmbeddedCora(Dataset):
    """Cora from nowhere else than the package that carries it."""

    family = "embedded"

    def load(self, data_root: str | Path | None, seed: int) -> Data:
        folder = cora_folder()
        if folder is None:
            raise DataError(f"The embedded Cora needs the package graphdatascience: {CORA.install}.")
        return read_embedded_cora(folder)


register(EmbeddedCora("", 2708, 5278, 1433, 7, name="embedded-cora", bundled=CORA))


def read_embedded_cora(folder: Path) -> Data:
    """Cora from the package graphdatascience, in Planetoid's node order and with its public split.

    The same graph as Planetoid's. The package knows papers by id; `cora_public_split.csv` says which node
    each is. Ten groups of exact twins (same features, label, neighbours) could be swapped without effect.
    """
    from pyarrow import parquet
    from torch_geometric.data import Data
    from torch_geometric.utils import coalesce, remove_self_loops

    nodes = parquet.read_table(folder / "cora_nodes.parquet.gzip", columns=["nodeId", "features"])
    links = parquet.read_table(folder / "cora_rels.parquet.gzip", columns=["sourceNodeId", "targetNodeId"])
    paper, index, label, split = _public_split()
    num_nodes = len(paper)

    by_id = np.argsort(paper)
    node_ids = nodes["nodeId"].to_numpy()
    if not np.array_equal(np.sort(node_ids), paper[by_id]):
        raise DataError(f"{folder} holds other papers than Cora's 2708; try another graphdatascience version.")

    def planetoid_index(ids: np.ndarray) -> np.ndarray:
        return index[by_id[np.searchsorted(paper, ids, sorter=by_id)]]

    features = nodes["features"].combine_chunks().flatten().to_numpy().reshape(num_nodes, -1)
    x = np.empty(features.shape, dtype=np.float32)
    x[planetoid_index(node_ids)] = features

    ends = np.stack([planetoid_index(links[end].to_numpy()) for end in ("sourceNodeId", "targetNodeId")])
    edges, _ = remove_self_loops(torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1)))

    y, masks = np.empty(num_nodes, dtype=np.int64), {}
    y[index] = label
    for part in ("train", "val", "test"):
        mask = np.empty(num_nodes, dtype=bool)
        mask[index] = split == part
        masks[f"{part}_mask"] = torch.from_numpy(mask)
    return Data(
        x=torch.from_numpy(x),
        edge_index=coalesce(edges, num_nodes=num_nodes, sort_by_row=False),
        y=torch.from_numpy(y),
        **masks,
    )


def _public_split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The columns paper_id, planetoid_index, label and split of our own table."""
    table = resources.files(__package__).joinpath("cora_public_split.csv").read_text(encoding="utf-8")
    paper, index, label, split = zip(*list(csv.reader(table.splitlines()))[1:])
    return np.array(paper, np.int64), np.array(index, np.int64), np.array(label, np.int64), np.array(split)
