"""Whether a graph is taken into memory as a whole or in parts: by its size, by what is free and by what was asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.cli.output import note
from topoter.errors import UsageError

if TYPE_CHECKING:
    from topoter.estimator import TopoTER
    from topoter.graphs import GraphDirectory


def opened(name_or_path: str) -> GraphDirectory | None:
    """The graph directory at a path, or None if it is something else."""
    from topoter.graphs.directory import GraphDirectory, is_graph_directory

    return GraphDirectory.open(Path(name_or_path)) if is_graph_directory(name_or_path) else None


def choose_parts(model: TopoTER, graph: Any, memory: str | None, quiet: bool) -> None:
    """Set `batch_nodes` where the whole graph does not fit into what was allowed; an error where nothing was said."""
    from topoter.estimate import batch_nodes_within, fit_memory, parts_memory, size_of
    from topoter.memory import free_memory, parse_memory, show_memory

    size = size_of(graph, model)
    if model.batch_nodes is not None:
        if memory is not None:
            raise UsageError("--batch-nodes and --memory both decide the size of the parts: give one of them.")
        return
    need, limit = fit_memory(size), free_memory() if memory is None else parse_memory(memory)
    if need <= limit:
        note(f"On the whole graph: about {show_memory(need)} of memory.", quiet)
    elif memory is None:
        part = batch_nodes_within(size, limit) // 2
        enough = max(limit / 2, 1.05 * parts_memory(size, part))
        half = show_memory(enough).replace(" ", "")
        raise UsageError(
            f"Training on the whole graph takes about {show_memory(need)} of memory, and {show_memory(limit)} are "
            f"free. To train on parts of it, give --memory {half} or --batch-nodes {part}."
        )
    else:
        model.batch_nodes = batch_nodes_within(size, limit)
        used = show_memory(parts_memory(size, model.batch_nodes))
        note(
            f"On parts of {model.batch_nodes:,} nodes, about {used} of memory; all at once: {show_memory(need)}.", quiet
        )
