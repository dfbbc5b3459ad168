"""A set of graphs as one edge list, with a column that says to which graph an edge belongs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.graphs.arrow import pa, pc
from topoter.graphs.assembly import RawGraph, assemble
from topoter.graphs.edge_lists import open_edges, read_edges
from topoter.graphs.features import STRUCTURAL_NOTE, Features, read_features, table_features
from topoter.graphs.headers import open_table
from topoter.graphs.ids import positions, same_type, sorted_unique, user_ids
from topoter.graphs.preparation import Preparation, PreparedTable, TableOptions
from topoter.graphs.raw_sets import RawSet

if TYPE_CHECKING:
    from torch_geometric.data import Data


def read_set_edges(
    path: Path,
    graph_column: str,
    *,
    preparation: Preparation | None = None,
    features: str | os.PathLike[str] | None = None,
    id_column: str | None = None,
    weight_column: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    drop_bad: bool = False,
    **columns: Any,
) -> RawSet:
    """Graphs in ascending order of their ids; a node is an id within a graph."""
    if features is None and (id_column is not None or columns):
        raise UsageError("Columns are those of the features table: give that too (--features, features= in Python).")
    named = {"weight_column": weight_column, "graph_column": graph_column}
    (edges,) = open_edges(path, **named, delimiter=delimiter, header=header, drop_bad=drop_bad)
    raw = read_edges(edges, **named)
    if features is None:
        return _by_id(raw, None, drop_bad)
    source, options = Path(features), TableOptions(**columns)
    if _has_column(source, graph_column, drop_bad):
        return _by_graph_and_id(raw, _rows(source, graph_column, id_column, drop_bad, options, preparation), drop_bad)
    table = read_features(source, id_column=id_column, drop_bad=drop_bad, options=options, preparation=preparation)
    return _by_id(raw, table, drop_bad)


def _by_id(raw: RawGraph, table: Features | None, drop_bad: bool) -> RawSet:
    """Features of a node whatever its graph, or none."""
    assert raw.graph is not None
    graphs = sorted_unique(raw.graph)
    # The number of its graph goes with an edge as its time would: some edges may be dropped.
    data, notes = assemble(replace(raw, time=positions(raw.graph, graphs)), table, drop_bad)
    key = data.time.numpy() * data.num_nodes + data.edge_index.numpy()  # [2, E]
    nodes = np.unique(key)
    graph_of, row = np.divmod(nodes, data.num_nodes)
    found = _gathered(raw.name, graphs, graph_of, np.searchsorted(nodes, key), data, notes)
    ids = pa.array(data.node_ids)
    found.node_ids = user_ids(ids.take(pa.array(row)))
    return found if table is None else _with_rows(found, data, row)


def _by_graph_and_id(raw: RawGraph, rows: tuple[pa.Array, pa.Array, Features], drop_bad: bool) -> RawSet:
    """Features of a node in its graph; a graph may have nodes without edges."""
    assert raw.graph is not None
    theirs, nodes_of_rows, table = rows
    ours, theirs = same_type(raw.graph, theirs)
    graphs = sorted_unique(ours, theirs)
    key = positions(ours, graphs) * len(raw.node_ids) + raw.edge_index
    nodes = np.unique(key)
    graph_of, row = np.divmod(nodes, len(raw.node_ids))
    names = _named(raw.node_ids.take(pa.array(row)), graphs.take(pa.array(graph_of)))
    data, notes = assemble(replace(raw, node_ids=names, edge_index=np.searchsorted(nodes, key)), table, drop_bad)
    graph_of = positions(theirs, graphs)
    order = np.argsort(graph_of, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    found = _gathered(raw.name, graphs, graph_of[order], place[data.edge_index.numpy()], data, notes)
    found.node_ids = user_ids(nodes_of_rows.take(pa.array(order)))
    return _with_rows(found, data, order)


def _gathered(
    name: str, graphs: pa.Array, graph_of: np.ndarray, edge_index: np.ndarray, data: Data, notes: list[str]
) -> RawSet:
    """The set without its features; of a graph all of whose edges were dropped nothing is left."""
    sizes = np.bincount(graph_of, minlength=len(graphs))
    present = np.flatnonzero(sizes)
    raw = RawSet(name, user_ids(graphs.take(pa.array(present))), sizes[present], edge_index)
    weight = data.get("edge_weight")
    raw.weight = None if weight is None else weight.numpy()
    # The size is told of the whole set, by graph.
    raw.notes = [text for text in notes if text != STRUCTURAL_NOTE and " edges between " not in text]
    return raw


def _with_rows(found: RawSet, data: Data, rows: np.ndarray) -> RawSet:
    """Each node of the set with its row of the features."""
    found.x, found.feature_names = data.x.to_dense()[rows], data.feature_names
    table = data.get("table")
    if table is not None:
        found.table = PreparedTable(table.arrow.take(pa.array(rows)), table.preparation)
    return found


def _named(nodes: pa.Array, graphs: pa.Array) -> pa.Array:
    """One id for a node and its graph, that can be read in a message."""
    return pc.binary_join_element_wise(nodes.cast(pa.string()), graphs.cast(pa.string()), " of graph ")


def _has_column(path: Path, name: str, drop_bad: bool) -> bool:
    if path.suffix.lower() in (".npy", ".npz"):
        return False
    return name in open_table(path, asked_columns=[], drop_bad=drop_bad).names


def _rows(
    path: Path,
    graph_column: str,
    id_column: str | None,
    drop_bad: bool,
    options: TableOptions,
    preparation: Preparation | None,
) -> tuple[pa.Array, pa.Array, Features]:
    """The graph and the id of every row of a table, and the features that its other columns become."""
    table = open_table(path, asked_columns=[graph_column, id_column], drop_bad=drop_bad)
    others = [name for name in table.names if name != graph_column]
    name = id_column or others[0] if others else ""
    arrow = table.read(table.names)
    kept = [other for other in others if other != name]
    if not kept:
        raise DataError(f"{path} has ids but no features: its columns are {', '.join(table.names)}.")
    if id_column is None:
        table.notes.append(f"{path}: node ids taken from the column {name!r}, graph ids from {graph_column!r}.")
    (nodes,), (graphs,) = table.ids(arrow, [name]), table.ids(arrow, [graph_column])
    keep = table.rows_with_id(nodes, name, f"rows of {path} without an id")
    keep &= table.rows_with_id(graphs, graph_column, f"rows of {path} without a graph id")
    named = _named(nodes.combine_chunks(), graphs.combine_chunks())
    again = np.ones(len(named), dtype=bool)
    codes = named.dictionary_encode(null_encoding="encode").indices.to_numpy()
    again[np.unique(codes, return_index=True)[1]] = False
    keep &= table.keep_good(
        again & keep,
        lambda row: f"node {named[row].as_py()} stands here a second time",
        f"rows of {path} with an id seen before in the same graph",
    )
    rows = np.flatnonzero(keep)
    if not len(rows):
        raise DataError(f"{path} is empty: no usable row is left.")
    found = table_features(arrow.select(kept).take(rows), str(path), options, preparation)
    found.ids, found.rows, found.total = named.take(pa.array(rows)), rows, len(keep)
    found.notes = [*table.notes, *found.notes]
    return graphs.take(rows).combine_chunks(), nodes.take(rows).combine_chunks(), found
