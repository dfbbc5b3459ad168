"""`read_graph`: any supported file to PyG's `Data`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.errors import DataError, TopoterError, UsageError
from topoter.graphs.archives import check_zip
from topoter.graphs.assembly import RawGraph, assemble
from topoter.graphs.checks import check_graph
from topoter.graphs.directory import GraphDirectory, is_graph_directory
from topoter.graphs.edge_lists import open_edges, read_edges
from topoter.graphs.features import STRUCTURAL_NOTE, read_features
from topoter.graphs.objects import as_data, from_networkx, from_scipy, pyg_edges
from topoter.graphs.preparation import Preparation, TableOptions
from topoter.graphs.problems import existing, explained

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
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    as_category: Sequence[str] = (),
    text: str = "refuse",
    preparation: Preparation | None = None,
) -> tuple[Data, list[str]]:
    """Read a graph from a file; returns it and notes on what was assumed, dropped and counted.

    A directory that `topoter import` made is read into memory. Files by extension: `.parquet` edge tables, SciPy
    `.npz`, `.graphml`, `.gml`, PyG `.pt`; anything else is an edge list in text (comma, tab, semicolon or blanks;
    gzip or not; header or not; # starts a comment).
    Without a header, columns are numbered from 1, and a third column of numbers is the weight.

    `features`: a table with ids (`id_column`, or the first column), or `.npy` / `.npz` with rows in node
    order; None gives structural features. The nodes are in the order of the features if those are given, else
    in ascending order of their ids. Edges are kept as given: neither made symmetric nor deduplicated.
    `columns`, `exclude`, `as_category` and `text` are those of `TableOptions`, for a table of features; `preparation`
    (a model's `preparation_`) is used in place of one that is learned from the table.
    `delimiter` and `header` (whether the first line names the columns) are those of an edge list in text; None
    finds them out, and a note says what was found. The features' are always found out. `drop_bad` drops bad rows and
    edges, with counts in the notes, instead of stopping at the first.
    """
    if is_graph_directory(path):
        if features is not None:
            raise UsageError(
                f"{path} holds its features already: import again with others (topoter import --features)."
            )
        directory = GraphDirectory.open(path)
        return directory.as_data(), [directory.describe()]
    path = existing(Path(path))
    if id_column is not None and features is None:
        raise UsageError("The id column is one of the features table: give that too (--features, features= in Python).")
    # Features first: what is wrong with the smaller file is said before the larger one is read.
    options = TableOptions(columns, tuple(exclude), tuple(as_category), text)
    table = None
    if features is not None:
        table = read_features(
            Path(features), id_column=id_column, drop_bad=drop_bad, options=options, preparation=preparation
        )
    elif options != TableOptions():
        raise UsageError("Columns are those of the features table: give that too (--features, features= in Python).")
    suffix = path.suffix.lower()
    if suffix == ".pt":
        graph = read_pt(path)
        with _naming(path):
            if table is None:
                data = as_data(graph)
                notes = [f"{path}: {data.num_edges:,} edges between {data.num_nodes:,} nodes."]
                return data, notes if graph.get("x") is not None else [*notes, STRUCTURAL_NOTE]
            raw = pyg_edges(graph, str(path))
        raw.notes.append(f"{path}: only its edges and ids are used, because features are given.")
    elif suffix == ".npz":
        raw = _read_npz(path)
    elif suffix in (".graphml", ".gml"):
        raw = _read_networkx(path)
    else:
        named = {"weight_column": weight_column, "time_column": time_column}
        (edges,) = open_edges(path, **named, delimiter=delimiter, header=header, drop_bad=drop_bad)
        raw = read_edges(edges, **named)
    data, notes = assemble(raw, table, drop_bad)
    with _naming(path):
        check_graph(data)
    return data, notes


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with the graph in it."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _read_npz(path: Path) -> RawGraph:
    """A SciPy sparse adjacency matrix, as `scipy.sparse.save_npz` writes it; pickles inside are refused."""
    import scipy.sparse

    problem = f"{path} is not a SciPy sparse matrix (scipy.sparse.save_npz writes one)"
    # Opened here, because NumPy leaves a damaged file open.
    with path.open("rb") as file, explained(problem):
        check_zip(path)
        try:
            matrix = scipy.sparse.load_npz(file)
        except ValueError as error:
            raise ValueError(str(error).replace(f"The file {file}", "it")) from error
    return from_scipy(matrix, str(path))


def _read_networkx(path: Path) -> RawGraph:
    graph, by_id = load_networkx(path)
    raw = from_networkx(graph, str(path))
    if by_id:
        raw.notes.append(f"{path}: nodes are named by their id, because their labels are missing or not unique.")
    return raw


def load_networkx(path: Path) -> tuple[Any, bool]:
    """A GraphML or GML file; the nodes of GML are named by their label, or by their id if labels are no names."""
    try:
        import networkx
    except ImportError:
        raise UsageError('GraphML and GML need NetworkX: pip install "topoter[baselines]".') from None
    kind = "GML" if path.suffix.lower() == ".gml" else "GraphML"
    with explained(f"{path} is not a {kind} file", (Exception,)):  # the parsers raise whatever comes
        if kind == "GraphML":
            _refuse_entities(path)
            return networkx.read_graphml(path), False
        try:
            return networkx.read_gml(path), False
        except networkx.NetworkXError:  # labels are missing or given twice
            return networkx.read_gml(path, label="id"), True


def _refuse_entities(path: Path) -> None:
    """An entity can stand for a text that stands for ten of another, and so on: gigabytes in a few lines."""
    from xml.parsers import expat

    def refuse(*declared: Any) -> None:
        raise DataError(f"{path} is refused: it declares XML entities, which no graph needs.")

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    with path.open("rb") as file:
        parser.ParseFile(file)


def read_pt(path: Path) -> Data:
    """A PyG graph as `torch.save` writes it. No code in the file is run."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    allowed = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, *_numpy_globals()]
    if hasattr(torch.serialization, "safe_globals"):
        # Leaving the context forgets all it was given: what PyG or the user had allowed before must not be among it.
        known = torch.serialization.get_safe_globals()
        safe: Any = torch.serialization.safe_globals([item for item in allowed if item not in known])
    else:  # torch 2.4 knows only the list that holds for the whole process
        torch.serialization.add_safe_globals(allowed)
        safe = nullcontext()
    try:
        check_zip(path)
        with safe:
            data = torch.load(path, map_location="cpu", weights_only=True)
    except TopoterError:
        raise
    except Exception as error:  # a hostile or damaged file fails in many ways, all of them its own fault
        reason = str(error).partition("WeightsUnpickler error: ")[2].partition("\n")[0].partition("Please use")[0]
        reason = reason.strip() or "it is damaged, or no file of torch.save"
        raise DataError(f"{path} cannot be loaded safely as a PyG graph: {reason}") from None
    if isinstance(data, dict) and "edge_index" in data:  # what data.to_dict() gives
        data = Data.from_dict(data)
    if not isinstance(data, Data):
        raise DataError(f"{path} holds a {type(data).__name__}, not one PyG graph (torch_geometric.data.Data).")
    return data


def _numpy_globals() -> list[Any]:
    """What a pickled NumPy array of numbers is made of: ids are often kept in one."""
    array: Any = np.arange(1)
    kinds = ("int64", "int32", "float64", "float32", "bool")
    return [array.__reduce__()[0], np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in kinds)]
