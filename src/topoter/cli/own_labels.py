"""What commands on one's own graph and labels share: their options, and how the files are read and joined."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topoter.cli.graph_options import GraphOptions, SetOptions
from topoter.cli.output import out, print_json
from topoter.cli.reading import is_graph_set, load_graph, load_graph_set
from topoter.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data

    from topoter.experiments.experiment import Progress
    from topoter.tasks.own_labels import Labels

LabelsFile = Annotated[
    Path | None,
    typer.Option(help="Of your own graph: labels of some nodes, or of graphs; ids in the table's first column."),
]
LabelColumn = Annotated[
    str | None, typer.Option(help="The column of labels, if the table has several; of molecules also a property.")
]


def load_labelled(
    graph: str, labels: Path, column: str | None, options: GraphOptions, seed: int = 0
) -> tuple[Data, Labels]:
    """A graph, and the labels of its nodes; what was noticed is said."""
    from topoter.tasks.own_labels import read_labels

    data = load_graph(graph, options, seed)
    found = read_labels(labels, data.node_ids, column, options.drop_bad)
    options.say(*found.notes)
    names = data.get("feature_names") or []
    given_away = [name for name in names if name.partition("=")[0] == found.column]
    if given_away:
        raise DataError(
            f"The features hold the labels themselves ({given_away[0]!r}): leave them out, --exclude {found.column}."
        )
    return data, found


def load_labelled_graphs(
    graph: str, labels: Path | None, column: str | None, options: GraphOptions, sets: SetOptions
) -> list[Data]:
    """The labelled graphs of a set: by a table of graph ids, by a column or property of molecules, or by TU files."""
    import numpy as np
    import torch

    from topoter.graphs.sets import graph_ids
    from topoter.tasks.own_labels import as_labels, read_labels

    graphs = load_graph_set(graph, options, sets, label_column=column if labels is None else None)
    if labels is not None:
        ids = graph_ids(graphs)
        found = read_labels(
            labels, np.arange(len(graphs)) if ids is None else ids, column, options.drop_bad, of="graphs"
        )
    elif all(data.get("y") is not None for data in graphs):
        return graphs
    elif column is None:
        raise UsageError(
            f"Of which classes are the graphs of {graph}? Give --labels FILE, a table of their ids and labels, or of "
            "molecules the --label-column."
        )
    else:
        found = as_labels([data.label for data in graphs], graph, of="graphs")
    options.say(*found.notes)
    for number in found.known.tolist():
        graphs[number].y = torch.tensor([int(found.y[number])])
    return [graphs[number] for number in found.known.tolist()]


def own_parameters(recipe: str | None, epochs: int | None) -> dict[str, Any]:
    """What is put over the default recipe: a file that `topoter search` printed, and the number of epochs."""
    from topoter.experiments.recipes import read_recipe

    if recipe is not None and not recipe.endswith(".toml"):
        raise UsageError(
            f"Of your own graph a --recipe is a .toml that `topoter search` printed. Got {recipe!r} instead."
        )
    parameters = {} if recipe is None else read_recipe(Path(recipe))
    return parameters if epochs is None else {**parameters, "epochs": epochs}


def aligned(path: Path, node_ids: Any) -> np.ndarray:
    """A user's embeddings in the order of the nodes."""
    from topoter.graphs import read_embeddings
    from topoter.graphs.ids import rows_of_nodes

    ids, z = read_embeddings(path)
    try:
        return z[rows_of_nodes(node_ids, ids)]
    except DataError as error:
        message = str(error).replace("is not in the graph, whose", "of the graph is not there;")
        raise DataError(f"{path}: {message}") from None


def evaluate_own(
    task: str,
    graph: str,
    labels: Path | None,
    column: str | None,
    embeddings: Sequence[Path],
    methods: Sequence[str],
    seeds: int,
    parameters: Mapping[str, Any],
    options: GraphOptions,
    sets: SetOptions,
    page: Path | None,
) -> None:
    """`topoter evaluate TASK --graph ...`."""
    from topoter.experiments.own_graph import OwnData, evaluate, rows_for, verdict
    from topoter.graphs.atomic import check_writable
    from topoter.report.own_graph import own_json, own_table, write_own_page
    from topoter.report.tables import many

    rows = rows_for(task, methods)
    if page is not None:
        check_writable(page)
    if task == "node" and labels is None:
        raise UsageError("The task node needs --labels FILE: a table of ids and classes.")
    if task not in ("node", "graph") and labels is not None:
        raise UsageError(f"The task {task} takes no --labels: they go with the tasks node and graph.")
    if embeddings and task != "node":
        raise UsageError("--embeddings goes with the task node.")
    if is_graph_set(graph, options.data_root, sets) != (task == "graph"):
        a_set = "a set of graphs: molecules (--smiles-column), edges with a --graph-column, or a folder of graphs"
        raise UsageError(f"The task {task} needs {a_set if task == 'graph' else f'one graph, and {graph} is a set'}.")
    notes: list[str] = []
    if task == "node":
        assert labels is not None
        data, found = load_labelled(graph, labels, column, options)
        own = OwnData(task, data, found, {path.stem: aligned(path, data.node_ids) for path in embeddings})
        notes = [f"{graph}: {data.num_nodes:,} nodes with {data.num_features:,} features.", *found.notes]
    elif task == "graph":
        graphs = load_labelled_graphs(graph, labels, column, options, sets)
        own = OwnData(task, graphs)
        nodes, classes = sum(each.num_nodes for each in graphs), len({int(each.y) for each in graphs})
        notes = [f"{graph}: {len(graphs):,} labelled graphs of {classes} classes, {nodes:,} nodes."]
    else:
        data = load_graph(graph, options)
        own = OwnData(task, data)
        notes = [f"{graph}: {data.num_edges:,} edges between {data.num_nodes:,} nodes, {data.num_features:,} features."]

    def on_run(method: str, seed: int) -> Progress | None:
        if seed == 0:
            options.say(f"{method}, {many(seeds, 'split')} ...")
        return None

    start = time.perf_counter()
    scored = evaluate(own, rows, seeds, on_run, parameters)
    said = verdict(scored)
    table = own_table(scored, f"{graph}, {many(seeds, 'split')}")
    if page is not None:
        command = shlex.join(["topoter", *sys.argv[1:]])
        name = Path(graph).name
        write_own_page(page, table, said, task=task, graph=name, seeds=seeds, notes=notes, command=command)
    if options.json:
        print_json(own_json(task, graph, scored, said, time.perf_counter() - start))
        return
    out.print(table)
    for text in said:
        out.print(text, soft_wrap=True)
    if page is not None:
        out.print(str(page), soft_wrap=True)
