"""Edges of any origin joined with features by node id into PyG's `Data`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.errors import DataError
from topoter.graphs.arrow import pa
from topoter.graphs.features import STRUCTURAL_NAMES, STRUCTURAL_NOTE, Features, structural_features
from topoter.graphs.ids import positions, same_type, user_ids
from topoter.graphs.problems import bad_weight, bad_weights, keep_good

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass
class RawGraph:
    """What every reader produces: edges between numbered nodes, and how to say where an edge came from."""

    name: str  # the file, or the kind of object, for messages
    node_ids: pa.Array  # [N]
    edge_index: np.ndarray  # [2, E], positions in node_ids
    where: Callable[[int], str]  # edge number -> "edges.csv, line 7"
    weight: np.ndarray | None = None  # [E]
    time: np.ndarray | None = None  # [E]
    graph: pa.Array | None = None  # [E] ids of the graphs the edges belong to, where there are many
    features: Features | None = None  # if the source holds some itself, its rows in node order
    # An edge list knows ids but no order of nodes; a matrix or a GraphML file has one, which rows of an
    # array of features can follow.
    has_node_order: bool = True
    notes: list[str] = field(default_factory=list)


def assemble(raw: RawGraph, features: Features | None, drop_bad: bool = False) -> tuple[Data, list[str]]:
    """The graph with its features, and notes on what was assumed or dropped on the way."""
    from torch_geometric.data import Data

    notes, weight = list(raw.notes), raw.weight
    keep = np.ones(raw.edge_index.shape[1], dtype=bool)
    if weight is not None:
        keep = keep_good(
            bad_weights(weight),
            lambda edge: f"{raw.where(edge)}: {bad_weight(float(weight[edge]))}.",
            drop_bad,
            notes,
            "edges with a bad weight",
        )
    node_ids, edge_index = raw.node_ids, raw.edge_index
    features = features or raw.features
    if features is not None:
        notes += features.notes
        node_ids, edge_index, known = _join(raw, features, keep, drop_bad, notes)
        keep &= known
    edge_index = edge_index if keep.all() else edge_index[:, keep]
    if features is not None:
        x, names = features.x, features.feature_names
    else:
        x, names = structural_features(edge_index, len(node_ids)), list(STRUCTURAL_NAMES)
        notes.append(STRUCTURAL_NOTE)

    # num_nodes is said aloud because PyG cannot always tell it from a sparse x.
    data = Data(
        x=x,
        edge_index=torch.from_numpy(np.ascontiguousarray(edge_index)),
        num_nodes=len(node_ids),
        node_ids=user_ids(node_ids),
        feature_names=names,
    )
    if features is not None and features.table is not None:
        data.table = features.table
    for name, values in (("edge_weight", weight), ("time", raw.time)):
        if values is not None:
            kept = values if keep.all() else values[keep]
            data[name] = torch.from_numpy(np.require(kept, requirements=["C", "W"]))
    size = f"{data.num_edges:,} edges between {data.num_nodes:,} nodes with {x.size(1):,} features each"
    notes.append(f"{raw.name}: {size}.")
    lonely = data.num_nodes - np.count_nonzero(np.bincount(edge_index.ravel(), minlength=data.num_nodes))
    if lonely:
        notes.append(f"{lonely:,} nodes have no edges.")
    return data, notes


def _join(
    raw: RawGraph, features: Features, kept: np.ndarray, drop_bad: bool, notes: list[str]
) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Node ids in the order of the features, edges as numbers into them, and which edges have both ends there."""
    theirs, ours = same_type(_feature_ids(raw, features), raw.node_ids)
    position = positions(ours, theirs)
    edge_index = position[raw.edge_index]

    def unknown(edge: int) -> str:
        end = int(edge_index[0, edge] >= 0)  # the first end that is missing
        return f"{raw.where(edge)}: {_no_features(raw, features, int(raw.edge_index[end, edge]))}"

    bad = (edge_index < 0).any(axis=0) & kept
    known = keep_good(bad, unknown, drop_bad, notes, f"edges to nodes without a usable row in {features.name}")
    keep_good(
        position < 0,
        lambda node: f"{raw.name}: {_no_features(raw, features, node)}",
        drop_bad,
        notes,
        f"nodes without a usable row in {features.name}",
    )
    return theirs, edge_index, known


def _feature_ids(raw: RawGraph, features: Features) -> pa.Array:
    if features.ids is not None:
        return features.ids
    if raw.has_node_order:
        nodes = len(raw.node_ids)
        if features.total != nodes:
            raise DataError(f"{features.name} has {features.total:,} rows, but {raw.name} has {nodes:,} nodes.")
        return raw.node_ids.take(features.rows)
    if not pa.types.is_integer(raw.node_ids.type):
        raise DataError(
            f"{features.name} has rows without ids, so the ids in {raw.name} must be row numbers from 0; "
            f"found {raw.node_ids[0].as_py()!r}. Give a table with an id column instead."
        )
    return pa.array(features.rows)


def _column_with(value: object, features: Features) -> str:
    """The column that holds the id, where it is another than the one looked at."""
    columns = {} if features.table is None else dict(zip(features.table.arrow.column_names, features.table.arrow))
    for name, column in columns.items():
        if not pa.types.is_nested(column.type) and str(value) in column.cast(pa.string()).to_pylist():
            return f" Its column {name!r} has it: if the ids are there, give --id-column {name}."
    return ""


def _written_otherwise(value: object, ids: pa.Array | pa.ChunkedArray) -> str:
    """The same id in capitals, with zeros before it or, as tables with gaps write whole numbers, with .0 after it."""

    def plain(word: object) -> str:
        return str(word).casefold().removesuffix(".0").lstrip("0")

    found = next((one for one in ids.to_pylist() if plain(one) == plain(value)), None)
    return "" if found is None else f" It has {found!r}: write ids in both alike."


def _no_features(raw: RawGraph, features: Features, node: int) -> str:
    value = raw.node_ids[node].as_py()
    if features.ids is not None:
        index = (
            " Every node of the graph needs a row: give the table the graph's ids as its index."
            if features.name.startswith("x (")
            else ""
        )
        hint = index or _written_otherwise(value, features.ids) or _column_with(value, features)
        return f"node {value!r} is not in {features.name}.{hint}"
    one_based = raw.node_ids[0].as_py() == 1 and raw.node_ids[-1].as_py() == features.total
    hint = " The ids seem to start at 1: subtract 1." if one_based else ""
    return (
        f"node {value!r} does not exist: {features.name} has {features.total:,} rows, "
        f"so ids run from 0 to {features.total - 1}.{hint}"
    )
