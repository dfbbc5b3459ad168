"""New nodes of an imported graph: their edges to it and among themselves, and their features."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from topoter.errors import DataError, UsageError
from topoter.graphs.arrow import pa, pc
from topoter.graphs.directory import GraphDirectory
from topoter.graphs.edge_lists import open_edges, read_edges
from topoter.graphs.features import read_features
from topoter.graphs.ids import NodeIds, positions, same_type, user_ids
from topoter.graphs.preparation import Preparation, TableOptions


@dataclass
class NewNodes:
    """New nodes, numbered from 0 to n - 1; node v of the graph is n + v.

    Args:
        x: features [n, C]; None where the graph's are made from degrees.
    """

    ids: NodeIds
    x: torch.Tensor | None
    feature_names: list[str] | None
    edge_index: torch.Tensor
    weight: torch.Tensor | None
    notes: list[str] = field(default_factory=list)


def read_new_nodes(
    path: Path,
    directory: GraphDirectory,
    features: Path | None,
    id_column: str | None = None,
    preparation: Preparation | None = None,
    **options: Any,
) -> NewNodes:
    """Read an edge list of new nodes and the table of their features; each edge has a new node at one end at least.

    `preparation`: that of the model; without one numbers are taken as they are imported.
    """
    if directory.manifest.structural != (features is None):
        raise UsageError(
            f"{directory.path} has features from its degrees: leave --features out."
            if features is not None
            else f"{directory.path} has features: give those of the new nodes with --features."
        )
    (table,) = open_edges(path, **options)
    edges = read_edges(table, options.get("weight_column"), options.get("time_column"))
    known = directory.find(edges.node_ids)
    x, names, ours = None, None, edges.node_ids.filter(pa.array(known < 0))
    notes = list(edges.notes)
    if features is not None:
        as_imported = TableOptions(scale=False)
        drop_bad = bool(options.get("drop_bad"))
        found = read_features(
            features, id_column=id_column, drop_bad=drop_bad, options=as_imported, preparation=preparation
        )
        if found.ids is None:
            raise UsageError(f"{features}: features of new nodes need their ids: give a table with an id column.")
        x, names, ours = found.x.to_dense().float(), found.feature_names, found.ids
        notes += found.notes
        _check(path, directory, features, edges.node_ids.filter(pa.array(known < 0)), ours)
    if not len(ours):
        raise DataError(f"{path}: all of its nodes are in {directory.path} already.")
    theirs, mine = same_type(ours, edges.node_ids)
    place = positions(mine, theirs)
    number = np.where(place >= 0, place, len(ours) + known)
    edge_index = number[edges.edge_index]
    old = (edge_index >= len(ours)).all(axis=0)
    if old.any():
        where = edges.where(int(old.argmax()))
        raise DataError(f"{where}: both ends are in {directory.path} already; import it again with this edge.")
    weight = None if edges.weight is None else torch.from_numpy(np.array(edges.weight))
    return NewNodes(user_ids(ours), x, names, torch.from_numpy(edge_index), weight, notes)


def _check(path: Path, directory: GraphDirectory, features: Path, unknown: pa.Array, ours: pa.Array) -> None:
    """Raise if a row of the features is a node of the graph, or if an end of an edge is nowhere."""
    twice = directory.find(ours)
    if (twice >= 0).any():
        name = ours[int((twice >= 0).argmax())].as_py()
        raise DataError(f"{features}: node {name!r} is in {directory.path} already.")
    if len(unknown):
        left, right = same_type(unknown, ours)
        nowhere = pc.invert(pc.is_in(left, value_set=right)).to_numpy(zero_copy_only=False)
        if nowhere.any():
            name = unknown[int(nowhere.argmax())].as_py()
            raise DataError(f"{path}: node {name!r} is neither in {directory.path} nor in {features}.")
