"""How a command gets its graph: a user's files if there are any of that name, else a named dataset."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from topoter.cli.graph_options import GraphOptions, ModelOptions, SetOptions
from topoter.cli.output import note
from topoter.errors import DataError, TopoterError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor
    from torch_geometric.data import Data

    from topoter.estimator import TopoTER
    from topoter.graphs import GraphDirectory
    from topoter.graphs.preparation import Preparation

STDIN = "-"


def load_graph(name_or_path: str, options: GraphOptions, seed: int = 0, preparation: Preparation | None = None) -> Data:
    """A user's file if there is one of that name, else a named dataset; `preparation` is a model's, for its table."""
    from topoter import datasets
    from topoter.graphs import check_graph, read_graph
    from topoter.graphs.directory import GraphDirectory, is_graph_directory
    from topoter.graphs.sets import is_set_of_files

    path = Path(name_or_path)
    if is_graph_directory(path):
        options.refuse(f"{path} is imported already: these go with `topoter import`.")
        return in_memory(GraphDirectory.open(path), options.quiet, preparation)
    if path.exists() and is_set_of_files(path):
        raise UsageError(f"{path} is a set of graphs, which fit, embed and evaluate graph take. Give one graph here.")
    if path.is_dir():
        raise DataError(
            f"{path} is a folder, and holds neither an imported graph (manifest.json) nor a set of graphs in the TU "
            "format (a file like NAME_A.txt) or as .graphml files. "
            "Files of edges, one for each time, go with `topoter fit --snapshots`."
        )
    if path.exists() or name_or_path == STDIN:
        with _spooled(name_or_path) as file:
            data, notes = read_graph(file, **options.given(), preparation=preparation)
        options.say(*(text.replace(file, "stdin") if name_or_path == STDIN else text for text in notes))
    else:
        _check_is_name(name_or_path, options.data_root)
        data = datasets.load(name_or_path, data_root=options.data_root, seed=seed)
        options.refuse(f"this goes with a file, not with the dataset {name_or_path!r}.")
    check_graph(data)
    return data


def load_both(options: ModelOptions) -> tuple[TopoTER, Data]:
    """A model of nodes, and the graph with its features prepared as the model knows them."""
    fitted = options.load_model()
    if fitted.level == "graph":
        raise UsageError(f"{options.model} was fitted on a set of graphs: fit a model on one graph first.")
    return fitted, load_graph(options.graph, options, preparation=fitted.preparation_)


@contextmanager
def _spooled(name_or_path: str) -> Iterator[str]:
    """The file to read; what comes in on stdin as a file called stdin: a reader may want to look twice."""
    if name_or_path != STDIN:
        yield name_or_path
        return
    with TemporaryDirectory() as folder:
        path = Path(folder, "stdin")
        path.write_bytes(sys.stdin.buffer.read())
        try:
            yield str(path)
        except TopoterError as error:
            raise type(error)(str(error).replace(str(path), path.name)) from None


def edges_between(path: Path, ids: Any, header: bool | None, drop_bad: bool) -> tuple[np.ndarray, list[str]]:
    """A graph's edges [2, E] between nodes that have embeddings, as numbers of their rows; others are counted."""
    from topoter.graphs import read_graph
    from topoter.graphs.features import STRUCTURAL_NOTE
    from topoter.graphs.ids import arrow_ids, positions, same_type

    data, notes = read_graph(path, header=header, drop_bad=drop_bad)
    theirs, ours = same_type(arrow_ids(data.node_ids), arrow_ids(ids))
    edge_index = positions(theirs, ours)[data.edge_index.numpy()]
    known = (edge_index >= 0).all(axis=0)
    if not known.any():
        raise DataError(
            f"{path}: none of its edges joins two nodes of the embeddings "
            f"(ids {theirs[0].as_py()!r} here, {ours[0].as_py()!r} there)."
        )
    left_out = int((~known).sum())
    if left_out:
        notes.append(f"{path}: {left_out:,} edges to nodes without an embedding are left out.")
    # Only edges are looked at: nothing is to be said of features.
    return edge_index[:, known], [
        re.sub(" with .* features each", "", text) for text in notes if text != STRUCTURAL_NOTE
    ]


def in_memory(directory: GraphDirectory, quiet: bool, preparation: Preparation | None = None) -> Data:
    """An imported graph as a whole, if there is room for it; `preparation` is a model's."""
    from topoter.graphs import as_data
    from topoter.memory import free_memory, show_memory

    need, free = directory.bytes_in_memory, free_memory()
    if need > free:
        raise UsageError(
            f"{directory.path} takes {show_memory(need)} of memory as a whole, and {show_memory(free)} are free. "
            "`topoter fit --memory` and `topoter embed --memory` take it in parts."
        )
    note(f"{directory.describe()} Read into memory: {show_memory(need)}.", quiet)
    return as_data(directory, preparation=preparation)


