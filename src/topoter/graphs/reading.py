"""`read_graph`: any supported file to PyG's `Data`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from topoter.errors import DataError, UsageError
from topoter.graphs.assembly import assemble
from topoter.graphs.checks import check_graph
from topoter.graphs.edge_lists import open_edges, read_edges
from topoter.graphs.features import STRUCTURAL_NOTE, Features, read_features
from topoter.graphs.formats import GRAPH_FORMATS, read_pt
from topoter.graphs.objects import as_data, pyg_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data


def read_graph(
    path: str | os.PathLike[str],
    *,
    features: str | os.PathLike[str] | None = None,
    id_column: str | None = None,
    weight_column: str | None = None,
    time_column: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    drop_bad: bool = False,
) -> tuple[Data, list[str]]:
    """Read a graph from a file; returns it and notes on what was assumed, dropped and counted.

    By extension: `.parquet` edge tables, SciPy `.npz`, `.graphml`, `.gml`, PyG `.pt`; anything else is an
    edge list in text (comma, tab, semicolon or blanks; gzip or not; header or not; # starts a comment).
    Without a header, columns are numbered from 1, and a third column of numbers is the weight.

    `features`: a table with ids (`id_column`, or the first column), or `.npy` / `.npz` with rows in node
    order; None gives structural features. The nodes are in the order of the features if those are given, else
    in ascending order of their ids. Edges are kept as given: neither made symmetric nor deduplicated.
    `delimiter` and `header` (whether the first line names the columns) are those of an edge list in text; None
    finds them out, and a note says what was found. The features' are always found out. `drop_bad` drops bad rows and
    edges, with counts in the notes, instead of stopping at the first.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is a folder, not a file." if path.is_dir() else f"{path}: no such file.")
    if id_column is not None and features is None:
        raise UsageError("The id column is one of the features table: give that too (--features, features= in Python).")
    # Features first: what is wrong with the smaller file is said before the larger one is read.
    table: Features | None = None
    if features is not None:
        table = read_features(Path(features), id_column=id_column, drop_bad=drop_bad)
    suffix = path.suffix.lower()
    if suffix == ".pt" and table is None:
        return _whole_pyg_graph(path)
    if suffix == ".pt":
        graph = read_pt(path)
        with _naming(path):
            raw = pyg_edges(graph, str(path))
        raw.notes.append(f"{path}: only its edges and ids are used, because features are given.")
    elif suffix in GRAPH_FORMATS:
        raw = GRAPH_FORMATS[suffix](path)
    else:
        columns = {"weight_column": weight_column, "time_column": time_column}
        (edges,) = open_edges(path, **columns, delimiter=delimiter, header=header, drop_bad=drop_bad)
        raw = read_edges(edges, **columns, drop_bad=drop_bad)
    data, notes = assemble(raw, table, drop_bad)
    with _naming(path):
        check_graph(data)
    return data, notes


def _whole_pyg_graph(path: Path) -> tuple[Data, list[str]]:
    graph = read_pt(path)
    with _naming(path):
        data = as_data(graph)
    notes = [f"{path}: {data.num_edges:,} edges between {data.num_nodes:,} nodes."]
    if graph.get("x") is None:
        notes.append(STRUCTURAL_NOTE)
    return data, notes


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with the graph in it."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
