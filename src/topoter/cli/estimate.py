"""`topoter estimate`: memory and time of fit and embed, before they start."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from topoter.cli.graph_options import GraphOptions, takes_options
from topoter.cli.output import Memory, out, print_json, show_log
from topoter.cli.reading import load_graph
from topoter.cli.training_options import TrainingOptions


@takes_options
def run(
    graph: Annotated[str, typer.Argument(help="A dataset name, a file, or an imported graph (which is not read).")],
    *,
    options: GraphOptions,
    channels: Annotated[int | None, typer.Option(help="Width of the embedding (F).")] = None,
    encoder: Annotated[str | None, typer.Option(help="sgc, gcn or gin.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.")] = None,
    memory: Memory = None,
) -> None:
    """Estimate the memory and the time that fit and embed will need."""
    from topoter.cli.sizing import opened
    from topoter.errors import UsageError
    from topoter.estimate import batch_nodes_within, embed_memory, fit_memory, measured_seconds, parts_memory, size_of
    from topoter.estimator import TopoTER
    from topoter.memory import free_memory, parse_memory, show_memory

    show_log(options.quiet)
    training = TrainingOptions(channels=channels, encoder=encoder, epochs=epochs)
    model = TopoTER(**training.parameters("node-classification", graph))
    model.check_parameters()
    content: Any = opened(graph) or load_graph(graph, options)
    size = size_of(content, model)
    limit = free_memory() if memory is None else parse_memory(memory)
    need, embedding = fit_memory(size), embed_memory(size)
    try:
        parts: int | None = batch_nodes_within(size, limit)
    except UsageError:
        parts = None
    around, seconds, embed_seconds = measured_seconds(model, size, on_parts=need > limit)
    most_epochs = model.effective_params()["epochs"]
    found = {
        "nodes": size.nodes,
        "edges": size.edges,
        "features": size.features,
        "channels": size.channels,
        "memory_available": int(limit),
        "fit_memory": int(need),
        "fit_fits": need <= limit,
        "batch_nodes": parts,
        "parts_memory": None if parts is None else int(parts_memory(size, parts)),
        "embed_memory": int(embedding),
        "embed_fits": embedding <= limit,
        "seconds_around_epochs": around,
        "seconds_per_epoch": seconds,
        "epochs": most_epochs,
        "embed_seconds": embed_seconds,
    }
    if options.json:
        print_json(found)
        return
    fits = "fits" if found["fit_fits"] else "does not fit"
    in_parts = "no parts are small enough" if parts is None else f"give fit --batch-nodes {parts}"
    lines = {
        "graph": f"{size.nodes:,} nodes, {size.edges:,} edges, {size.features:,} features; {size.channels:,} channels",
        "memory available": show_memory(limit),
        "fit, whole graph": f"{show_memory(need)}: {fits}" + ("" if found["fit_fits"] else f"; {in_parts}"),
        "embed, at once": f"{show_memory(embedding)}: " + ("fits" if found["embed_fits"] else "goes block by block"),
        "time of fit": f"{_duration(around + seconds * most_epochs)} at most: {_duration(around)} around the epochs, "
        f"{_duration(seconds)} for each of {most_epochs}",
        "time of embed": _duration(embed_seconds),
    }
    for name, value in lines.items():
        out.print(f"{name:18} {value}", soft_wrap=True, markup=False)


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
