"""`topoter demo`: the main job on the embedded Cora, end to end, with a report."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from topoter.cli.output import Quiet, load_graph, note, out, show_log, training_progress

# Planetoid's order of Cora's classes.
CORA_CLASSES = (
    "theory",
    "reinforcement learning",
    "genetic algorithms",
    "neural networks",
    "probabilistic methods",
    "case-based",
    "rule learning",
)
METHODS = ("raw", "propagated", "random-init", "topoter")


def run(
    out_dir: Annotated[Path, typer.Option("--out", "-o", help="Where report and embeddings go.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per row.")] = 3,
    quiet: Quiet = False,
) -> None:
    """Pre-train on Cora without labels, classify its papers, write a report. Offline, about a minute."""
    from topoter.estimator import TopoTER
    from topoter.experiments.recipes import load_recipe
    from topoter.graphs import write_embeddings
    from topoter.report.demo import write_demo_report
    from topoter.report.embedding_map import project_2d
    from topoter.tasks import node_classification

    show_log(quiet)
    start = time.perf_counter()
    data = load_graph("embedded-cora", None, quiet)
    out_dir.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    first: TopoTER | None = None
    for method in METHODS:
        recipe = load_recipe("node-classification", method, "cora")
        scores = []
        for seed in range(seeds):
            if method == "topoter":
                model = TopoTER(**recipe.parameters, random_state=seed)
                with training_progress(f"TopoTER, seed {seed + 1} of {seeds}", model.epochs, quiet) as show:
                    model.on_epoch = show
                    embedding = node_classification.Embedding(model.fit_transform(data))
                first = first or model
            else:
                embedding = node_classification.embed(data, method, recipe.parameters, seed)
            scores.append(node_classification.score(embedding, data))
        rows.append(_row(method, scores, recipe.paper))
    assert first is not None
    z = first.transform(data)
    note("Drawing the map ...", quiet)
    maps = {
        "before training": project_2d(TopoTER(**_untrained(first)).fit_transform(data), seed=0),
        "after training": project_2d(z, seed=0),
    }
    write_embeddings(out_dir / "embeddings.parquet", z, data.get("node_ids"))
    first.save(out_dir / "model.topoter")
    write_demo_report(
        out_dir / "report.html",
        dataset="Cora",
        rows=rows,
        history=first.history_,
        z2d=maps,
        labels=data.y.numpy(),
        label_names=list(CORA_CLASSES),
        parameters=load_recipe("node-classification", "topoter", "cora").parameters,
        seconds=time.perf_counter() - start,
        commands=["topoter demo"],
    )
    out.print(_table(rows, seeds))
    out.print(f"Report:     {out_dir / 'report.html'}", soft_wrap=True)
    out.print(f"Embeddings: {out_dir / 'embeddings.parquet'}", soft_wrap=True)
    out.print(f"Model:      {out_dir / 'model.topoter'}", soft_wrap=True)


def _untrained(model: Any) -> dict[str, Any]:
    return model.get_params() | {"epochs": 0, "on_epoch": None}


def _row(method: str, scores: list[dict[str, Any]], paper: dict[str, float] | None) -> dict[str, Any]:
    row: dict[str, Any] = {"method": method}
    for part in ("val", "test"):
        values = [score[part] for score in scores]
        row[f"{part}_mean"] = statistics.fmean(values)
        row[f"{part}_std"] = statistics.stdev(values) if len(values) > 1 else 0.0
    row["paper_mean"] = paper["mean"] if paper else None
    row["paper_std"] = paper["std"] if paper else None
    return row


def _table(rows: list[dict[str, Any]], seeds: int) -> Table:
    table = Table(title=f"Cora, accuracy in percent over {seeds} seeds", title_justify="left")
    table.add_column("method")
    for name in ("validation", "test", "paper (test)"):
        table.add_column(name, justify="right")
    for row in rows:
        paper = "–" if row["paper_mean"] is None else f"{row['paper_mean']:.1f} ± {row['paper_std']:.1f}"
        table.add_row(
            row["method"],
            f"{row['val_mean']:.1f} ± {row['val_std']:.1f}",
            f"{row['test_mean']:.1f} ± {row['test_std']:.1f}",
            paper,
        )
    return table
