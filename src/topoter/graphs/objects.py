"""Graphs that are already Python objects: PyG, NetworkX, SciPy, pandas, polars."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, PoorEmbeddingWarning, UsageError
from topoter.graphs.arrow import pa
from topoter.graphs.assembly import RawGraph, assemble
from topoter.graphs.checks import check_graph
from topoter.graphs.columns import Category, decide
from topoter.graphs.directory import GraphDirectory
from topoter.graphs.edge_lists import read_edges
from topoter.graphs.features import (
    STRUCTURAL_NAMES,
    STRUCTURAL_NOTE,
    Features,
    array_features,
    structural_features,
    table_features,
)
from topoter.graphs.frames import as_arrow, frame_features, framed, in_node_order, is_a, is_frame
from topoter.graphs.ids import arrow_ids
from topoter.graphs.matrices import as_matrix
from topoter.graphs.preparation import Preparation, TableOptions
from topoter.graphs.table_notes import LABEL_NAMES
from topoter.graphs.tables import ArrowTable

if TYPE_CHECKING:
    from torch_geometric.data import Data

_logger = logging.getLogger(__name__)


def as_data(
    graph: Any, x: Any = None, preparation: Preparation | None = None, options: TableOptions | None = None
) -> Data:
    """Turn a graph object into PyG's `Data`, checked; the object itself is not changed.

    `graph`: PyG `Data`, a NetworkX graph, a SciPy sparse adjacency matrix, a DataFrame of edges, or a `GraphDirectory`,
    which is read into memory.
    `x`: node features. A DataFrame (pandas, polars) is joined by its index, or by a column called id, node or node_id,
    and made into numbers (see `Preparation`). Arrays [N, C], dense or sparse, have their rows in node order (for a
    DataFrame of edges: row i belongs to id i) and are taken as they are.
    Without `x`, features of the object itself are used, or, if it has none, log(1 + degree) and a constant.
    `preparation`: how a model prepares tables, in place of one that is learned here, under `options`.
    """
    features: Features | None = None
    if isinstance(x, (str, Path)):
        raise UsageError(
            f"x must be a table or an array. Got {str(x)!r} instead: read it first, as by pandas.read_csv."
        )
    x = framed(x)
    if is_a(graph, "torch_geometric.data", "Data") or isinstance(graph, GraphDirectory):
        data = _from_directory(graph, preparation) if isinstance(graph, GraphDirectory) else graph
        if x is not None or data is graph:
            data = _from_pyg(data, x, preparation, options)
    else:
        raw = _raw_graph(graph, preparation if x is None else None)
        if is_frame(x):
            features = frame_features(x, preparation, options, raw.node_ids)
        if features is not None and raw.has_node_order:
            features = in_node_order(features, raw.node_ids)
        features = features or (raw.features if x is None else array_features(x, "x"))
        data, notes = assemble(raw, features)
        tell(notes, () if features is None else features.met)
    check_graph(data)
    return data


def tell(notes: Iterable[str], met: Sequence[str] = ()) -> None:
    """Log what was noticed; a table with values that a model does not know, `met`, is worth a warning."""
    for note in notes:
        if note in met:
            warnings.warn(note, PoorEmbeddingWarning, stacklevel=5)
        else:
            _logger.info(note)


_SETS = (("torch_geometric.loader", "DataLoader"), ("torch_geometric.data", "Dataset"))  # modules and classes of PyG


def _raw_graph(graph: Any, preparation: Preparation | None) -> RawGraph:
    import scipy.sparse

    if scipy.sparse.issparse(graph):
        return from_scipy(graph, "The matrix")
    if is_a(graph, "networkx", "Graph"):
        return from_networkx(graph, "The NetworkX graph", preparation)
    if is_frame(graph):
        return read_edges(ArrowTable(path=Path("DataFrame"), table=as_arrow(graph)))
    hint = ""
    if isinstance(graph, (list, tuple)) or any(is_a(graph, *kind) for kind in _SETS):
        hint = " Several graphs go with level='graph'."
    elif isinstance(graph, (str, Path)):
        hint = " Of a file: topoter.graphs.read_graph(path, features=...) gives the graph and notes on it."
    raise UsageError(
        "A graph must be PyG's Data, a NetworkX graph, a SciPy sparse matrix or a DataFrame of edges. "
        f"Got {type(graph).__module__}.{type(graph).__qualname__} instead.{hint}"
    )


def from_scipy(matrix: Any, name: str) -> RawGraph:
    """A square adjacency matrix; its values are edge weights unless they are all one."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{name}: an adjacency matrix must be square. Got {list(matrix.shape)} instead.")
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{name}: edge weights must be numbers. Got {matrix.dtype} instead.")
    matrix = matrix.tocoo(copy=True)
    matrix.eliminate_zeros()  # a stored zero is no edge
    edge_index = np.stack([matrix.row, matrix.col]).astype(np.int64)
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and refused as such
        weight = None if (matrix.data == 1).all() else matrix.data.astype(np.float32)

    def where(edge: int) -> str:
        return f"{name}, entry [{edge_index[0, edge]}, {edge_index[1, edge]}]"

    return RawGraph(name, arrow_ids(np.arange(matrix.shape[0])), edge_index, where, weight)


