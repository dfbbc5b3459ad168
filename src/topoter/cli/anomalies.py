"""`topoter anomalies`: nodes and pairs that do not fit, by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from topoter.cli.graph_options import ModelOptions, takes_options
from topoter.cli.output import Seed, out, print_json, show_log
from topoter.cli.reading import load_both

SHOWN = 10


@takes_options
def run(
    *,
    options: ModelOptions,
    out_path: Annotated[
        Path, typer.Option("--out", "-o", help="All nodes, the oddest first: .csv, .tsv or .parquet.")
    ] = Path("odd-nodes.csv"),
    pairs_path: Annotated[
        Path, typer.Option("--pairs", help="Pairs that look wrong: edges likely false, edges likely missing.")
    ] = Path("odd-pairs.csv"),
    top: Annotated[int, typer.Option(min=1, help="How many pairs of each kind.")] = 100,
    seed: Seed = 0,
) -> None:
    """Find nodes whose neighbourhood does not fit them, edges that look false, and edges that look missing."""
    from topoter.graphs.node_tables import check_table_destination, write_node_table
    from topoter.report.tables import Table
    from topoter.tasks.anomalies import find_anomalies

    show_log(options.quiet)
    for path in (out_path, pairs_path):
        check_table_destination(path)
    fitted, data = load_both(options)
    found = find_anomalies(fitted, data, top, seed)
    ids: Any = data.get("node_ids")
    names = list(range(data.num_nodes)) if ids is None else list(ids)
    nodes = found.odd_nodes(data.num_nodes).tolist()
    error, degree = found.node_error.tolist(), found.degree.tolist()
    columns = {
        "id": [names[node] for node in nodes],
        "error": [round(error[node], 4) for node in nodes],
        "neighbours": [degree[node] for node in nodes],
    }
    write_node_table(out_path, columns)
    pairs = [
        ("false edge", *found.edges[:, edge].tolist(), float(found.probability[edge]))
        for edge in found.false_edges(top).tolist()
    ]
    likely = found.missing.score.sigmoid().tolist()
    pairs += [("missing edge", a, b, p) for (a, b), p in zip(found.missing.pairs.t().tolist(), likely)]
    kind, source, target, probability = zip(*pairs)
    content = {
        "source": [names[node] for node in source],
        "target": [names[node] for node in target],
        "looks_like": list(kind),
        "probability": [round(value, 4) for value in probability],
    }
    write_node_table(pairs_path, content)
    if options.json:
        shown = {name: values[:top] for name, values in columns.items()}
        about = {"nodes": str(out_path), "pairs": str(pairs_path), "auc": found.missing.auc}
        print_json({**about, "oddest": shown, "odd_pairs": content})
        return
    explained = (
        "A node's error is the mean cross entropy of its edges, each judged while it is deleted from the graph; usual: "
        f"{found.node_error.median():.2f}. A pair's probability is that of being an edge, were every other pair one."
    )
    options.say(explained)
    rows = [[str(columns["id"][place]), error[node], degree[node]] for place, node in enumerate(nodes[:SHOWN])]
    out.print(Table(["oddest nodes", "error", "neighbours"], rows))
    for path in (out_path, pairs_path):
        out.print(str(path), soft_wrap=True)
