"""`topoter cluster`: groups among embeddings, by k-means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from topoter.cli.graph_options import DropBad, Header
from topoter.cli.output import Json, Quiet, Seed, note, out, print_json
from topoter.cli.reading import edges_between

Embeddings = Annotated[Path, typer.Argument(help="Embeddings that `topoter embed` wrote: .parquet, .csv or .npy.")]


def run(
    embeddings: Embeddings,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="One row per node: .csv, .tsv or .parquet.")] = Path(
        "clusters.csv"
    ),
    clusters: Annotated[
        int | None, typer.Option("--clusters", "-k", help="How many (else found: the best modularity of 2 to 20).")
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(help="The graph's file: neighbours have a say, and tell how many clusters there are.")
    ] = None,
    header: Header = None,
    drop_bad: DropBad = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Group nodes by their embeddings (k-means) and say how well apart the groups are (silhouette)."""
    from topoter.graphs import read_embeddings
    from topoter.graphs.node_tables import check_table_destination, write_node_table
    from topoter.report.tables import Table
    from topoter.tasks.clustering import best_clustering

    check_table_destination(out_path)
    ids, z = read_embeddings(embeddings)
    edges = None if graph is None else _adjacency(graph, ids, header, drop_bad, quiet)
    tried = best_clustering(z, None if clusters is None else [clusters], seed=seed, graph=edges)
    chosen, result = next(iter(tried.items()))
    write_node_table(out_path, {"id": ids, "cluster": result.labels, "distance": result.distance})
    modularities = {count: round(tried[count].modularity, 4) for count in sorted(tried)}
    if json:
        content = {
            "table": str(out_path),
            "nodes": len(z),
            "clusters": chosen,
            "silhouette": result.silhouette,
            "modularity": result.modularity,
            "sizes": result.sizes,
            "tried": modularities,
        }
        print_json(content)
        return
    if len(tried) > 1:
        shown = ", ".join(f"{count}: {value:.3f}" for count, value in modularities.items())
        what = "similar nodes" if graph is None else "the graph"
        note(f"Modularity of {what} by number of clusters: {shown}", quiet)
    quality = (
        "" if result.silhouette is None else f", silhouette {result.silhouette:.3f} (near 0 groups touch, 1 is best)"
    )
    out.print(f"{len(z):,} nodes in {chosen} clusters{quality}", soft_wrap=True)
    out.print(Table(["cluster", "nodes"], list(enumerate(result.sizes))))
    out.print(str(out_path), soft_wrap=True)


def _adjacency(path: Path, ids: Any, header: bool | None, drop_bad: bool, quiet: bool) -> Any:
    """The graph between the nodes of the embeddings, sparse and symmetric."""
    import numpy as np
    import scipy.sparse

    edge_index, notes = edges_between(path, ids, header, drop_bad)
    for text in notes:
        note(text, quiet)
    ones = np.ones(edge_index.shape[1], dtype=np.float32)
    matrix = scipy.sparse.coo_matrix((ones, tuple(edge_index)), shape=(len(ids), len(ids))).tocsr()
    matrix = matrix.maximum(matrix.T)
    matrix.setdiag(0)
    matrix.data[:] = matrix.data > 0  # however often an edge stands there
    matrix.eliminate_zeros()
    return matrix