def load_over_time(name_or_path: str, options: GraphOptions, every: str | None = None) -> tuple[Data, list[Tensor]]:
    """A graph at several times, from a user's files or a named dataset: all of it as one graph, and the edges of each.

    The one graph has a `time` per edge. Nodes have the features of the table that is given, else the number 1.
    """
    import torch
    from torch_geometric.data import Data

    from topoter import datasets
    from topoter.graphs import read_snapshots

    if options.features is not None:
        return _with_features(Path(name_or_path), options, every)
    options.refuse(
        "without --features a graph over time has the number 1 for every node, as in the paper, and no weights.",
        allowed=("time_column", "delimiter", "header", "drop_bad"),
    )
    if Path(name_or_path).exists():
        found, ids = read_snapshots(name_or_path, **options.given(), every=every)
        edges = [edge_index for _, edge_index in found]
        node_ids = list(ids)
    else:
        _check_is_name(name_or_path, options.data_root)
        options.refuse(f"this goes with a file, not with the dataset {name_or_path!r}.")
        if every is not None:
            raise UsageError(f"--every: this goes with a file, not with the dataset {name_or_path!r}.")
        snapshots = datasets.load_snapshots(name_or_path, data_root=options.data_root)
        edges, node_ids = snapshots.edges, snapshots.node_names
    time = torch.repeat_interleave(torch.tensor([edge_index.size(1) for edge_index in edges]))
    data = Data(x=torch.ones(len(node_ids), 1), edge_index=torch.cat(edges, dim=1), time=time, node_ids=node_ids)
    options.say(f"{len(edges)} snapshots of {len(node_ids):,} nodes, {len(edges) - 1} transitions.")
    return data, edges


def _with_features(path: Path, options: GraphOptions, every: str | None) -> tuple[Data, list[Tensor]]:
    """An edge list with a column of times, and a table of its nodes."""
    import torch

    from topoter.graphs import read_graph
    from topoter.graphs.edge_lists import open_edges
    from topoter.graphs.snapshots import by_time, time_column_of

    if not path.is_file():
        raise UsageError(f"--features goes with an edge list that has a time column. {path} is no file.")
    given = options.given()
    written = {name: given[name] for name in ("delimiter", "header", "drop_bad") if name in given}
    (table,) = open_edges(path, time_column=options.time_column, **written)
    given["time_column"] = time_column_of(path, options.time_column, table.names)
    data, notes = read_graph(path, **given)
    options.say(*notes)
    edges = [data.edge_index[:, torch.from_numpy(places)] for _, places in by_time(path, data.time.numpy(), every)]
    options.say(f"{len(edges)} snapshots of {data.num_nodes:,} nodes, {len(edges) - 1} transitions.")
    return data, edges


def is_graph_set(name_or_path: str, data_root: Path | None, sets: SetOptions) -> bool:
    """Whether it stands for many graphs: a dataset or a file of that kind, or a folder of graphs."""
    from topoter.datasets import dataset_kind
    from topoter.datasets.tu import tu_folder
    from topoter.graphs.sets import is_set_of_files

    path = Path(name_or_path)
    if sets.given:
        return True
    if name_or_path == STDIN:
        return False
    if path.exists():
        return (path.is_dir() and tu_folder(path) is not None) or is_set_of_files(path)
    _check_is_name(name_or_path, data_root)
    return dataset_kind(name_or_path, data_root) == "graphs"


def load_graph_set(
    name_or_path: str,
    options: GraphOptions,
    sets: SetOptions,
    preparation: Preparation | None = None,
    label_column: str | None = None,
) -> list[Data]:
    """A user's set of graphs if there is one of that name, else a named dataset; `preparation` is a model's.

    `label_column`: of molecules, the column or property that becomes the `label` of each.
    """
    from topoter.datasets import load_graphs
    from topoter.datasets.tu import read_tu, tu_folder
    from topoter.graphs import read_graphs
    from topoter.graphs.sets import is_set_of_files

    path = Path(name_or_path)
    found = tu_folder(path) if path.is_dir() and not sets.given else None
    if sets.given or (found is None and path.exists() and is_set_of_files(path)):
        given = options.given() | sets.given | ({} if label_column is None else {"label_column": label_column})
        with _spooled(name_or_path) as file:
            graphs, notes = read_graphs(file, **given, preparation=preparation)
        options.say(*(text.replace(file, "stdin") if name_or_path == STDIN else text for text in notes))
        return graphs
    options.refuse(f"this does not go with the set {name_or_path!r}.")
    graphs = read_tu(*found) if found else load_graphs(name_or_path, options.data_root)
    nodes, width = sum(graph.num_nodes for graph in graphs), graphs[0].num_features
    told = f"one-hot node labels, {width} of them" if width > 1 else "none, so the graphs speak alone"
    options.say(f"{name_or_path}: {len(graphs):,} graphs with {nodes:,} nodes. Features of a node: {told}.")
    return graphs


def _check_is_name(name_or_path: str, data_root: Path | None) -> None:
    """Raise if what does not exist is no dataset either; what looks like a file is no dataset with a typing error."""
    from topoter.datasets import dataset_kind
    from topoter.datasets.own import is_import_path

    if any(mark in name_or_path for mark in "/\\.") and not is_import_path(name_or_path):
        raise TopoterError(f"There is no file {name_or_path}.")
    try:
        dataset_kind(name_or_path, data_root)
    except UsageError as error:
        if is_import_path(name_or_path):
            raise
        raise UsageError(f"There is no file {name_or_path} and no dataset of that name. {error}") from None
