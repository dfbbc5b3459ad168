"""`topoter fit`: pre-train on a dataset or on the user's own files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from topoter.cli.output import (
    DataRoot,
    Device,
    Json,
    Quiet,
    Recipe,
    Seed,
    describe,
    note,
    out,
    print_json,
    show_log,
    stop_on_interrupt,
    training_progress,
)
from topoter.cli.reading import Reading, is_graph_set, load_graph, load_graph_set, load_over_time, reads_files

LEAST_LEARNED = 0.01  # of the prior's entropy


@reads_files
def run(
    graph: Annotated[
        str | None,
        typer.Argument(help="A dataset name, a file (edge list, parquet, npz, GraphML, pt) or a TU folder."),
    ] = None,
    *,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes.")] = Path("model.topoter"),
    snapshots: Annotated[
        str | None,
        typer.Option(help="In place of GRAPH, one over time: an edge list with a time column, a folder, a dataset."),
    ] = None,
    reading: Reading,
    recipe: Recipe = None,
    encoder: Annotated[str | None, typer.Option(help="sgc, gcn or gin.")] = None,
    order: Annotated[int | None, typer.Option(help="Hops an SGC layer aggregates (k).")] = None,
    channels: Annotated[int | None, typer.Option(help="Width of the embedding (F); of each layer of gin.")] = None,
    perturbation_rate: Annotated[float | None, typer.Option(help="Share of pairs flipped (r).")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.")] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after so many epochs without a lower loss.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of Adam.")] = None,
    pooling: Annotated[str | None, typer.Option(help="Of a set of graphs: sum, mean or max of the nodes.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Of a set of graphs: how many a step takes.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted fit.")] = False,
    save_seconds: Annotated[float, typer.Option(help="Keep the state for --resume this often.")] = 5.0,
    seed: Seed = 0,
    device: Device = "cpu",
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Pre-train on a graph, on a set of graphs, or on what happened to a graph over time, and save the model."""
    from topoter.errors import UsageError
    from topoter.estimator import TopoTER
    from topoter.graphs import atomic_write
    from topoter.training import Interrupted, pretrain

    show_log(quiet)
    if (graph is None) == (snapshots is None):
        raise UsageError("Give one graph to fit on: a GRAPH, or --snapshots with one over time.")
    with atomic_write(out_path) as temporary:  # find out now, not after training, that it cannot be written
        temporary.unlink()
        many = graph is not None and is_graph_set(graph, data_root)
        if not many and (pooling is not None or batch_size is not None):
            raise UsageError("--pooling and --batch-size go with a set of graphs.")
        parameters = _parameters(
            "temporal-links" if graph is None else "graph-classification" if many else "node-classification",
            graph or snapshots or "",
            recipe,
            encoder=encoder,
            order=order,
            out_channels=channels,
            perturbation_rate=perturbation_rate,
            epochs=epochs,
            patience=patience,
            learning_rate=lr,
            pooling=pooling,
            batch_size=batch_size,
        )
        model = TopoTER(**parameters, random_state=seed, device=device)
        model.check_parameters()
        if resume:
            ResumeFile.check(out_path)
        data: Any
        batches: Iterable[Any]
        if graph is None:
            data, times = load_over_time(snapshots or "", data_root, reading)
            state, transitions = model.start_snapshots(times, data.x)
            batches = transitions
            note(f"{len(times)} snapshots of {data.num_nodes:,} nodes, {len(transitions)} transitions.", quiet)
        else:
            data = (
                load_graph_set(graph, data_root, quiet, reading)
                if many
                else load_graph(graph, data_root, quiet, seed, reading)
            )
            state, batches = model.start(data)
        if str(model.cleaning_):
            note(f"Edges: {model.cleaning_}.", quiet)
        saved = ResumeFile(out_path, model.fingerprint(data))
        if resume:
            saved.load(state)
            note(f"Going on after epoch {len(state.history)}.", quiet)
        try:
            with training_progress("pre-training", model.epochs, quiet) as show, stop_on_interrupt() as asked:
                pretrain(
                    state,
                    batches,
                    model.settings(),
                    on_epoch=show,
                    should_stop=asked,
                    save=saved.save,
                    save_seconds=save_seconds,
                )
        except Interrupted as error:
            raise Interrupted(
                f"{error} Nothing is lost: run the same command with --resume to go on ({saved.path})."
            ) from None
        model.finish(state)
        model.save(temporary)
    saved.path.unlink(missing_ok=True)
    last = model.history_[-1] if model.history_ else None
    kept = min(model.history_, key=lambda record: record.loss, default=None)  # its weights are the model's
    if json:
        print_json(
            {
                "model": str(out_path),
                **({"graphs": len(data)} if isinstance(data, list) else {}),
                "nodes": model.num_nodes_,
                "edges": model.num_edges_,
                "epochs": len(model.history_),
                "loss": last.loss if last else None,
                "prior_entropy": last.prior_entropy if last else None,
                "kept_epoch": kept.epoch if kept else 0,
                "kept_loss": kept.loss if kept else None,
            }
        )
    else:
        if kept is None:
            note("0 epochs: the encoder is untrained.", quiet)
        else:
            note(f"{len(model.history_)} epochs; kept epoch {kept.epoch}, the lowest: {describe(kept)}", quiet)
            if kept.loss > (1 - LEAST_LEARNED) * kept.prior_entropy:
                note(
                    f"This loss is not {LEAST_LEARNED:.0%} below the prior, what guessing by the shares of the types "
                    "costs: little was learned. Try more --epochs or a higher --lr, and look at your features' scales.",
                    quiet,
                )
        out.print(str(out_path), soft_wrap=True)


