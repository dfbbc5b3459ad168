"""Sets of graphs in the text format of the TU collection (Morris et al., 2020)."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

REQUIRED = ("A", "graph_indicator", "graph_labels")
PARTS = (*REQUIRED, "node_labels")  # what is read; attributes and edge labels are not


def read_tu(source: Path, name: str) -> list[Data]:
    """Read all graphs of a raw folder (`NAME_A.txt`, ...) or of a zip that holds those files.

    Features are the one-hot node labels, or a single column of ones where nodes have none; `y` counts the
    graph labels from 0. Self-loops and repeated edges are dropped, as in PyG's `TUDataset`.
    """
    try:
        tables = _tables(source, name)
    except (ValueError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{source} cannot be read as the TU dataset {name}: {error}.") from error

    graph_of = tables["graph_indicator"][:, 0] - 1
    num_nodes = len(graph_of)
    edges = tables["A"].T - 1
    if np.any(np.diff(graph_of) < 0) or (num_nodes and graph_of[0] < 0):
        raise DataError(f"{source}: {name}_graph_indicator.txt must list the graphs in order, from 1.")
    if edges.size and not (edges.min() >= 0 and edges.max() < num_nodes):
        raise DataError(f"{source}: {name}_A.txt names node {edges.max() + 1}, but there are {num_nodes} nodes.")
    if np.any(graph_of[edges[0]] != graph_of[edges[1]]):
        raise DataError(f"{source}: {name}_A.txt has an edge between two graphs.")
    _, y = np.unique(tables["graph_labels"][:, 0], return_inverse=True)
    if num_nodes and graph_of[-1] >= len(y):
        raise DataError(f"{source}: {graph_of[-1] + 1} graphs, but {len(y)} in {name}_graph_labels.txt.")
    if "node_labels" in tables and len(tables["node_labels"]) != num_nodes:
        raise DataError(f"{source}: {name}_node_labels.txt must have one line for each of {num_nodes} nodes.")

    x = _one_hot(tables["node_labels"]) if "node_labels" in tables else torch.ones(num_nodes, 1)
    return _split(x, _simple(edges, num_nodes), torch.from_numpy(graph_of), torch.from_numpy(y))


def tu_folder(path: Path) -> tuple[Path, str] | None:
    """A folder with TU files, or with them in `raw`, and the name that its files begin with; None if it has none."""
    for folder in (path, path / "raw"):
        names = sorted(file.name.removesuffix("_graph_indicator.txt") for file in folder.glob("*_graph_indicator.txt"))
        if len(names) > 1:
            raise DataError(f"{folder} holds several TU datasets ({', '.join(names)}): give each a folder of its own.")
        if names:
            return folder, names[0]
    return None


def _tables(source: Path, name: str) -> dict[str, np.ndarray]:
    """The integer tables by their short names; node_labels only where there are any."""
    files = {f"{name}_{part}.txt": part for part in PARTS}
    if source.is_dir():
        tables = {files[path.name]: _integers(path.read_bytes()) for path in source.iterdir() if path.name in files}
    else:
        with zipfile.ZipFile(source) as archive:
            members = {Path(member).name: member for member in archive.namelist()}
            tables = {part: _integers(archive.read(members[file])) for file, part in files.items() if file in members}
    absent = [file for file, part in files.items() if part in REQUIRED and part not in tables]
    if absent:
        raise ValueError(f"it lacks {', '.join(absent)}")
    if tables["A"].shape[1] != 2:
        raise ValueError(f"{name}_A.txt must hold lines 'node, node'")
    return tables


def _integers(text: bytes) -> np.ndarray:
    """A comma-separated table of integers as int64 [rows, columns]."""
    import pyarrow as pa
    from pyarrow import csv

    width = text.split(b"\n", 1)[0].count(b",") + 1
    names = [str(column) for column in range(width)]
    table = csv.read_csv(
        io.BytesIO(text),
        read_options=csv.ReadOptions(column_names=names),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.int64()), null_values=[]),
    )
    return np.stack([table[column].to_numpy() for column in names], axis=1)


def _one_hot(labels: np.ndarray) -> Tensor:
    """One block of columns for each label column, counted from its smallest label as in PyG."""
    columns = torch.from_numpy(labels - labels.min(axis=0)).unbind(dim=1)
    return torch.cat([torch.nn.functional.one_hot(column) for column in columns], dim=1).float()


def _simple(edges: np.ndarray, num_nodes: int) -> Tensor:
    """The edges sorted by row, then column, without self-loops and repetitions."""
    row, col = torch.from_numpy(edges)
    keep = row != col
    key = (row[keep] * num_nodes + col[keep]).unique()
    return torch.stack([key // num_nodes, key % num_nodes])


def _split(x: Tensor, edge_index: Tensor, graph_of: Tensor, y: Tensor) -> list[Data]:
    """One Data per graph, each with its own memory, so that keeping one does not keep all."""
    from torch_geometric.data import Data

    num_nodes = torch.bincount(graph_of, minlength=len(y))
    graph_of_edge = graph_of[edge_index[0]]
    num_edges = torch.bincount(graph_of_edge, minlength=len(y))
    first_node = num_nodes.cumsum(0) - num_nodes
    edge_index = edge_index - first_node[graph_of_edge]
    return [
        Data(x=x_g.clone(), edge_index=edges_g.clone(memory_format=torch.contiguous_format), y=y_g.clone())
        for x_g, edges_g, y_g in zip(
            x.split(num_nodes.tolist()), edge_index.split(num_edges.tolist(), dim=1), y.split(1)
        )
    ]
