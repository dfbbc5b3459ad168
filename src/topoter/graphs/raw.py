"""What every reader produces: edges as numbers into a list of ids, before features are joined to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.errors import BadRowError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RawGraph:
    """Edges between numbered nodes, and how to say where an edge came from."""

    name: str  # the file, or the kind of object, for messages
    node_ids: pa.Array  # [N]
    edge_index: np.ndarray  # [2, E], positions in node_ids
    where: Callable[[int], str]  # edge number -> "edges.csv, line 7"
    weight: np.ndarray | None = None  # [E]
    time: np.ndarray | None = None  # [E]
    x: torch.Tensor | None = None  # [N, C], if the source holds features itself
    feature_names: list[str] | None = None
    # An edge list knows ids but no order of nodes; a matrix or a GraphML file has one, which rows of an
    # array of features can follow.
    has_node_order: bool = True
    notes: list[str] = field(default_factory=list)


def keep_good(
    bad: np.ndarray, message: Callable[[int], str], drop_bad: bool, notes: list[str], dropped: str
) -> np.ndarray:
    """Raise for the first bad row, or, with `drop_bad`, note how many go and return the rows that stay.

    `message` describes the row whose number it gets; `dropped` reads like "edges with a missing id".
    """
    if not bad.any():
        return ~bad
    if not drop_bad:
        raise BadRowError(message(int(bad.argmax())))
    notes.append(f"Dropped {int(bad.sum()):,} {dropped}.")
    return ~bad


def bad_weights(weight: np.ndarray) -> np.ndarray:
    """True where an edge weight is not a finite number >= 0."""
    return ~(np.isfinite(weight) & (weight >= 0))


def bad_weight(where: str, value: object) -> str:
    """One wording for an edge weight that cannot be used."""
    if value is None:
        return f"{where}: the edge has no weight."
    return f"{where}: edge weight {value!r} is not a finite number >= 0."


def with_good_weights(raw: RawGraph, drop_bad: bool, notes: list[str]) -> RawGraph:
    """The graph without edges of bad weight; without `drop_bad`, the first one is an error."""
    if raw.weight is None:
        return raw
    weight = raw.weight
    keep = keep_good(
        bad_weights(weight),
        lambda edge: bad_weight(raw.where(edge), float(weight[edge])),
        drop_bad,
        notes,
        "edges with a bad weight",
    )
    if keep.all():
        return raw
    time = None if raw.time is None else raw.time[keep]
    return replace(raw, edge_index=raw.edge_index[:, keep], weight=weight[keep], time=time)
