"""What every command shares: where text goes, progress bars, and how a graph is found by name or path."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from topoter.errors import TopoterError, UsageError

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from topoter.training import EpochRecord

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

# Options that mean the same in every command.
DataRoot = Annotated[
    Path | None,
    typer.Option(help="Folder with the published datasets (else TOPOTER_DATA, else the user cache)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, mps.")]


def error_line(message: str) -> None:
    """One line on stderr, whatever the message holds."""
    err.print(Text("error: ", style="bold red") + Text(" ".join(message.split()), style="default"), soft_wrap=True)


def note(message: str, quiet: bool = False) -> None:
    """A remark on stderr."""
    if not quiet:
        err.print(Text(message, style="dim"), soft_wrap=True)


def print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(content, indent=1) + "\n")


def show_log(quiet: bool) -> None:
    """Let the library's own remarks (compiling a kernel, say) appear on stderr."""
    logger = logging.getLogger("topoter")
    if not logger.handlers:
        logger.addHandler(RichHandler(console=err, show_time=False, show_path=False, show_level=False))
    logger.setLevel(logging.WARNING if quiet else logging.INFO)


def load_graph(name_or_path: str, data_root: Path | None, quiet: bool, seed: int = 0, **reading: Any) -> Data:
    """A user's file if there is one of that name, else a named dataset."""
    from topoter import datasets
    from topoter.graphs import check_graph, read_graph

    given = {key: value for key, value in reading.items() if value}
    if Path(name_or_path).exists():
        data, notes = read_graph(name_or_path, **given)
        for text in notes:
            note(text, quiet)
    else:
        _check_is_name(name_or_path)
        data = datasets.load(name_or_path, data_root=data_root, seed=seed)
        if given:
            options = ", ".join(f"--{key.replace('_', '-')}" for key in given)
            raise typer.BadParameter(f"{options} go with a file, not with the dataset {name_or_path!r}.")
    check_graph(data)
    return data


def load_over_time(name_or_path: str, data_root: Path | None, **reading: Any) -> tuple[Data, list[Tensor]]:
    """A graph at several times, from a user's files or a named dataset: all of it as one graph, and the edges of each.

    The one graph has a `time` per edge, and the number 1 as every node's feature.
    """
    import torch
    from torch_geometric.data import Data

    from topoter import datasets
    from topoter.graphs import read_snapshots

    if Path(name_or_path).exists():
        found, ids = read_snapshots(name_or_path, **reading)
        edges = [edge_index for _, edge_index in found]
        node_ids = list(ids)
    elif any(mark in name_or_path for mark in "/\\."):
        raise TopoterError(f"There is no file {name_or_path}.")
    else:
        snapshots = datasets.load_snapshots(name_or_path, data_root=data_root)
        edges, node_ids = snapshots.edges, snapshots.node_names
    time = torch.repeat_interleave(torch.tensor([edge_index.size(1) for edge_index in edges]))
    data = Data(x=torch.ones(len(node_ids), 1), edge_index=torch.cat(edges, dim=1), time=time, node_ids=node_ids)
    return data, edges


def is_graph_set(name_or_path: str, data_root: Path | None) -> bool:
    """Whether it stands for many graphs: a dataset of that kind, or a user's folder in the TU format."""
    from topoter.datasets import dataset_kind
    from topoter.datasets.tu import tu_folder

    path = Path(name_or_path)
    if path.exists():
        return path.is_dir() and tu_folder(path) is not None
    _check_is_name(name_or_path)
    return dataset_kind(name_or_path, data_root) == "graphs"


def _check_is_name(name_or_path: str) -> None:
    """Raise if what does not exist looks like a file, and so is no dataset with a typing error."""
    if any(mark in name_or_path for mark in "/\\."):
        raise TopoterError(f"There is no file {name_or_path}.")


def load_graph_set(name_or_path: str, data_root: Path | None, quiet: bool, **reading: Any) -> list[Data]:
    """A user's folder in the TU format if there is one of that name, else a named dataset."""
    from topoter.datasets import load_graphs
    from topoter.datasets.tu import read_tu, tu_folder
    from topoter.graph_sets import read_graph_set

    given = [f"--{key.replace('_', '-')}" for key, value in reading.items() if value]
    if given:
        raise UsageError(f"{', '.join(given)} go with the file of one graph, not with the set {name_or_path!r}.")
    path = Path(name_or_path)
    found = tu_folder(path) if path.is_dir() else None
    graphs = read_graph_set(read_tu(*found) if found else load_graphs(name_or_path, data_root))
    nodes = sum(graph.num_nodes for graph in graphs)
    note(f"{name_or_path}: {len(graphs):,} graphs with {nodes:,} nodes.", quiet)
    return graphs


class _EpochColumn(ProgressColumn):
    """Epochs done of all, e.g. 120/200."""

    def render(self, task: Task) -> Text:
        return Text(f"{int(task.completed)}/{int(task.total or 0)}")


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress | None]:
    """A bar on stderr with steps done, a free text and the time left; `None` when quiet."""
    if quiet:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        _EpochColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        yield progress


@contextmanager
def training_progress(description: str, epochs: int, quiet: bool) -> Iterator[Callable[[EpochRecord], None]]:
    """A progress bar for pre-training: epoch, loss beside the prior's entropy, accuracy by type, time left.

    Where stderr is no terminal, a plain line appears every tenth of the way instead.
    """
    with progress_bar(quiet or not err.is_terminal) as progress:
        task = progress.add_task(description, total=epochs, text="") if progress else None

        def show(record: EpochRecord) -> None:
            if progress is not None and task is not None:
                progress.update(task, completed=record.epoch, text=describe(record))
            elif not quiet and (record.epoch % max(1, epochs // 10) == 0):
                note(f"{description} {record.epoch}/{epochs} {describe(record)}")

        yield show


def describe(record: EpochRecord) -> str:
    """The loss, what guessing would cost, and how often each type was right."""
    names = ("add", "del", "apart", "conn")
    accuracy = " ".join(f"{n} {a:.0%}" for n, a in zip(names, record.accuracy) if a is not None)
    return f"loss {record.loss:.3f} (prior {record.prior_entropy:.3f}) right: {accuracy}"


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks to stop at the next epoch; a second one stops at once."""
    asked = False

    def ask(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
