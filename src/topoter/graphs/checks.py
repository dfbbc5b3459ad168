"""Is this graph fit for training? The first thing wrong is said, with its place and value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from topoter.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data

_BLOCK = 65_536  # rows looked at together: a mask of the whole of x could cost a quarter of its memory


def check_graph(data: Data) -> None:
    """Raise a DataError if the graph cannot be trained on: shapes, types, ranges, NaN."""
    num_nodes = _check_nodes(data)
    _check_edges(data, num_nodes)
    _check_features(data.x, num_nodes, data.get("feature_names"))


def finite_rows(x: Tensor) -> Tensor:
    """[N] True where a row of x, dense or sparse CSR, holds finite numbers only."""
    if x.layout == torch.sparse_csr:
        rows = torch.repeat_interleave(torch.arange(x.size(0), device=x.device), x.crow_indices().diff())
        good = torch.ones(x.size(0), dtype=torch.bool, device=x.device)
        good[rows[~x.values().isfinite()]] = False
        return good
    if x.size(0) == 0:
        return torch.ones(0, dtype=torch.bool)
    return torch.cat([block.isfinite().all(dim=1) for block in x.split(_BLOCK)])


def first_bad_value(x: Tensor, row: int) -> tuple[int, float]:
    """Column and value of the first NaN or infinity in a row."""
    values = x[row].to_dense()
    column = int((~values.isfinite()).nonzero()[0])
    return column, float(values[column])


def _check_nodes(data: Data) -> int:
    x = data.get("x")
    if x is None:
        raise DataError("The graph has no node features: data.x is missing.")
    if not isinstance(x, Tensor) or x.dim() != 2:
        shape = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise DataError(f"data.x must be a tensor [num_nodes, num_features]. Got {shape} instead.")
    num_nodes = data.num_nodes if "num_nodes" in data else x.size(0)
    if not num_nodes:
        raise DataError("The graph is empty: it has no nodes.")
    node_ids = data.get("node_ids")
    if node_ids is not None and len(node_ids) != num_nodes:
        raise DataError(f"data.node_ids has {len(node_ids):,} ids for {num_nodes:,} nodes.")
    return int(num_nodes)


def _check_edges(data: Data, num_nodes: int) -> None:
    edge_index = data.get("edge_index")
    if not isinstance(edge_index, Tensor):
        raise DataError("The graph has no edges: data.edge_index is missing.")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise DataError(f"data.edge_index must have the shape [2, E]. Got {list(edge_index.shape)} instead.")
    if edge_index.dtype != torch.long:
        raise DataError(f"data.edge_index must be of dtype torch.int64. Got {edge_index.dtype} instead.")
    outside = ((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0)
    if outside.any():
        edge = int(outside.int().argmax())
        source, target = edge_index[:, edge].tolist()
        node = target if 0 <= source < num_nodes else source
        problem = f"node {node} does not exist, the graph has {num_nodes:,} nodes"
        raise DataError(f"Edge {edge} ({source} -> {target}): {problem}.")
    for name in ("edge_weight", "time"):
        value = data.get(name)
        if value is None:
            continue
        if not isinstance(value, Tensor) or list(value.shape) != [edge_index.size(1)]:
            shape = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise DataError(f"data.{name} must have the shape [{edge_index.size(1)}]. Got {shape} instead.")
    weight = data.get("edge_weight")
    if weight is not None:
        bad = ~(weight.isfinite() & (weight >= 0))
        if bad.any():
            edge = int(bad.int().argmax())
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
    good = finite_rows(x)
    if not good.all():
        node = int((~good).int().argmax())
        column, value = first_bad_value(x, node)
        known = f" ({names[column]!r})" if names is not None and column < len(names) else ""
        raise DataError(f"Feature {column}{known} of node {node} is {value}: it must be a finite number.")
