"""`topoter embed`: embeddings by a saved model, one row per node, or per graph of a set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.output import DataRoot, Device, Json, Quiet, TrustEncoder, note, out, print_json, show_log
from topoter.cli.reading import Reading, is_graph_set, load_graph, load_graph_set, reads_files
from topoter.errors import UsageError


@reads_files
def run(
    model: Annotated[Path, typer.Argument(help="A model that `topoter fit` wrote.")],
    graph: Annotated[str, typer.Argument(help="A dataset name or a file, also one the model has not seen.")],
    *,
    out_path: Annotated[
        Path, typer.Option("--out", "-o", help="Where the embeddings go: .parquet, .csv, .npy, .pt or .tsv.")
    ] = Path("embeddings.parquet"),
    reading: Reading,
    layout: Annotated[str, typer.Option(help="In parquet: one `list` column, or `columns` z0, z1, ...")] = "list",
    trust_encoder: TrustEncoder = False,
    device: Device = "cpu",
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Embed a graph's nodes, or the graphs of a set, with a saved model."""
    from topoter.estimator import TopoTER
    from topoter.graphs import write_embeddings
    from topoter.graphs.writers import check_destination

    show_log(quiet)
    check_destination(out_path, layout)
    fitted = TopoTER.load(model, device, trust_encoder=trust_encoder)
    many = is_graph_set(graph, data_root)
    if many != (fitted.level == "graph"):
        kinds = ("a set of graphs", "one graph") if many else ("one graph", "a set of graphs")
        raise UsageError(
            f"{graph} is {kinds[0]}, but {model} was fitted on {kinds[1]}: fit a model on {kinds[0]} first."
        )
    if many:
        rows, ids = "graphs", None  # numbered from 0, in the order of the files
        z = fitted.transform(load_graph_set(graph, data_root, quiet, reading=reading))
    else:
        data = load_graph(graph, data_root, quiet, reading=reading, preparation=fitted.preparation_)
        rows, ids = "nodes", data.get("node_ids")
        z = fitted.transform(data)
    write_embeddings(out_path, z, ids, layout=layout)
    if json:
        print_json({"embeddings": str(out_path), rows: z.shape[0], "channels": z.shape[1]})
    else:
        note(f"{z.shape[0]:,} {rows}, {z.shape[1]} channels", quiet)
        out.print(str(out_path), soft_wrap=True)
