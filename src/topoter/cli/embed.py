"""`topoter embed`: embeddings of a graph by a saved model, one row per node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.fit import Delimiter, DropBad, Features, IdColumn, TimeColumn, WeightColumn
from topoter.cli.output import DataRoot, Device, Json, Quiet, load_graph, note, out, print_json, show_log


def run(
    model: Annotated[Path, typer.Argument(help="A model that `topoter fit` wrote.")],
    graph: Annotated[str, typer.Argument(help="A dataset name or a file, also one the model has not seen.")],
    out_path: Annotated[
        Path, typer.Option("--out", "-o", help="Where the embeddings go: .parquet, .csv, .npy, .pt or .tsv.")
    ] = Path("embeddings.parquet"),
    features: Features = None,
    layout: Annotated[str, typer.Option(help="In parquet: one `list` column, or `columns` z0, z1, ...")] = "list",
    id_column: IdColumn = None,
    weight_column: WeightColumn = None,
    time_column: TimeColumn = None,
    delimiter: Delimiter = None,
    drop_bad: DropBad = False,
    device: Device = "cpu",
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Embed a graph's nodes with a saved model."""
    from topoter.estimator import TopoTER
    from topoter.graphs import write_embeddings

    show_log(quiet)
    fitted = TopoTER.load(model, device=device)
    data = load_graph(
        graph,
        data_root,
        quiet,
        features=features,
        id_column=id_column,
        weight_column=weight_column,
        time_column=time_column,
        delimiter=delimiter,
        drop_bad=drop_bad,
    )
    z = fitted.transform(data)
    write_embeddings(out_path, z, data.get("node_ids"), layout=layout)
    if json:
        print_json({"embeddings": str(out_path), "nodes": z.shape[0], "channels": z.shape[1]})
    else:
        note(f"{z.shape[0]:,} nodes, {z.shape[1]} channels", quiet)
        out.print(str(out_path), soft_wrap=True)
