"""Graphs that are already Python objects: PyG, NetworkX, SciPy, pandas."""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, UsageError
from topoter.graphs.assembly import assemble
from topoter.graphs.checks import check_graph
from topoter.graphs.edge_lists import read_edges
from topoter.graphs.features import STRUCTURAL_NAMES, STRUCTURAL_NOTE, array_features, structural_features
from topoter.graphs.ids import arrow_ids
from topoter.graphs.matrices import as_matrix
from topoter.graphs.raw import RawGraph
from topoter.graphs.tables import ArrowTable

if TYPE_CHECKING:
    from torch_geometric.data import Data

_logger = logging.getLogger(__name__)
# Targets, not descriptions: as features they would give the answer away.
LABEL_NAMES = {"y", "label", "target", "class"}


def as_data(graph: Any, x: Any = None) -> Data:
    """Turn a graph object into PyG's `Data`, checked; the object itself is not changed.

    `graph`: PyG `Data`, a NetworkX graph, a SciPy sparse adjacency matrix, or a pandas DataFrame of edges.
    `x`: node features [N, C], dense or sparse, rows in node order (for a DataFrame: row i belongs to id i).
    Without `x`, features of the object itself are used, or, if it has none, log(1 + degree) and a constant.
    """
    if _is_a(graph, "torch_geometric.data", "Data"):
        data = _from_pyg(graph, x)
    else:
        raw = raw_graph(graph)
        features = None if x is None else array_features(x, "x")
        data, notes = assemble(raw, features)
        for note in notes:
            _logger.info(note)
    check_graph(data)
    return data


def raw_graph(graph: Any) -> RawGraph:
    """Any accepted object as edges between numbered nodes."""
    import scipy.sparse

    if scipy.sparse.issparse(graph):
        return from_scipy(graph, "The matrix")
    for (module, name), convert in CONVERTERS.items():
        if _is_a(graph, module, name):
            return convert(graph)
    raise UsageError(
        "A graph must be PyG's Data, a NetworkX graph, a SciPy sparse matrix or a pandas DataFrame of edges. "
        f"Got {type(graph).__module__}.{type(graph).__qualname__} instead."
    )


