"""`topoter evaluate`: one number with its spread."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.output import DataRoot, Json, Quiet, Recipe, make_folder, out, print_json, show_log
from topoter.errors import UsageError, unknown_name


def run(
    task: Annotated[str, typer.Argument(help="What to evaluate: node, graph, link or temporal.")],
    dataset: Annotated[str | None, typer.Option(help="A dataset name (else the first of the paper's table).")] = None,
    method: Annotated[str, typer.Option(help="topoter, or a method of the task's table.")] = "topoter",
    recipe: Recipe = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="node: validation, paper (selects on test); temporal: held-out-pairs, next-snapshot."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, each with a new encoder.")] = 3,
    epochs: Annotated[int | None, typer.Option(help="Other than the recipe's.")] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Keep one JSON per run here, and reuse it.")] = None,
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Evaluate a method on a dataset: mean and deviation over seeds."""
    from topoter.cli.run_bars import run_bars
    from topoter.datasets import known_as
    from topoter.experiments import TASKS, experiment
    from topoter.experiments.bench import Bench
    from topoter.experiments.experiment import Row
    from topoter.experiments.tables import cells

    show_log(quiet)
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    chosen = experiment(TASKS[task])
    dataset = known_as(dataset) or dataset.lower() if dataset else chosen.datasets[0]
    protocol = protocol or chosen.protocols[0]
    if protocol not in chosen.protocols:
        raise unknown_name("protocol", protocol, chosen.protocols)
    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1. Got {seeds} instead.")
    runs = chosen.runs(Row(method, recipe, protocol), dataset, seeds)
    if epochs is not None and "epochs" in runs[0].parameters:
        runs = [replace(run, variation={**run.variation, "epochs": epochs}) for run in runs]
    if out_dir is not None:
        make_folder(out_dir)
    start = time.perf_counter()
    bench, found = Bench(out_dir, data_root), []
    with run_bars(runs, out_dir, jobs=1, quiet=quiet) as watcher:
        for one in runs:
            found.append((one, bench.make(one, watcher.progress_of(one))))
            watcher.finished(one, found[-1][1]["seconds"])
    cell = cells(chosen, found)[0]
    content = {
        "task": task,
        **cell.as_dict(),
        "seconds": time.perf_counter() - start,
        "peak_mb": max(content["peak_mb"] for _, content in found),
    }
    if json:
        print_json(content)
        return
    spread = f"{len(found)} seed{'s' if len(found) > 1 else ''}"
    if protocol in chosen.single:
        spread = f"{len(cell.scores[chosen.metrics[0]])} restarts on one encoder"
    marked = ", SELECTS ON TEST" if protocol == "paper" else ""
    scores = ", ".join(f"{metric} {cell.ours(metric)} % (paper {cell.paper(metric)})" for metric in chosen.metrics)
    out.print(f"{method} ({cell.recipe_name}) on {dataset}: {scores}; {spread}{marked}")
