"""`topoter evaluate`: one number with its spread."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from topoter.cli.output import DataRoot, Json, Quiet, out, print_json, progress_bar, show_log
from topoter.errors import UsageError, unknown_name
from topoter.experiments.recipes import Recipe, load_recipe

TASKS = {"node": "node-classification"}


def run(
    task: Annotated[str, typer.Argument(help="What to evaluate: node.")],
    dataset: Annotated[str, typer.Option(help="A dataset name (see `topoter datasets`).")] = "cora",
    method: Annotated[str, typer.Option(help="topoter, raw, propagated, random-init, dgi, gae or vgae.")] = "topoter",
    recipe: Annotated[str | None, typer.Option(help="best (ours) or paper.")] = None,
    protocol: Annotated[str, typer.Option(help="validation, or paper (selects on test).")] = "validation",
    seeds: Annotated[int, typer.Option(help="How many seeds, each with a new encoder.")] = 3,
    epochs: Annotated[int | None, typer.Option(help="Other than the recipe's.")] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Keep one JSON per run here, and reuse it.")] = None,
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Evaluate a method on a dataset: mean and deviation over seeds."""
    from topoter.datasets import load
    from topoter.experiments.runs import PROTOCOLS, RESTARTS, peak_mb
    from topoter.experiments.tables import cell

    show_log(quiet)
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1. Got {seeds} instead.")
    data = load(dataset, data_root=data_root)
    chosen = load_recipe(TASKS[task], method, dataset.lower(), recipe)
    if epochs is not None:
        chosen = _with(chosen, epochs=epochs)
    start = time.perf_counter()
    with progress_bar(quiet) as progress:
        stored = run_seeds(chosen, protocol, seeds, data, progress, out_dir)
    result = cell(chosen, protocol, stored)
    content = {
        "task": task,
        "dataset": dataset.lower(),
        "method": method,
        "recipe": chosen.name,
        "protocol": protocol,
        "metric": "accuracy",
        "mean": result.mean,
        "std": result.std,
        "val_mean": sum(result.val) / len(result.val) if result.val else None,
        "runs": result.runs,
        "seconds": time.perf_counter() - start,
        "peak_mb": peak_mb(),
        "paper": chosen.paper,
    }
    if json:
        print_json(content)
        return
    spread = f"{RESTARTS} restarts on one encoder, SELECTS ON TEST" if protocol == "paper" else f"{seeds} seeds"
    row = f"{method} ({chosen.name}) on {dataset.lower()}"
    out.print(f"{row}: {result.ours()} % test accuracy ({spread}); paper {result.paper()}")


def run_seeds(
    recipe: Recipe, protocol: str, seeds: int, data: Any, progress: Progress | None, folder: Path | None
) -> list[dict[str, Any]]:
    """All runs of a recipe, those on disk taken over, with a bar over epochs."""
    from topoter.experiments.runs import execute, load_run, runs_of, save_run

    stored = []
    runs = runs_of(recipe, protocol, seeds)
    for run_ in runs:
        known = load_run(run_, folder) if folder else None
        if known is None:
            task = None
            if progress is not None:
                label = f"{recipe.dataset} {recipe.method} ({recipe.name}) seed {run_.seed + 1}/{len(runs)}"
                task = progress.add_task(label, total=recipe.parameters.get("epochs"), text="")

            def show(epoch: int, loss: float, task: Any = task) -> None:
                if progress is not None:
                    progress.update(task, completed=epoch, text=f"loss {loss:.3f}")

            known = execute(run_, data, show)
            if progress is not None and task is not None:
                progress.remove_task(task)
            if folder:
                save_run(run_, known, folder)
        stored.append(known)
    return stored


def _with(recipe: Recipe, **parameters: Any) -> Recipe:
    from dataclasses import replace

    changed = {name: value for name, value in parameters.items() if name in recipe.parameters}
    return replace(recipe, parameters=recipe.parameters | changed)
