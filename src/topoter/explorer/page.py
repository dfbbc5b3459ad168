"""What the explorer's page holds: the map, the columns to colour by, and the neighbours of every node."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from topoter.errors import UsageError
from topoter.explorer.columns import column_data
from topoter.report.maps import to_grid
from topoter.report.page import Page, Section, asset, part

HOME = "topoter.explorer"
GRID = 65_535  # coordinates become whole numbers up to this: fine enough to zoom in, and short as text
MOST_LISTED = 50  # graph neighbours of a node that the page lists; their number is always told


@dataclass(frozen=True)
class GraphNeighbors:
    """Who is connected to whom: the neighbours of node i are `indices[indptr[i]:indptr[i + 1]]`."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int64]

    @classmethod
    def from_edges(cls, edge_index: npt.NDArray[np.int64], num_nodes: int) -> GraphNeighbors:
        """From edges [2, E], taken as undirected; repeated ones and self-loops are left out."""
        import scipy.sparse

        source, target = edge_index[:, edge_index[0] != edge_index[1]]
        ends = np.concatenate([source, target]), np.concatenate([target, source])
        matrix = scipy.sparse.csr_matrix((np.ones(len(ends[0]), dtype=bool), ends), shape=(num_nodes, num_nodes))
        matrix.sum_duplicates()
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))


def write_explorer(
    path: str | os.PathLike[str],
    *,
    title: str,
    ids: Sequence[object] | npt.NDArray[Any],
    points: npt.NDArray[np.float64],
    nearest: tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]],
    columns: Mapping[str, Sequence[Any]] | None = None,
    graph: GraphNeighbors | None = None,
    map_name: str = "",
    notes: Sequence[str] = (),
) -> None:
    """Write the page: a map to zoom, search and colour, and for a clicked node whom it resembles and whom it knows.

    Args:
        title: the heading.
        ids: the nodes' names.
        points: their places [N, 2].
        nearest: the nodes with the most similar embeddings, numbers and cosines, each [N, k].
        columns: name -> one value per node, to colour by; None is a missing one.
        graph: the nodes' neighbours in the graph, if it is at hand.
        map_name: how the places were found.
        notes: what a reader should know, above the map.
    """
    count = len(ids)
    if points.shape != (count, 2):
        raise UsageError(f"The map must be [{count}, 2]. Got the shape {list(points.shape)}.")
    columns = columns or {}
    similar, cosine = nearest
    data: dict[str, Any] = {
        "ids": [str(value) for value in ids],
        "xy": to_grid(points, GRID).ravel().tolist(),
        "columns": [column_data(name, values) for name, values in columns.items()],
        "similar": similar.ravel().tolist(),
        # Thousandths: "0.987" without the "0." is shorter by half, twenty thousand times ten.
        "cosine": np.rint(cosine.ravel() * 1000).astype(int).tolist(),
        "perNode": int(similar.shape[1]),
        "graph": None if graph is None else _lists(graph),
    }
    about = "Each dot is a node; nodes with similar embeddings lie near each other."
    shown = part("explorer", HOME, data=data, map_name=map_name)
    Page(
        title,
        f"{count:,} nodes",
        footer="This page is one file and loads nothing.",
        sections=[Section("The map", about, [*(part("note", text=text) for text in notes), shown])],
        styles=[asset("explorer.css", HOME)],
        scripts=[asset("explorer.js", HOME)],
    ).write(path)


def _lists(graph: GraphNeighbors) -> dict[str, list[int]]:
    """Degrees, and at most so many neighbours of each node."""
    degree = np.diff(graph.indptr)
    rank = np.arange(len(graph.indices)) - np.repeat(graph.indptr[:-1], degree)
    return {"degree": degree.tolist(), "neighbors": graph.indices[rank < MOST_LISTED].tolist(), "most": [MOST_LISTED]}