def from_scipy(matrix: Any, name: str) -> RawGraph:
    """A square adjacency matrix; its values are edge weights unless they are all one."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{name}: an adjacency matrix must be square. Got {list(matrix.shape)} instead.")
    matrix = matrix.tocoo(copy=True)
    matrix.eliminate_zeros()  # a stored zero is no edge
    edge_index = np.stack([matrix.row, matrix.col]).astype(np.int64)
    weight = None if (matrix.data == 1).all() else matrix.data.astype(np.float32)

    def where(edge: int) -> str:
        return f"{name}, entry [{edge_index[0, edge]}, {edge_index[1, edge]}]"

    return RawGraph(name, arrow_ids(np.arange(matrix.shape[0])), edge_index, where, weight)


def from_networkx(graph: Any, name: str = "The NetworkX graph") -> RawGraph:
    """A NetworkX graph, in its own order of nodes; undirected edges are given once."""
    nodes = list(graph.nodes)
    number = {node: place for place, node in enumerate(nodes)}
    edges = [(number[u], number[v], values) for u, v, values in graph.edges(data=True)]
    edge_index = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2).T
    weight = None
    if any("weight" in values for _, _, values in edges):
        try:
            weight = np.array([values.get("weight", 1.0) for _, _, values in edges], dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{name}: an edge weight is not a number: {error}.") from None
    x, feature_names, notes = _node_attributes(graph, nodes, name)

    def where(edge: int) -> str:
        return f"{name}, edge ({nodes[edge_index[0, edge]]!r}, {nodes[edge_index[1, edge]]!r})"

    ids = arrow_ids(nodes)
    return RawGraph(name, ids, edge_index, where, weight, x=x, feature_names=feature_names, notes=notes)


def _node_attributes(graph: Any, nodes: list[Any], name: str) -> tuple[Tensor | None, list[str] | None, list[str]]:
    """Lists of numbers under `x`, or else every attribute that is a number on every node."""
    table = [graph.nodes[node] for node in nodes]
    if table and all(np.ndim(values.get("x", 0)) == 1 for values in table):
        lengths = {len(values["x"]) for values in table}
        if len(lengths) > 1:
            raise DataError(f"{name}: the node attribute 'x' has lists of {min(lengths)} and {max(lengths)} values.")
        return as_matrix([values["x"] for values in table], f"{name}, attribute 'x'"), None, []
    present = list(dict.fromkeys(key for values in table for key in values))
    used = [
        key
        for key in present
        if str(key).lower() not in LABEL_NAMES
        and all(isinstance(values.get(key), (int, float, np.number)) for values in table)
    ]
    left_out = [str(key) for key in present if key not in used]
    notes = []
    if left_out:
        why = "labels, or not a number on every node"
        notes.append(f"{name}: node attributes left out ({why}): {', '.join(left_out)}.")
    if not used:
        return None, None, notes
    notes.append(f"{name}: node attributes taken as features: {', '.join(map(str, used))}.")
    values = np.array([[row[key] for key in used] for row in table], dtype=np.float32)
    return torch.from_numpy(values), [str(key) for key in used], notes


def _from_pandas(frame: Any) -> RawGraph:
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"The DataFrame has a column of mixed types: {str(error).splitlines()[0]}") from None
    if not table.num_rows:
        raise DataError("The DataFrame is empty: it holds no edges.")
    return read_edges(ArrowTable(Path("DataFrame"), table))


def pyg_edges(data: Data, name: str = "The graph") -> RawGraph:
    """Only ids, edges, weights and times of a PyG graph, to be joined with other features."""
    num_nodes = _num_nodes(data)
    bare = copy.copy(data)
    bare.x = torch.ones(num_nodes, 1)
    bare.num_nodes = num_nodes
    check_graph(bare)
    optional = [data.get(key) for key in ("edge_weight", "time")]
    weight, time = (None if value is None else value.cpu().numpy() for value in optional)
    ids = data.get("node_ids")
    node_ids = arrow_ids(np.arange(num_nodes) if ids is None else ids)
    edge_index = data.edge_index.cpu().numpy()
    return RawGraph(name, node_ids, edge_index, lambda edge: f"{name}, edge {edge}", weight, time)


def _num_nodes(data: Data) -> int:
    """The number of nodes as stated or as implied; PyG's own guess would warn."""
    if "num_nodes" in data:
        return int(data.num_nodes)
    for key in ("x", "node_ids"):
        if data.get(key) is not None:
            return len(data[key]) if key == "node_ids" else data[key].size(0)
    edge_index = data.get("edge_index")
    return int(edge_index.max()) + 1 if isinstance(edge_index, Tensor) and edge_index.numel() else 0


def _from_pyg(graph: Data, x: Any) -> Data:
    data = copy.copy(graph)
    if not isinstance(data.get("edge_index"), Tensor):
        raise DataError("The graph has no edges: data.edge_index is missing.")
    if x is not None:
        data.x = as_matrix(x, "x")
    elif data.get("x") is not None:
        data.x = as_matrix(data.x, "data.x")
    else:
        raw = pyg_edges(data)
        data.x, data.feature_names = structural_features(raw.edge_index, len(raw.node_ids)), list(STRUCTURAL_NAMES)
        _logger.info(STRUCTURAL_NOTE)
    data.num_nodes = _num_nodes(data)
    if isinstance(data.get("node_ids"), Tensor):
        data.node_ids = data.node_ids.cpu().numpy()
    elif data.get("node_ids") is None:
        data.node_ids = np.arange(data.num_nodes)
    return data


def _is_a(value: Any, module: str, name: str) -> bool:
    """isinstance without an import: an object of a library that was never imported cannot exist."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


CONVERTERS: dict[tuple[str, str], Callable[[Any], RawGraph]] = {
    ("torch_geometric.data", "Data"): pyg_edges,
    ("networkx", "Graph"): from_networkx,
    ("pandas", "DataFrame"): _from_pandas,
}