def _parameters(experiment: str, graph: str, recipe: str | None, **given: Any) -> dict[str, Any]:
    """The recipe of the dataset (or the default one), with what the user said put over it."""
    from topoter.datasets import known_as
    from topoter.errors import UsageError
    from topoter.experiments.recipes import DEFAULT, load_recipe

    parameters = load_recipe(experiment, "topoter", known_as(graph) or DEFAULT, recipe).parameters
    parameters.pop("decoder", None)  # of pairs; a fit has none
    level = "graph" if experiment == "graph-classification" else "node"
    said = {name: value for name, value in given.items() if value is not None}
    encoder = said.get("encoder", parameters["encoder"])
    if "order" in said and encoder != "sgc":
        raise UsageError(f"--order goes with the encoder sgc: {encoder} reaches as many hops as it has layers.")
    if "out_channels" in said and encoder == "gin":  # the outputs of all its layers are concatenated
        said["hidden_channels"] = said.pop("out_channels")
    return parameters | {"level": level} | said


class ResumeFile:
    """The state of an unfinished fit, beside the model it will become."""

    def __init__(self, out_path: Path, fingerprint: str) -> None:
        self.path = self.beside(out_path)
        self.fingerprint = fingerprint

    @staticmethod
    def beside(out_path: Path) -> Path:
        return out_path.with_name(out_path.name + ".resume")

    @classmethod
    def check(cls, out_path: Path) -> None:
        """Raise where there is none, before a large graph is read."""
        from topoter.errors import UsageError

        if not cls.beside(out_path).is_file():
            raise UsageError(
                f"There is nothing to resume: {cls.beside(out_path)} does not exist. Run without --resume."
            )

    def save(self, state: Any) -> None:
        from topoter.checkpoint import save_checkpoint

        content = {"fingerprint": self.fingerprint, "training": state.scalars()}
        save_checkpoint(self.path, "training", state.tensors(), content)

    def load(self, state: Any) -> None:
        from topoter.checkpoint import load_checkpoint
        from topoter.errors import UsageError

        tensors, content = load_checkpoint(self.path, "training")
        if content["fingerprint"] != self.fingerprint:
            raise UsageError(
                f"{self.path} was made with another graph or other options. "
                "Repeat the options of the interrupted command, or run without --resume to start anew."
            )
        state.restore(tensors, content["training"])
