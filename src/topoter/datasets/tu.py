"""Sets of graphs in the text format of the TU collection (Morris et al., 2020)."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.datasets import embedded
from topoter.datasets.base import REGISTRY, Dataset, register
from topoter.datasets.checks import read_checked
from topoter.errors import DataError, TopoterError
from topoter.graphs.archives import check_zip
from topoter.graphs.problems import READING_ERRORS

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

REQUIRED = ("A", "graph_indicator", "graph_labels")
PARTS = (*REQUIRED, "node_labels")  # what is read; attributes and edge labels are not


class TU(Dataset):
    """A set of graphs, as texts or in one zip."""

    family = "tu"
    kind = "graphs"
    source = "https://www.chrsmrrs.com/graphkerneldatasets"
    downloader = "TUDataset"

    def file_sets(self) -> list[list[str]]:
        return [[f"tu/{self.folder}/raw/{self.folder}_{part}.txt" for part in REQUIRED], [f"tu-zip/{self.folder}.zip"]]

    def find(self, root: Path) -> dict[str, Path] | None:
        found = super().find(root)
        return self.texts(root / "tu" / self.folder / "raw") if found and len(found) > 1 else found

    def texts(self, folder: Path) -> dict[str, Path]:
        """All texts of a folder that are read, by their published names."""
        names = [f"{self.folder}_{part}.txt" for part in PARTS]
        return {f"tu/{self.folder}/raw/{name}": folder / name for name in names if (folder / name).is_file()}

    def read(self, paths: dict[str, Path]) -> list[Data]:
        first = next(iter(paths.values()))
        return read_tu(first if first.suffix == ".zip" else first.parent, self.folder)

    def read_bundled(self, folder: Path) -> Any:
        return read_checked(self, self.texts(folder))

    @property
    def first_download(self) -> str:
        return f"{self.folder}.zip"

    @classmethod
    def others_under(cls, root: Path) -> list[Dataset]:
        folders = {path.parent.parent.name for path in root.glob("tu/*/raw/*_graph_indicator.txt")}
        folders |= {path.stem for path in root.glob("tu-zip/*.zip")}
        return [cls(folder) for folder in sorted(folders) if folder.lower() not in REGISTRY]


register(  # nodes and edges of all graphs together, features, classes, graphs
    TU("MUTAG", 3371, 3721, 7, 2, 188, bundled=embedded.MUTAG),
    TU("PTC_MR", 4915, 5054, 18, 2, 344),
    TU("IMDB-BINARY", 19773, 96531, 1, 2, 1000),
    TU("IMDB-MULTI", 19502, 98903, 1, 3, 1500),
    TU("REDDIT-BINARY", 859254, 995508, 1, 2, 2000),
    TU("REDDIT-MULTI-5K", 2542071, 2973778, 1, 5, 4999),
    TU("DD", 334925, 843046, 89, 2, 1178),
    TU("PROTEINS", None, None, 3, 2, 1113),
    TU("NCI1", None, None, 37, 2, 4110),
    TU("ENZYMES", None, None, 3, 6, 600),
    TU("COLLAB", None, None, 1, 3, 5000),
)


def read_tu(source: Path, name: str) -> list[Data]:
    """Read all graphs of a raw folder (`NAME_A.txt`, ...) or of a zip that holds those files.

    Features are the one-hot node labels, or a single column of ones where nodes have none; `y` counts the
    graph labels from 0. Self-loops and repeated edges are dropped, as in PyG's `TUDataset`.
    """
    try:
        tables = _tables(source, name)
    except TopoterError:
        raise
    except READING_ERRORS as error:
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
        check_zip(source)
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
