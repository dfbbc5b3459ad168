"""`topoter demo`: the main job on the embedded Cora, or on MUTAG's graphs, end to end, with a report."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from topoter.cli.output import Quiet, load_graph, load_graph_set, note, out, progress_bar, show_log, training_progress
from topoter.errors import unknown_name

METHODS = ("raw", "propagated", "random-init", "topoter")
GRAPH_METHODS = ("degree-histogram", "random-init", "topoter")


def run(
    task: Annotated[str, typer.Option(help="node: papers of Cora; graph: molecules of MUTAG.")] = "node",
    out_dir: Annotated[Path, typer.Option("--out", "-o", help="Where report and embeddings go.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per row.")] = 3,
    quiet: Quiet = False,
) -> None:
    """Pre-train on Cora or MUTAG without labels, classify papers or molecules, write a report. Offline, a minute."""
    demos = {"node": _nodes, "graph": _graphs}
    if task not in demos:
        raise unknown_name("task", task, demos)
    show_log(quiet)
    demos[task](out_dir, seeds, quiet)


def _nodes(out_dir: Path, seeds: int, quiet: bool) -> None:
    """Cora's papers by the linear probe."""
    from topoter.datasets.planetoid import CLASS_NAMES
    from topoter.estimator import TopoTER
    from topoter.experiments.recipes import load_recipe
    from topoter.graphs import write_embeddings
    from topoter.report.demo import write_demo_report
    from topoter.report.embedding_map import project_2d
    from topoter.tasks import node_classification

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
        label_names=list(CLASS_NAMES["cora"]),
        parameters=load_recipe("node-classification", "topoter", "cora").parameters,
        seconds=time.perf_counter() - start,
        commands=["topoter demo"],
    )
    _show("Cora", rows, seeds, out_dir)


def _graphs(out_dir: Path, seeds: int, quiet: bool) -> None:
    """MUTAG's molecules by the cross-validated support vector machine."""
    from topoter.estimator import TopoTER
    from topoter.experiments import experiment
    from topoter.experiments.experiment import Row
    from topoter.graphs import write_embeddings
    from topoter.report.demo import write_demo_report
    from topoter.report.embedding_map import project_2d

    start = time.perf_counter()
    graphs = load_graph_set("mutag", None, quiet)
    out_dir.mkdir(parents=True, exist_ok=True)
    chosen = experiment("graph-classification")
    plans = {method: chosen.runs(Row(method), "mutag", seeds) for method in GRAPH_METHODS}
    rows: list[dict[str, Any]] = []
    with progress_bar(quiet) as progress:
        bar = progress.add_task("MUTAG", total=len(plans) * seeds, text="") if progress else None
        for method, runs in plans.items():
            scores = []
            for number, planned in enumerate(runs, start=1):
                scores.append(chosen.measure(planned, graphs, None).result)
                if progress is not None and bar is not None:
                    progress.update(bar, advance=1, text=f"{method}, seed {number} of {seeds}")
            rows.append(_row(method, scores, runs[0].recipe.paper))
    parameters = plans["topoter"][0].parameters
    model = TopoTER(level="graph", **parameters, random_state=0)
    with training_progress("TopoTER, to be kept", model.epochs, quiet) as show:
        model.on_epoch = show
        z = model.fit_transform(graphs)
    write_embeddings(out_dir / "embeddings.parquet", z)
    model.save(out_dir / "model.topoter")
    write_demo_report(
        out_dir / "report.html",
        dataset="MUTAG",
        rows=rows,
        history=model.history_,
        z2d={
            "before training": project_2d(TopoTER(**_untrained(model)).fit_transform(graphs), seed=0),
            "after training": project_2d(z, seed=0),
        },
        labels=[int(graph.y) for graph in graphs],
        label_names=["not mutagenic", "mutagenic"],
        parameters=parameters,
        seconds=time.perf_counter() - start,
        commands=["topoter demo --task graph"],
        level="graph",
    )
    _show("MUTAG", rows, seeds, out_dir)


def _show(dataset: str, rows: list[dict[str, Any]], seeds: int, out_dir: Path) -> None:
    out.print(_table(dataset, rows, seeds))
    for what, name in (("Report", "report.html"), ("Embeddings", "embeddings.parquet"), ("Model", "model.topoter")):
        out.print(f"{what + ':':11} {out_dir / name}", soft_wrap=True)


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


def _table(dataset: str, rows: list[dict[str, Any]], seeds: int) -> Table:
    table = Table(title=f"{dataset}, accuracy in percent over {seeds} seeds", title_justify="left")
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
