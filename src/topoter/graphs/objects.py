"""Graphs that are already Python objects: PyG, NetworkX, SciPy, pandas."""

from __future__ import annotations

import copy
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, UsageError
from topoter.graphs.arrow import pa
from topoter.graphs.assembly import RawGraph, assemble
from topoter.graphs.checks import check_graph
from topoter.graphs.directory import GraphDirectory
from topoter.graphs.edge_lists import read_edges
from topoter.graphs.features import STRUCTURAL_NAMES, STRUCTURAL_NOTE, array_features, structural_features
from topoter.graphs.ids import arrow_ids
from topoter.graphs.matrices import as_matrix
from topoter.graphs.problems import explained
from topoter.graphs.tables import ArrowTable

if TYPE_CHECKING:
    from torch_geometric.data import Data

_logger = logging.getLogger(__name__)
# Targets, not descriptions: as features they would give the answer away.
LABEL_NAMES = {"y", "label", "target", "class"}


def as_data(graph: Any, x: Any = None) -> Data:
    """Turn a graph object into PyG's `Data`, checked; the object itself is not changed.

    `graph`: PyG `Data`, a NetworkX graph, a SciPy sparse adjacency matrix, a pandas DataFrame of edges,
    or a `GraphDirectory`, which is read into memory.
    `x`: node features [N, C], dense or sparse, rows in node order (for a DataFrame: row i belongs to id i).
    Without `x`, features of the object itself are used, or, if it has none, log(1 + degree) and a constant.
    """
    if _is_a(graph, "torch_geometric.data", "Data"):
        data = _from_pyg(graph, x)
    elif isinstance(graph, GraphDirectory):
        data = graph.as_data() if x is None else _from_pyg(graph.as_data(), x)
    else:
        raw = _raw_graph(graph)
        data, notes = assemble(raw, None if x is None else array_features(x, "x"))
        for note in notes:
            _logger.info(note)
    check_graph(data)
    return data


def _raw_graph(graph: Any) -> RawGraph:
    import scipy.sparse

    if scipy.sparse.issparse(graph):
        return from_scipy(graph, "The matrix")
    if _is_a(graph, "networkx", "Graph"):
        return from_networkx(graph, "The NetworkX graph")
    if _is_a(graph, "pandas", "DataFrame"):
        return _from_pandas(graph)
    raise UsageError(
        "A graph must be PyG's Data, a NetworkX graph, a SciPy sparse matrix or a pandas DataFrame of edges. "
        f"Got {type(graph).__module__}.{type(graph).__qualname__} instead."
    )


def _is_a(value: Any, module: str, name: str) -> bool:
    """isinstance without an import: an object of a library that was never imported cannot exist."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


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


def from_networkx(graph: Any, name: str) -> RawGraph:
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
    x, feature_names, notes = _node_attributes([graph.nodes[node] for node in nodes], name)

    def where(edge: int) -> str:
        return f"{name}, edge ({nodes[edge_index[0, edge]]!r}, {nodes[edge_index[1, edge]]!r})"

    ids = arrow_ids(nodes)
    return RawGraph(name, ids, edge_index, where, weight, x=x, feature_names=feature_names, notes=notes)


def _node_attributes(table: list[dict[Any, Any]], name: str) -> tuple[Tensor | None, list[str] | None, list[str]]:
    """Lists of numbers under `x`, or else every attribute that is a number on every node."""
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
    names = [str(key) for key in used]
    notes.append(f"{name}: node attributes taken as features: {', '.join(names)}.")
    values = np.array([[row[key] for key in used] for row in table], dtype=np.float32)
    return torch.from_numpy(values), names, notes


def _from_pandas(frame: Any) -> RawGraph:
    with explained("The DataFrame has a column of mixed types", (pa.ArrowInvalid, pa.ArrowTypeError)):
        table = pa.Table.from_pandas(frame, preserve_index=False)
    if not table.num_rows:
        raise DataError("The DataFrame is empty: it holds no edges.")
    return read_edges(ArrowTable(path=Path("DataFrame"), table=table))


def pyg_edges(data: Data, name: str = "The graph") -> RawGraph:
    """Only ids, edges, weights and times of a PyG graph, to be joined with other features."""
    num_nodes = _num_nodes(data)
    bare = copy.copy(data)
    bare.x, bare.num_nodes = torch.ones(num_nodes, 1), num_nodes
    check_graph(bare)
    optional = [data.get(key) for key in ("edge_weight", "time")]
    weight, time = (None if value is None else value.cpu().numpy() for value in optional)
    ids = data.get("node_ids")
    node_ids = arrow_ids(np.arange(num_nodes) if ids is None else ids)
    return RawGraph(name, node_ids, data.edge_index.cpu().numpy(), lambda edge: f"{name}, edge {edge}", weight, time)


def _num_nodes(data: Data) -> int:
    """The number of nodes as stated or as implied; PyG's own guess would warn."""
    if "num_nodes" in data:
        return int(data.num_nodes)
    for key in ("x", "node_ids"):
        if data.get(key) is not None:
            return len(data[key])
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
    ids = data.get("node_ids")
    if ids is None or isinstance(ids, Tensor):
        data.node_ids = np.arange(data.num_nodes) if ids is None else ids.cpu().numpy()
    return data
