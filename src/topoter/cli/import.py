"""`topoter import`: tables of any size to a graph directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.graph_options import DropBad, Header
from topoter.cli.output import Json, Memory, Quiet, note, out, print_json, share_bar, show_log


def run(
    edges: Annotated[list[str], typer.Argument(help="Edges: csv, tsv, parquet; one file, many, or patterns.")],
    *,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="The graph directory to make.")] = Path("graph.topo"),
    features: Annotated[
        list[str] | None, typer.Option(help="Node features: csv, tsv, parquet (with ids), npy; repeat it for more.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="The id column of the features (else the first).")] = None,
    weight_column: Annotated[str | None, typer.Option(help="The edges' column of weights.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="The edges' delimiter (else detected).")] = None,
    header: Header = None,
    drop_bad: DropBad = False,
    dtype: Annotated[
        str, typer.Option(help="How features are stored: float32, or float16 in half the space.")
    ] = "float32",
    memory: Memory = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Make a graph directory of tables of edges and features that may be larger than memory."""
    from topoter.graphs.directory import GraphDirectory
    from topoter.graphs.importing import import_graph
    from topoter.memory import parse_memory

    show_log(quiet)
    limit = None if memory is None else parse_memory(memory)
    with share_bar("import", quiet) as show:
        manifest, notes = import_graph(
            edges,
            out_path,
            features=features or (),
            id_column=id_column,
            weight_column=weight_column,
            delimiter=delimiter,
            header=header,
            drop_bad=drop_bad,
            dtype=dtype,
            memory=limit,
            progress=show,
        )
    for text in notes:
        note(text, quiet)
    found = GraphDirectory(out_path, manifest)
    if json:
        cleaned = manifest.cleaned
        print_json(
            {
                "graph": str(out_path),
                "nodes": found.num_nodes,
                "edges": found.num_edges,
                "features": found.num_features,
                "self_loops": cleaned.self_loops,
                "duplicates": cleaned.duplicates,
                "one_way": cleaned.one_way,
                "bad_rows": cleaned.bad_rows,
                "bytes": sum(file.bytes for file in manifest.files.values()),
            }
        )
        return
    note(found.describe(), quiet)
    note(f"Edges: {manifest.cleaned}.", quiet or not str(manifest.cleaned))
    out.print(str(out_path), soft_wrap=True)
