"""`topoter neighbors`: the nodes with the most similar embeddings."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from topoter.cli.cluster import Embeddings
from topoter.cli.output import Json, Quiet, note, out, print_json
from topoter.errors import DataError, UsageError


def run(
    embeddings: Embeddings,
    nodes: Annotated[
        list[str] | None, typer.Argument(help="Ids of the nodes asked about (else all, into --out).")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-k", help="How many neighbours of each.")] = 10,
    out_path: Annotated[
        Path | None, typer.Option("--out", "-o", help="One row per pair: .csv, .tsv or .parquet.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the nearest neighbours of nodes by the cosine of their embeddings."""
    from topoter.graphs import read_embeddings
    from topoter.graphs.node_tables import check_table_destination, write_node_table
    from topoter.report.tables import Table
    from topoter.tasks.neighbors import nearest

    if not nodes and out_path is None:
        raise UsageError("Which nodes? Give their ids, or --out FILE for the neighbours of all nodes.")
    if out_path is not None:
        check_table_destination(out_path)
    ids, z = read_embeddings(embeddings)
    if len(z) == 1:
        raise DataError(f"{embeddings} holds a single embedding: it has no neighbours.")
    rows = _rows(ids, nodes) if nodes else np.arange(len(z))
    found, similarity = nearest(z, count, rows)
    names = np.asarray(ids)
    if out_path is not None:
        columns = {
            "id": np.repeat(names[rows], found.shape[1]),
            "neighbor": names[found.ravel()],
            "rank": np.tile(np.arange(1, found.shape[1] + 1), len(rows)),
            "similarity": similarity.ravel(),
        }
        write_node_table(out_path, columns)
    if nodes and json:
        print_json(
            [
                {"id": names[row].item(), "neighbors": [[names[n].item(), round(float(s), 6)] for n, s in zip(*pair)]}
                for row, *pair in zip(rows, found, similarity)
            ]
        )
    elif nodes:
        for row, near, values in zip(rows, found, similarity):
            pairs = [[str(names[place]), f"{value:.4f}"] for place, value in zip(near, values)]
            out.print(Table(["node", "cosine"], pairs, caption=f"nearest to {names[row]}"))
    elif json:
        print_json({"table": str(out_path), "nodes": len(rows), "neighbors": found.shape[1]})
    if out_path is not None and not json:
        note(f"{found.shape[1]} neighbours of {len(rows):,} nodes", quiet)
        out.print(str(out_path), soft_wrap=True)


def _rows(ids: np.ndarray | list[str], asked: list[str]) -> np.ndarray:
    """Where the asked-for ids stand; one that is not there is named, with one that looks like it."""
    place = {str(value): row for row, value in enumerate(ids)}
    for name in asked:
        if name not in place:
            close = difflib.get_close_matches(name, place, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]!r}?" if close else f" Ids look like {next(iter(place))!r}."
            raise UsageError(f"There is no embedding of node {name!r}.{hint}")
    return np.array([place[name] for name in asked], dtype=np.int64)
