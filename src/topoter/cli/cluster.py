"""`topoter cluster`: groups among embeddings, by k-means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.output import Json, Quiet, Seed, note, out, print_json

Embeddings = Annotated[Path, typer.Argument(help="Embeddings that `topoter embed` wrote: .parquet, .csv or .npy.")]


def run(
    embeddings: Embeddings,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="One row per node: .csv, .tsv or .parquet.")] = Path(
        "clusters.csv"
    ),
    clusters: Annotated[
        int | None, typer.Option("--clusters", "-k", help="How many (else the best silhouette of 2 to 12).")
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Group nodes by their embeddings (k-means) and say how well apart the groups are (silhouette)."""
    from topoter.graphs import read_embeddings
    from topoter.graphs.node_tables import check_table_destination, write_node_table
    from topoter.report.tables import Table
    from topoter.tasks.clustering import best_clustering, cluster

    check_table_destination(out_path)
    ids, z = read_embeddings(embeddings)
    tried = {clusters: cluster(z, clusters, seed=seed)} if clusters is not None else best_clustering(z, seed=seed)
    chosen, result = next(iter(tried.items()))
    write_node_table(out_path, {"id": ids, "cluster": result.labels, "distance": result.distance})
    silhouettes = {count: tried[count].silhouette for count in sorted(tried)}
    if json:
        content = {
            "table": str(out_path),
            "nodes": len(z),
            "clusters": chosen,
            "silhouette": result.silhouette,
            "sizes": result.sizes,
            "tried": silhouettes,
        }
        print_json(content)
        return
    if len(tried) > 1:
        shown = ", ".join(f"{count}: {value:.3f}" for count, value in silhouettes.items() if value is not None)
        note(f"Silhouette by number of clusters: {shown}", quiet)
    quality = (
        "" if result.silhouette is None else f", silhouette {result.silhouette:.3f} (near 0 groups touch, 1 is best)"
    )
    out.print(f"{len(z):,} nodes in {chosen} clusters{quality}", soft_wrap=True)
    out.print(Table(["cluster", "nodes"], list(enumerate(result.sizes))).rich())
    out.print(str(out_path), soft_wrap=True)
