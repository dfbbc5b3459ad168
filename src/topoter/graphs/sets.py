"""Sets of graphs from a user's files: edges with a graph column, a folder of GraphML, molecules; a `Data` for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.errors import DataError, UsageError
from topoter.graphs.features import STRUCTURAL_NAMES, STRUCTURAL_NOTE, structural_features
from topoter.graphs.ids import NodeIds
from topoter.graphs.molecules import is_sdf, read_sdf, read_smiles
from topoter.graphs.objects import networkx_edges, node_attributes
from topoter.graphs.preparation import Preparation, PreparedTable
from topoter.graphs.problems import existing
from topoter.graphs.raw_sets import RawSet
from topoter.graphs.reading import load_networkx
from topoter.graphs.set_edges import read_set_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data

FILES = (".graphml", ".gml")  # of a folder, one for each graph


def is_set_of_files(path: Path) -> bool:
    """Whether it is a folder of GraphML or GML files, or a file of molecules."""
    return any(file.suffix.lower() in FILES for file in path.iterdir()) if path.is_dir() else is_sdf(path)


def read_graphs(
    path: str | os.PathLike[str],
    *,
    graph_column: str | None = None,
    smiles_column: str | None = None,
    preparation: Preparation | None = None,
    **options: Any,
) -> tuple[list[Data], list[str]]:
    """Read many graphs; returns a `Data` for each, with its `graph_id`, and notes on what was found.

    `graph_column`: of an edge list, the column that says to which graph an edge belongs; ids of nodes may recur in
    other graphs. A table of `features` has that column too, or else a row for each id, whatever its graph. The other
    options are those of `read_graph`.
    `smiles_column`: of a table with a row for each molecule. The ids are those in `id_column`, or in the first column.
    Else `path` is an `.sdf` file (ids by title, or by the property `id_column`), or a folder of `.graphml` or `.gml`
    files, named by file. Of molecules, `label_column` names the column or the property that becomes `label`.
    `preparation` (a model's `preparation_`) makes features of tables and attributes in place of one that is learned.
    """
    path = Path(path)
    if graph_column is not None and smiles_column is not None:
        raise UsageError("Give a column of graph ids (--graph-column) or of SMILES (--smiles-column), not both.")
    column = graph_column or smiles_column
    kind = "edges with a graph column" if graph_column else "a table of SMILES" if smiles_column else "an SDF file"
    if column is None and path.is_dir():
        kind = "a folder of GraphML or GML"
    else:
        existing(path)
    read, known = _KINDS[kind]
    wrong = next((name for name in options if name not in known), None)
    if wrong is not None:
        raise UsageError(f"--{wrong.replace('_', '-')} does not go with {kind}, {path}.")
    raw = read(path, *([column] if column else []), preparation=preparation, **options)
    return as_list(raw), [*raw.notes, described(raw)]


def as_list(raw: RawSet) -> list[Data]:
    """The graphs one by one; where nodes have no features, they get degree and constant."""
    from torch_geometric.data import Data

    if (raw.sizes == 0).any():
        empty = str(raw.ids[int((raw.sizes == 0).argmax())])
        raise DataError(f"{raw.name}: graph {empty!r} has no nodes.")
    x, names = raw.x, raw.feature_names
    if x is None:
        x, names = structural_features(raw.edge_index, int(raw.sizes.sum())), list(STRUCTURAL_NAMES)
    starts = np.cumsum(raw.sizes) - raw.sizes
    graph_of_edge = np.repeat(np.arange(len(raw.sizes)), raw.sizes)[raw.edge_index[0]]
    order = np.argsort(graph_of_edge, kind="stable")
    count = np.bincount(graph_of_edge, minlength=len(raw.sizes)).tolist()
    edges = torch.from_numpy(raw.edge_index[:, order] - starts[graph_of_edge[order]]).split(count, dim=1)
    weights = None if raw.weight is None else torch.from_numpy(raw.weight[order]).split(count)
    graphs = []
    for number, rows in enumerate(x.to_dense().split(raw.sizes.tolist())):
        first, size = int(starts[number]), len(rows)
        graph = Data(x=rows.clone(), edge_index=edges[number].contiguous(), num_nodes=size, feature_names=names)
        graph.graph_id = raw.ids[number]
        graph.node_ids = np.arange(size) if raw.node_ids is None else raw.node_ids[first : first + size]
        if weights is not None:
            graph.edge_weight = weights[number].clone()
        if raw.labels is not None:
            graph.label = raw.labels[number]
        if raw.table is not None:
            graph.table = PreparedTable(raw.table.arrow.slice(first, size), raw.table.preparation)
        graphs.append(graph)
    return graphs


def graph_ids(graphs: Sequence[Data]) -> list[Any] | None:
    """What the graphs of a set are called; None where they are numbered."""
    ids = [graph.get("graph_id") for graph in graphs]
    return None if None in ids else ids


def described(raw: RawSet) -> str:
    """How many graphs there are, and which features their nodes have."""
    nodes, edges = int(raw.sizes.sum()), raw.edge_index.shape[1]
    size = f"{raw.name}: {len(raw.sizes):,} graphs with {nodes:,} nodes and {edges:,} edges"
    if raw.x is None:
        return f"{size}. {STRUCTURAL_NOTE}"
    names = raw.feature_names or []
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20:,} more" if len(names) > 20 else "")
    return f"{size}. Features of a node, {len(names):,}: {shown}."


def networkx_set(graphs: Sequence[Any], name: str, ids: NodeIds, preparation: Preparation | None = None) -> RawSet:
    """NetworkX graphs; attributes of nodes become features by one preparation for all of them."""
    read = [networkx_edges(graph, f"{name}, graph {number!r}") for number, graph in zip(ids, graphs)]
    sizes = np.array([len(nodes) for nodes, _, _ in read])
    starts = np.cumsum(sizes) - sizes
    weight = None
    if any(known is not None for _, _, known in read):
        weight = np.concatenate([np.ones(e.shape[1], np.float32) if known is None else known for _, e, known in read])
    features = node_attributes([values for graph in graphs for _, values in graph.nodes(data=True)], name, preparation)
    raw = RawSet(name, ids, sizes, np.concatenate([e + start for (_, e, _), start in zip(read, starts)], axis=1))
    raw.weight, raw.node_ids = weight, [node for nodes, _, _ in read for node in nodes]
    return raw if features is None else raw.with_features(features)


def _read_folder(path: Path, preparation: Preparation | None) -> RawSet:
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in FILES)
    if not files:
        raise DataError(f"{path} is a folder without .graphml or .gml files.")
    stems = [file.stem for file in files]
    ids = stems if len(set(stems)) == len(stems) else [file.name for file in files]
    return networkx_set([load_networkx(file)[0] for file in files], str(path), ids, preparation)


_FEATURES = ("features", "id_column", "columns", "exclude", "as_category", "text")
_KINDS: dict[str, tuple[Callable[..., RawSet], tuple[str, ...]]] = {  # how each is read, and with which options
    "a folder of GraphML or GML": (_read_folder, ()),
    "edges with a graph column": (read_set_edges, (*_FEATURES, "weight_column", "delimiter", "header", "drop_bad")),
    "a table of SMILES": (read_smiles, ("id_column", "drop_bad", "label_column")),
    "an SDF file": (read_sdf, ("id_column", "drop_bad", "label_column")),
}
