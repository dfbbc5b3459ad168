"""Is this graph fit for training? The first thing wrong is said, with its place and value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from topoter.errors import DataError
from topoter.graphs.matrices import finite_rows, first_bad_value

if TYPE_CHECKING:
    from torch_geometric.data import Data


def check_graph(data: Data) -> None:
    """Raise a DataError if the graph cannot be trained on: shapes, types, ranges, NaN."""
    num_nodes = _check_nodes(data)
    _check_edges(data, num_nodes)
    _check_features(data.x, num_nodes, data.get("feature_names"))


def _check_nodes(data: Data) -> int:
    x, node_ids = data.get("x"), data.get("node_ids")
    if x is None:
        raise DataError("The graph has no node features: data.x is missing.")
    if not isinstance(x, Tensor) or x.dim() != 2:
        raise DataError(f"data.x must be a tensor [num_nodes, num_features]. Got {_shape(x)} instead.")
    num_nodes = data.num_nodes if "num_nodes" in data else x.size(0)
    if not num_nodes:
        raise DataError("The graph is empty: it has no nodes.")
    if node_ids is not None and len(node_ids) != num_nodes:
        raise DataError(f"data.node_ids has {len(node_ids):,} ids for {num_nodes:,} nodes.")
    return int(num_nodes)


def _check_edges(data: Data, num_nodes: int) -> None:
    edge_index = data.get("edge_index")
    if not isinstance(edge_index, Tensor):
        raise DataError("The graph has no edges: data.edge_index is missing.")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise DataError(f"data.edge_index must have the shape [2, E]. Got {_shape(edge_index)} instead.")
    if edge_index.dtype != torch.long:
        raise DataError(f"data.edge_index must be of dtype torch.int64. Got {edge_index.dtype} instead.")
    edge = _first(((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0))
    if edge is not None:
        source, target = edge_index[:, edge].tolist()
        node = target if 0 <= source < num_nodes else source
        problem = f"node {node} does not exist, the graph has {num_nodes:,} nodes"
        raise DataError(f"Edge {edge} ({source} -> {target}): {problem}.")
    for name in ("edge_weight", "time"):
        value = data.get(name)
        if value is not None and _shape(value) != [edge_index.size(1)]:
            raise DataError(f"data.{name} must have the shape [{edge_index.size(1)}]. Got {_shape(value)} instead.")
    weight = data.get("edge_weight")
    edge = None if weight is None else _first(~(weight.isfinite() & (weight >= 0)))
    if edge is not None:
        raise DataError(f"Edge {edge} has the weight {weight[edge].item():g}: it must be a finite number >= 0.")


def _check_features(x: Tensor, num_nodes: int, names: list[str] | None) -> None:
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DataError(f"data.x must be dense or sparse CSR. Got {x.layout} instead.")
    if not x.is_floating_point():
        raise DataError(f"data.x must hold floating-point numbers. Got {x.dtype} instead.")
    if x.size(0) != num_nodes:
        raise DataError(f"data.x has {x.size(0):,} rows for {num_nodes:,} nodes.")
    if x.size(1) == 0:
        raise DataError("data.x has no columns: the nodes have no features.")
    node = _first(~finite_rows(x))
    if node is not None:
        column, value = first_bad_value(x, node)
        known = f" ({names[column]!r})" if names is not None and column < len(names) else ""
        raise DataError(f"Feature {column}{known} of node {node} is {value}: it must be a finite number.")


def _first(bad: Tensor) -> int | None:
    return int(bad.int().argmax()) if bad.any() else None


def _shape(value: Any) -> list[int] | str:
    return list(value.shape) if isinstance(value, Tensor) else type(value).__name__
