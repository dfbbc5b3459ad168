"""`topoter explore`: a page to walk through embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from topoter.cli.cluster import Embeddings
from topoter.cli.graph_options import DropBad, Header
from topoter.cli.output import Json, Quiet, Seed, note, out, print_json
from topoter.cli.reading import edges_between
from topoter.errors import DataError, UsageError

if TYPE_CHECKING:
    from topoter.explorer import GraphNeighbors

MOST_NODES = 100_000
MAP_NAMES = {
    "tsne": "Places by t-SNE; distances between far groups mean little",
    "pca": "Places by the first two principal components",
}


def run(
    embeddings: Embeddings,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Columns to colour by: a table with ids in its first column, or a single column, row by row."
        ),
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="The graph's file, to show a node's neighbours in it.")] = None,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("explore.html"),
    map_: Annotated[str, typer.Option("--map", help="tsne, or pca: the first two principal components.")] = "tsne",
    count: Annotated[int, typer.Option("--neighbors", "-k", help="Similar nodes listed for each.")] = 10,
    id_column: Annotated[str | None, typer.Option(help="The id column of the labels (else the first).")] = None,
    header: Header = None,
    drop_bad: DropBad = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write one self-contained page: a map of the nodes to zoom, search, colour and click."""
    from topoter.explorer import write_explorer
    from topoter.graphs import atomic_write, read_embeddings
    from topoter.graphs.node_tables import columns_for
    from topoter.tasks.neighbors import nearest
    from topoter.tasks.projection import MAP_NEIGHBOURS, MAPS, project_2d

    if map_ not in MAPS:
        raise UsageError(f"--map must be one of {', '.join(MAPS)}. Got {map_!r} instead.")
    if id_column is not None and labels is None:
        raise UsageError("--id-column names the column of ids in the labels: give --labels too.")
    with atomic_write(out_path) as temporary:  # find out now, not after drawing, that it cannot be written
        ids, z = read_embeddings(embeddings)
        if not len(z):
            raise DataError(f"{embeddings} holds no embeddings.")
        notes = []
        if len(z) > MOST_NODES:
            chosen = np.sort(np.random.default_rng(seed).permutation(len(z))[:MOST_NODES])
            notes.append(
                f"Shown: {MOST_NODES:,} of {len(z):,} nodes, drawn at random; neighbours are sought among them."
            )
            ids, z = (ids[chosen] if isinstance(ids, np.ndarray) else [ids[place] for place in chosen]), z[chosen]
        columns: dict[str, list[Any]] = {}
        if labels is not None:
            columns, said = columns_for(labels, ids, id_column=id_column, drop_bad=drop_bad)
            notes += _worth_telling(said)
        neighbors = None
        if graph is not None:
            neighbors, said = _graph_neighbors(graph, ids, header, drop_bad)
            notes += said
        note(f"Similar nodes of {len(z):,} ...", quiet)
        # The map is drawn from the same search, which takes most of the time.
        similar, cosine = nearest(z, max(count, MAP_NEIGHBOURS), exact=False)
        note(f"Drawing the map ({map_}) ...", quiet)
        write_explorer(
            temporary,
            title=f"Embeddings of {embeddings.name}",
            ids=ids,
            points=project_2d(z, seed, map_, similar),
            nearest=(similar[:, :count], cosine[:, :count]),
            columns=columns,
            graph=neighbors,
            map_name=MAP_NAMES[map_],
            notes=notes,
        )
    if json:
        print_json({"page": str(out_path), "nodes": len(z), "map": map_, "columns": list(columns), "notes": notes})
        return
    for text in notes:
        note(text, quiet)
    out.print(str(out_path), soft_wrap=True)


def _graph_neighbors(path: Path, ids: Any, header: bool | None, drop_bad: bool) -> tuple[GraphNeighbors, list[str]]:
    """Edges between the nodes of the embeddings; those to other nodes are left out and counted."""
    from topoter.explorer import GraphNeighbors

    edge_index, notes = edges_between(path, ids, header, drop_bad)
    return GraphNeighbors.from_edges(edge_index, len(ids)), _worth_telling(notes)


def _worth_telling(notes: list[str]) -> list[str]:
    """What a reader of the page should know: what is missing, and a first line that may have been misread."""
    told = ("no row", "no node", "Dropped", "left out", "is taken for", "stand further down", "one column")
    return [text for text in notes if any(words in text for words in told)]
