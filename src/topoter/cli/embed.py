"""`topoter embed`: embeddings by a saved model, one row per node, or per graph of a set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoter.cli.graph_options import ModelOptions, SetOptions, takes_options
from topoter.cli.output import Memory, out, print_json, share_bar, show_log
from topoter.cli.reading import in_memory, is_graph_set, load_graph, load_graph_set
from topoter.errors import UsageError

if TYPE_CHECKING:
    from topoter.estimator import TopoTER
    from topoter.graphs import GraphDirectory


@takes_options
def run(
    *,
    options: ModelOptions,
    sets: SetOptions,
    out_path: Annotated[
        Path, typer.Option("--out", "-o", help="Where the embeddings go: .parquet, .csv, .npy, .pt or .tsv.")
    ] = Path("embeddings.parquet"),
    within: Annotated[
        Path | None, typer.Option(help="GRAPH holds new nodes of this imported graph: embed only those.")
    ] = None,
    memory: Memory = None,
    layout: Annotated[str, typer.Option(help="In parquet: one `list` column, or `columns` z0, z1, ...")] = "list",
) -> None:
    """Embed a graph's nodes, or the graphs of a set, with a saved model."""
    from topoter.cli.sizing import opened
    from topoter.graphs import write_embeddings
    from topoter.graphs.sets import graph_ids
    from topoter.graphs.writers import check_destination
    from topoter.training.distributed import process_group

    with process_group(options.device) as group:
        options = replace(options, quiet=options.quiet or not group.writes)
        graph = options.graph
        show_log(options.quiet)
        if not out_path.is_dir():  # a folder of parts is replaced by another
            check_destination(out_path, layout)
        fitted = options.load_model()
        many = is_graph_set(graph, options.data_root, sets)
        if within is not None:
            check_destination(out_path, layout)
            _new_nodes(fitted, within, out_path, layout, options)
            return
        directory = None if many or fitted.level == "graph" else opened(graph)
        if many != (fitted.level == "graph"):
            kinds = ("a set of graphs", "one graph") if many else ("one graph", "a set of graphs")
            raise UsageError(
                f"{graph} is {kinds[0]}, but {options.model} was fitted on {kinds[1]}: fit a model on {kinds[0]} first."
            )
        if group.size > 1 and directory is None:
            raise UsageError("Several processes share the blocks of an imported graph: give one (topoter import).")
        if directory is not None:
            options.refuse(f"{graph} is imported already: these go with `topoter import`.")
        if directory is not None and _goes_in_blocks(fitted, directory, memory, options, group.size > 1):
            shape = _in_blocks(fitted, directory, out_path, memory, layout, options.quiet)
            if group.writes:
                _tell(out_path, "nodes", shape, options)
            return
        check_destination(out_path, layout)
        if many:
            graphs = load_graph_set(graph, options, sets, preparation=fitted.preparation_)
            rows, ids = "graphs", graph_ids(graphs)
            z = fitted.transform(graphs)
        else:
            if directory is None:
                data = load_graph(graph, options, preparation=fitted.preparation_)
            else:
                data = in_memory(directory, True, fitted.preparation_)  # it was told already
            rows, ids = "nodes", data.get("node_ids")
            z = fitted.transform(data)
        write_embeddings(out_path, z, ids, layout=layout)
        _tell(out_path, rows, z.shape, options)


def _new_nodes(model: TopoTER, within: Path, out_path: Path, layout: str, options: ModelOptions) -> None:
    from topoter.graphs import GraphDirectory, write_embeddings
    from topoter.graphs.new_nodes import read_new_nodes
    from topoter.new_node_embedding import embed_new_nodes

    if model.level == "graph":
        raise UsageError("--within goes with a model that was fitted on one graph.")
    given = options.given()
    directory = GraphDirectory.open(within, verify=False)  # what is read of it is little: no checksum of the whole
    features, id_column = given.pop("features", None), given.pop("id_column", None)
    new = read_new_nodes(Path(options.graph), directory, features, id_column, model.preparation_, **given)
    z, read = embed_new_nodes(model, directory, new)
    needed = f"{len(z):,} new nodes; {read:,} of the {directory.num_nodes:,} nodes of {within} were needed."
    options.say(*new.notes, needed)
    write_embeddings(out_path, z, new.ids, layout=layout)
    _tell(out_path, "nodes", z.shape, options)


def _goes_in_blocks(
    model: TopoTER, directory: GraphDirectory, memory: str | None, options: ModelOptions, shared: bool
) -> bool:
    """Whether embedding all at once takes more memory than it may, or several processes share it."""
    from topoter.estimate import embed_memory, size_of
    from topoter.memory import free_memory, parse_memory, show_memory

    need = embed_memory(size_of(directory, model))
    limit = free_memory() if memory is None else parse_memory(memory)
    blocks = need > limit or shared
    how = "block by block" if blocks else "all at once"
    options.say(f"{directory.describe()} Embedded {how}: all at once takes about {show_memory(need)}.")
    return blocks


def _in_blocks(
    model: TopoTER, directory: GraphDirectory, out_path: Path, memory: str | None, layout: str, quiet: bool
) -> tuple[int, int]:
    from topoter.block_embedding import embed_in_blocks
    from topoter.estimate import PROCESS
    from topoter.memory import free_memory, parse_memory

    whole = free_memory() // 2 if memory is None else parse_memory(memory)
    with share_bar("embedding", quiet) as show:
        return embed_in_blocks(model, directory, out_path, max(whole - int(PROCESS), whole // 4), layout, show)


def _tell(path: Path, rows: str, shape: tuple[int, ...], options: ModelOptions) -> None:
    if options.json:
        print_json({"embeddings": str(path), rows: shape[0], "channels": shape[1]})
        return
    options.say(f"{shape[0]:,} {rows}, {shape[1]} channels")
    out.print(str(path), soft_wrap=True)
