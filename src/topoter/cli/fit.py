"""`topoter fit`: pre-train on a dataset or on the user's own files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoter.cli.graph_options import GraphOptions, SetOptions, takes_options
from topoter.cli.output import Device, Seed, describe, out, print_json, show_log, training_progress
from topoter.cli.training_data import TrainingData
from topoter.cli.training_options import TrainingOptions
from topoter.interruption import leave_at_once

if TYPE_CHECKING:
    from topoter.estimator import TopoTER
    from topoter.training import Checkpoint


@takes_options
def run(
    graph: Annotated[
        str | None,
        typer.Argument(help="A dataset name, a file (edge list, parquet, npz, GraphML, pt, SDF), a folder of graphs."),
    ] = None,
    *,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes.")] = Path("model.topoter"),
    snapshots: Annotated[
        str | None,
        typer.Option(help="In place of GRAPH, one over time: an edge list with a time column, a folder, a dataset."),
    ] = None,
    every: Annotated[
        str | None, typer.Option(help="Of --snapshots: bins of time, 1d, 1w, 12h, or N in the column's unit.")
    ] = None,
    options: GraphOptions,
    sets: SetOptions,
    training: TrainingOptions,
    memory: Annotated[
        str | None, typer.Option(help="Memory to use at most, e.g. 4GB: on parts of the graph where all is too much.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted fit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what every column becomes, and train nothing.")
    ] = False,
    save_seconds: Annotated[float, typer.Option(help="Keep the state for --resume this often.")] = 5.0,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Pre-train on a graph, on a set of graphs, or on what happened to a graph over time, and save the model."""
    from topoter.estimator import TopoTER
    from topoter.graphs.atomic import check_writable
    from topoter.training import Checkpoint, StopOnSignal
    from topoter.training.distributed import process_group, restarted

    if dry_run:
        _show_columns(TrainingData.named(graph, snapshots, every, options, sets))
        return
    with process_group(device) as group:
        options = replace(options, quiet=options.quiet or not group.writes)
        show_log(options.quiet)
        if group.writes:  # find out now, not after training, that it cannot be written
            check_writable(out_path)
        data = TrainingData.named(graph, snapshots, every, options, sets)
        model = TopoTER(**data.parameters(training, memory), random_state=seed, device=device)
        model.check_parameters()
        kept = out_path.with_name(f"{out_path.name}.resume")
        if resume and not kept.is_file():
            options.say(f"There is nothing to resume: {kept} does not exist. Starting anew.")
        saved = Checkpoint(kept, save_seconds, (resume or restarted()) and kept.is_file())
        fit = data.fit_of(model, training, memory, seed)
        with _told_how_to_go_on(saved):
            with training_progress("pre-training", options.quiet) as show:
                stop = StopOnSignal(at_once=lambda: leave_at_once(_to_go_on("Interrupted.", saved)))
                fit(callbacks=[stop, saved, show])
            if not group.writes:
                return
            model.save(out_path)
    saved.remove()
    _tell(model, out_path, options)


@contextmanager
def _told_how_to_go_on(saved: Checkpoint) -> Iterator[None]:
    from topoter.training import Interrupted

    try:
        yield
    except (Interrupted, KeyboardInterrupt) as error:
        raise Interrupted(_to_go_on(str(error) or "Interrupted.", saved)) from None


def _to_go_on(what: str, saved: Checkpoint) -> str:
    if saved.on_disk:
        return f"{what} Nothing is lost: run the same command with --resume to go on ({saved.path})."
    return f"{what} Nothing was trained yet: run the same command again."


def _show_columns(data: TrainingData) -> None:
    """What every column of the features becomes."""
    from topoter.report.tables import Table

    rows, names, nodes = data.columns()
    keys = ["column", "kind", "becomes", "features"]
    if data.options.json:
        print_json({"columns": [dict(zip(keys, row)) for row in rows], "features": names})
        return
    out.print(Table(keys, rows))
    out.print(f"{nodes:,} nodes with {len(names):,} features; nothing was trained.", soft_wrap=True)


def _tell(model: TopoTER, path: Path, options: GraphOptions) -> None:
    """What was learned, and where it is."""
    last = model.history_[-1] if model.history_ else None
    kept = model.history_[model.kept_epoch_ - 1] if model.history_ else None  # its weights are the model's
    if options.json:
        content = {
            "model": str(path),
            **({"graphs": model.num_graphs_} if model.level == "graph" else {}),
            "nodes": model.num_nodes_,
            "edges": model.num_edges_,
            "epochs": len(model.history_),
            "loss": last.loss if last else None,
            "prior_entropy": last.metrics.get("prior_entropy") if last else None,
            "kept_epoch": kept.epoch if kept else 0,
            "kept_loss": kept.loss if kept else None,
            "kept_metrics": kept.metrics if kept else {},
        }
        print_json(content)
        return
    said = "0 epochs: nothing was trained."
    if kept is None and model.effective_params()["epochs"]:
        said = "Nothing was trained: neighbours have too little in common here. The untrained encoder is kept."
    if kept is not None:
        said = f"{len(model.history_)} epochs; kept epoch {kept.epoch}, the best: {describe(kept)}"
    options.say(said)
    out.print(str(path), soft_wrap=True)
