"""`topoter fit`: pre-train on a dataset or on the user's own files."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topoter.cli.graph_options import GraphOptions, SetOptions, takes_options
from topoter.cli.output import Device, Recipe, Seed, describe, out, print_json, show_log, training_progress
from topoter.cli.reading import is_graph_set, load_graph, load_graph_set, load_over_time
from topoter.errors import UsageError

if TYPE_CHECKING:
    from topoter.estimator import TopoTER

STEPS_OVER_TIME = 800  # as many as the recipes of the ants take


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
    recipe: Recipe = None,
    objective: Annotated[
        str | None, typer.Option(help="What is learned: paper, full (all terms), or the name of one term.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="hops, profile, sgc, gcn, gin, or a PyG module's class: package.module:Class.")
    ] = None,
    encoder_parameter: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Of the encoder alone; repeat it for more.")
    ] = None,
    structure: Annotated[
        str | None, typer.Option(help="Where nodes are in the graph: spectral, walks, degrees, or none.")
    ] = None,
    order: Annotated[int | None, typer.Option(help="Hops an SGC layer aggregates (k).")] = None,
    channels: Annotated[int | None, typer.Option(help="Width of the embedding (F); of each layer of gin.")] = None,
    perturbation_rate: Annotated[float | None, typer.Option(help="Share of pairs flipped (r).")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.")] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after so many epochs without a lower loss.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of Adam.")] = None,
    pooling: Annotated[str | None, typer.Option(help="Of a set of graphs: sum, mean or max of the nodes.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Of a set of graphs: how many a step takes.")] = None,
    batch_nodes: Annotated[
        int | None, typer.Option(help="Train on parts of the graph of so many nodes (else on all of it).")
    ] = None,
    parts: Annotated[str | None, typer.Option(help="How parts are made: clusters, or sampled neighbours.")] = None,
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
    from topoter.datasets import known_as
    from topoter.estimator import TopoTER
    from topoter.graphs import atomic_write
    from topoter.training import Checkpoint, Interrupted, StopOnSignal
    from topoter.training.distributed import process_group, restarted

    if (graph is None) == (snapshots is None):
        raise UsageError("Give one graph to fit on: a GRAPH, or --snapshots with one over time.")
    if every is not None and snapshots is None:
        raise UsageError("--every goes with --snapshots.")
    if graph is None and sets.given:
        raise UsageError("--graph-column and --smiles-column go with a GRAPH, not with --snapshots.")
    if dry_run:
        _show_columns(graph, options, sets)
        return
    with ExitStack() as stack:
        group = stack.enter_context(process_group(device))
        options = replace(options, quiet=options.quiet or not group.writes)
        show_log(options.quiet)
        temporary: Path | None = None
        if group.writes:  # find out now, not after training, that it cannot be written
            temporary = stack.enter_context(atomic_write(out_path))
            temporary.unlink()
        many = graph is not None and is_graph_set(graph, options.data_root, sets)
        if (many or graph is None) and (batch_nodes, parts, memory) != (None, None, None):
            raise UsageError("--batch-nodes, --parts and --memory go with one graph.")
        if not many and (pooling is not None or batch_size is not None):
            raise UsageError("--pooling and --batch-size go with a set of graphs.")
        parameters = parameters_of(
            "temporal-links" if graph is None else "graph-classification" if many else "node-classification",
            graph or snapshots or "",
            recipe,
            objective=objective,
            encoder=encoder,
            encoder_parameters=_key_values(encoder_parameter or []) or None,
            structure=structure,
            order=order,
            out_channels=channels,
            perturbation_rate=perturbation_rate,
            epochs=epochs,
            patience=patience,
            learning_rate=lr,
            pooling=pooling,
            batch_size=batch_size,
            batch_nodes=batch_nodes,
            parts=parts,
        )
        model = TopoTER(**parameters, random_state=seed, device=device)
        model.check_parameters()
        kept = out_path.with_name(f"{out_path.name}.resume")
        if resume and not kept.is_file():
            options.say(f"There is nothing to resume: {kept} does not exist. Starting anew.")
        saved = Checkpoint(kept, save_seconds, (resume or restarted()) and kept.is_file())
        data: Any
        if graph is None:
            data, times = load_over_time(snapshots or "", options, every)
            if epochs is None and recipe is None and known_as(snapshots or "") is None:
                model.set_params(epochs=_epochs_over(len(times) - 1))
            fit = partial(model.fit_snapshots, times, x=data)
        else:
            if many:
                data = load_graph_set(graph, options, sets)
            else:
                data = _one_graph(model, graph, seed, options, memory)
            fit = partial(model.fit, data)
        try:
            with training_progress("pre-training", options.quiet) as show:
                fit(callbacks=[StopOnSignal(), saved, show])
            if temporary is None:
                return
            model.save(temporary)
        except (Interrupted, KeyboardInterrupt) as error:
            lost = "Nothing was trained yet: run the same command again."
            if saved.on_disk:
                lost = f"Nothing is lost: run the same command with --resume to go on ({saved.path})."
            raise Interrupted(f"{str(error) or 'Interrupted.'} {lost}") from None
    saved.remove()
    _tell(model, out_path, len(data) if many else None, options)


def _epochs_over(transitions: int) -> int:
    """Epochs of a graph over time: of many transitions each is seen less often, since every one is a step."""
    return min(200, max(10, STEPS_OVER_TIME // max(transitions, 1)))


def _one_graph(model: TopoTER, graph: str, seed: int, options: GraphOptions, memory: str | None) -> Any:
    """The graph to train on, and `model` told to take it in parts where it has to."""
    from topoter.cli.sizing import choose_parts, opened

    directory = opened(graph)
    if directory is None:
        data = load_graph(graph, options, seed)
        choose_parts(model, data, memory, quiet=True)
        return data
    options.refuse(f"{graph} is imported already: these go with `topoter import`.")
    options.say(directory.describe())
    choose_parts(model, directory, memory, options.quiet)
    return directory


def parameters_of(experiment: str, graph: str, recipe: str | None, **given: Any) -> dict[str, Any]:
    """The recipe of the dataset (or the default one), with what the user said put over it."""
    from topoter.datasets import known_as
    from topoter.estimator import TopoTER
    from topoter.experiments.recipes import DEFAULT, load_recipe, read_recipe

    name = None if _is_file(recipe) else recipe
    if name is None and experiment in ("node-classification", "graph-classification"):
        name = DEFAULT  # one for every graph, also for those that have a recipe of their own
    if name is None and experiment == "temporal-links":
        name = "paper"  # "best" is a decoder of pairs, and what is fitted here embeds nodes
    parameters = load_recipe(experiment, "topoter", known_as(graph) or DEFAULT, name).parameters
    if _is_file(recipe):
        parameters = parameters | read_recipe(Path(str(recipe)))
    known = TopoTER().get_params()  # a recipe may have more to say, of what follows a fit
    parameters = {name: value for name, value in parameters.items() if name in known}
    parameters["level"] = "graph" if experiment == "graph-classification" else "node"
    said = {name: value for name, value in given.items() if value is not None}
    encoder = TopoTER(**parameters | said).effective_params()["encoder"]
    if "order" in said and encoder not in ("sgc", "hops"):
        raise UsageError(
            f"--order goes with the encoders hops and sgc: {encoder} reaches as many hops as it has layers."
        )
    if "out_channels" in said and ":" in encoder:
        raise UsageError(
            f"--channels goes with the encoders hops, sgc, gcn and gin: give {encoder} --encoder-parameter."
        )
    if "out_channels" in said and encoder == "profile":
        raise UsageError("--channels does not go with the encoder profile: its width follows from the graphs.")
    if "out_channels" in said and encoder == "gin":  # the outputs of all its layers are concatenated
        said["hidden_channels"] = said.pop("out_channels")
    return parameters | said


def _is_file(recipe: str | None) -> bool:
    return recipe is not None and recipe.endswith(".toml")


def _key_values(pairs: list[str]) -> dict[str, Any]:
    """KEY=VALUE, a value read as a number, true, false or null where it is one."""
    from json import loads

    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise UsageError(f"--encoder-parameter must be KEY=VALUE. Got {pair!r} instead.")
        try:
            found[key] = loads(value)
        except ValueError:
            found[key] = value
    return found


def _show_columns(graph: str | None, options: GraphOptions, sets: SetOptions) -> None:
    """What every column of the features table, or what is known of atoms and nodes, becomes."""
    from topoter.report.tables import Table

    many = graph is not None and is_graph_set(graph, options.data_root, sets)
    if graph is None or (options.features is None and not many):
        raise UsageError("--dry-run shows what a table of features becomes: give a GRAPH and --features.")
    data = load_graph_set(graph, options, sets) if many else [load_graph(graph, options)]
    table = data[0].get("table")
    if table is None:
        raise UsageError(f"{options.features or graph} holds no table of features, so nothing is turned into numbers.")
    rows, names = table.preparation.described(), table.preparation.feature_names
    if options.json:
        keys = ("column", "kind", "becomes", "features")
        print_json({"columns": [dict(zip(keys, row)) for row in rows], "features": names})
        return
    out.print(Table(["column", "kind", "becomes", "features"], rows).rich())
    nodes = sum(graph.num_nodes for graph in data)
    out.print(f"{nodes:,} nodes with {len(names):,} features; nothing was trained.", soft_wrap=True)


def _tell(model: TopoTER, path: Path, graphs: int | None, options: GraphOptions) -> None:
    """What was learned, and where it is."""
    last = model.history_[-1] if model.history_ else None
    kept = model.history_[model.kept_epoch_ - 1] if model.history_ else None  # its weights are the model's
    if options.json:
        content = {
            "model": str(path),
            **({} if graphs is None else {"graphs": graphs}),
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
