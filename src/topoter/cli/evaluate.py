"""`topoter evaluate`: one number with its spread."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.graph_options import GraphOptions, SetOptions, takes_options
from topoter.cli.output import MaxHours, MaxMemory, Recipe, make_folder, out, print_json, show_log
from topoter.cli.own_labels import LabelColumn, LabelsFile, evaluate_own, own_parameters
from topoter.errors import UsageError, unknown_name

SEEDS = 3
OWN_SEEDS = 5  # two more, for the paired test


@takes_options
def run(
    task: Annotated[str, typer.Argument(help="What to evaluate: node, graph, link or temporal.")],
    *,
    dataset: Annotated[str | None, typer.Option(help="A dataset name (else the first of the paper's table).")] = None,
    graph: Annotated[
        str | None, typer.Option(help="In place of a dataset, your own: a file, or a set of labelled graphs.")
    ] = None,
    labels: LabelsFile = None,
    label_column: LabelColumn = None,
    embeddings: Annotated[
        list[Path] | None, typer.Option(help="Of your own graph: embeddings to score as well, .parquet, .csv or .npy.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Of your own graph: write what was found as an .html page.")] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="topoter, a method of the task's table, or your own as my_module:MyMethod; with --graph several."
        ),
    ] = None,
    options: GraphOptions,
    sets: SetOptions,
    recipe: Recipe = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="node: validation, paper (selects on test); temporal: held-out-pairs, next-snapshot."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help=f"How many seeds, each with a new encoder (else {SEEDS}; of your own {OWN_SEEDS})."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Other than the recipe's.")] = None,
    max_hours: MaxHours = None,
    max_memory: MaxMemory = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Keep the runs in this folder, and reuse them.")] = None,
) -> None:
    """Evaluate a method on a dataset, or all usual ones on your own graph: mean and deviation over seeds."""
    from topoter.cli.run_bars import run_bars
    from topoter.datasets import known_as
    from topoter.experiments import TASKS, experiment
    from topoter.experiments.experiment import Row
    from topoter.experiments.runner import limited, make
    from topoter.experiments.store import Store
    from topoter.report.groups import groups_of, published_text, rows_of

    show_log(options.quiet)
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    if seeds is not None and seeds < 1:
        raise UsageError(f"--seeds must be at least 1. Got {seeds} instead.")
    if graph is not None:
        if dataset is not None or protocol is not None:
            raise UsageError("--dataset and --protocol go with public datasets, not with a --graph of your own.")
        evaluate_own(
            task,
            graph,
            labels,
            label_column,
            embeddings or [],
            method or [],
            seeds or OWN_SEEDS,
            own_parameters(recipe, epochs),
            options,
            sets,
            page,
        )
        return
    options.refuse("this goes with a --graph of your own.")
    if labels is not None or embeddings or page is not None or sets.given:
        raise UsageError(
            "--labels, --embeddings, --page, --graph-column and --smiles-column go with a --graph of your own."
        )
    if method and len(method) > 1:
        raise UsageError("On a dataset one --method is evaluated at a time.")
    name, seeds = (method or ["topoter"])[0], seeds or SEEDS
    chosen = experiment(TASKS[task])
    dataset = known_as(dataset) or dataset.lower() if dataset else chosen.datasets[0]
    protocol = protocol or chosen.protocols[0]
    if protocol not in chosen.protocols:
        raise unknown_name("protocol", protocol, chosen.protocols)
    runs = chosen.runs(Row(name, recipe, protocol), dataset, seeds)
    if epochs is not None and (name == "topoter" or "epochs" in runs[0].parameters):
        runs = [replace(one, variation={**one.variation, "epochs": epochs}) for one in runs]
    runs = limited(runs, max_hours, max_memory)
    if out_dir is not None:
        make_folder(out_dir)
    start, store, found = time.perf_counter(), Store.read(out_dir), []
    with run_bars(runs, store.records, options.quiet) as watcher:
        for one in runs:
            record = store.done(one)
            if record is None:
                made = make(one, options.data_root, watcher.progress_of(one))
                store.add(made.record, made.losses, made.left)
                record = made.record
            found.append(record)
            watcher.finished(one, record.seconds)
    seconds = time.perf_counter() - start
    if options.json:
        measured = {"seconds": seconds, "peak_mb": max(record.peak_mb for record in found)}
        print_json({"task": task, **rows_of(chosen, found)[0], **measured})
        return
    (group,) = groups_of(chosen, found)
    spread = f"{len(found)} seed{'s' if len(found) > 1 else ''}"
    if protocol in chosen.single:
        spread = f"{group.values} restarts on one encoder"
    marked = ", SELECTS ON TEST" if protocol == "paper" else ""
    scores = []
    for metric in chosen.metrics:
        unit = "" if group.stopped else " %"
        scores.append(f"{metric} {group.text(metric)}{unit} (paper {published_text(group.paper, metric)})")
    by = f"{group.recipe}, {group.decoder}" if group.decoder else group.recipe
    out.print(f"{name} ({by}) on {dataset}: {', '.join(scores)}; {spread}{marked}", soft_wrap=True)