def from_networkx(graph: Any, name: str, preparation: Preparation | None = None) -> RawGraph:
    """A NetworkX graph, in its own order of nodes; undirected edges are given once."""
    nodes, edge_index, weight = networkx_edges(graph, name)
    features = node_attributes([graph.nodes[node] for node in nodes], name, preparation)

    def where(edge: int) -> str:
        return f"{name}, edge ({nodes[edge_index[0, edge]]!r}, {nodes[edge_index[1, edge]]!r})"

    return RawGraph(name, arrow_ids(nodes), edge_index, where, weight, features=features)


def networkx_edges(graph: Any, name: str) -> tuple[list[Any], np.ndarray, np.ndarray | None]:
    """The nodes, the edges [2, E] between their numbers, and the weights [E], if any edge has one."""
    nodes = list(graph.nodes)
    number = {node: place for place, node in enumerate(nodes)}
    edges = [(number[u], number[v], values) for u, v, values in graph.edges(data=True)]
    edge_index = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2).T
    weight = None
    if any("weight" in values for _, _, values in edges):
        try:
            with np.errstate(over="ignore"):
                weight = np.array([values.get("weight", 1.0) for _, _, values in edges]).astype(np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{name}: an edge weight is not a number: {error}.") from None
    return nodes, edge_index, weight


def node_attributes(table: list[dict[Any, Any]], name: str, preparation: Preparation | None) -> Features | None:
    """Lists of numbers under `x` as they are, or else all attributes but labels, prepared as columns of a table."""
    if table and all(np.ndim(values.get("x", 0)) == 1 for values in table):
        lengths = {len(values["x"]) for values in table}
        if len(lengths) > 1:
            raise DataError(f"{name}: the node attribute 'x' has lists of {min(lengths)} and {max(lengths)} values.")
        return array_features([values["x"] for values in table], f"{name}, attribute 'x'")
    present = list(dict.fromkeys(key for values in table for key in values))
    columns, left_out = {}, []
    for key in present:
        if str(key).lower() in LABEL_NAMES:
            left_out.append(f"{key} (a label)")
            continue
        try:
            columns[str(key)] = pa.array([values.get(key) for values in table])
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            left_out.append(f"{key} (values of several types)")
    kept = {key: column for key, column in columns.items() if preparation or _is_feature(key, column, left_out)}
    said = [f"{name}: node attributes left out: {', '.join(left_out)}."] if left_out else []
    if not kept:
        if said:
            _logger.info(said[0])
        return None
    features = table_features(pa.table(kept), name, preparation=preparation)
    features.notes = [*said, f"{name}: node attributes taken as features: {', '.join(kept)}.", *features.notes]
    return features


def _is_feature(name: str, column: pa.Array, left_out: list[str]) -> bool:
    """Whether an attribute can become numbers; a name or a text of every node's own is left out, and said so."""
    try:
        found = decide(name, pa.chunked_array([column]), (), False)
    except DataError:
        found = None
    if isinstance(found, Category) and len(found.values) == len(column) - column.null_count > 1:
        left_out.append(f"{name} (every node has its own)")
        return False
    if found is None:
        left_out.append(f"{name} (neither numbers nor categories)")
    return found is not None


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


def _from_directory(graph: GraphDirectory, preparation: Preparation | None) -> Data:
    data = graph.as_data()
    if preparation is not None and not preparation.keeps_numbers:
        data.x, data.feature_names = (
            preparation.transform_stored(data.x, data.feature_names),
            preparation.feature_names,
        )
    return data


def _from_pyg(graph: Data, x: Any, preparation: Preparation | None, options: TableOptions | None) -> Data:
    data = copy.copy(graph)
    if not isinstance(data.get("edge_index"), Tensor):
        raise DataError("The graph has no edges: data.edge_index is missing.")
    if is_frame(x):
        node_ids = pyg_edges(data).node_ids
        features = in_node_order(frame_features(x, preparation, options, node_ids), node_ids)
        data.x, data.feature_names = features.x, features.feature_names
        data.table = features.table
        tell(features.notes, features.met)
    elif x is not None:
        data.x, data.table = as_matrix(x, "x"), None
    elif preparation is not None and data.get("table") is not None and data.table.preparation is not preparation:
        features = table_features(data.table.arrow, "the table", preparation=preparation)
        data.x, data.feature_names, data.table = features.x, features.feature_names, features.table
        tell(features.notes, features.met)
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
