"""What every command shares: where text goes, progress bars, options that mean the same everywhere."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

from topoter.errors import PoorEmbeddingWarning, UsageError, unknown_name, visible

if TYPE_CHECKING:
    from topoter.training import Callback, EpochRecord, TrainingState


class _SafeConsole(Console):
    """A console that shows control characters of what it is given, instead of obeying them."""

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


out = _SafeConsole(highlight=False)
err = _SafeConsole(stderr=True, highlight=False)

# Options that mean the same in every command.
DataRoot = Annotated[
    Path | None,
    typer.Option(help="Folder with the published datasets (else TOPOTER_DATA, else the user cache)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")]
MaxHours = Annotated[float | None, typer.Option(help="End a run that takes longer; that is its result.")]
MaxMemory = Annotated[float | None, typer.Option(help="End a run that holds more GB; that is its result.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]


RECIPES = ("default", "best", "tuned", "paper")


def _known_recipe(name: str | None) -> str | None:
    if name not in (None, *RECIPES) and not str(name).endswith(".toml"):
        raise unknown_name("recipe", str(name), RECIPES)
    return name


Recipe = Annotated[
    str | None,
    typer.Option(
        callback=_known_recipe,
        help="Where to start from: default (for any graph), best (of a dataset), tuned (the paper's encoder with our "
        "settings), paper, or a file of `topoter search`.",
    ),
]
Memory = Annotated[str | None, typer.Option(help="Memory to use at most, e.g. 4GB (else half of what is free).")]
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


def make_folder(path: Path) -> None:
    """A folder for results, found out to be writable before anything is computed."""
    from topoter.graphs.atomic import check_writable

    if path.is_file():
        raise UsageError(f"Cannot write into the folder {path}: it is a file.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_writable(path / "results")
    except OSError as error:
        raise UsageError(f"Cannot write into the folder {path}: {error.strerror or error}.") from error


class _Notes(logging.Handler):
    """The library's remarks as notes: whole lines, however narrow the terminal, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self.said:
            self.said.add(text)
            note(text)


def show_log(quiet: bool) -> None:
    """Let the library's own remarks (compiling a kernel, say) and warnings appear on stderr, one line each."""
    import warnings

    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, PoorEmbeddingWarning):
            note(f"Warning: {message}")  # also when quiet: it is about the result, not about progress
        else:
            usual(message, category, *place, **more)

    warnings.showwarning = show
    logger = logging.getLogger("topoter")
    if not logger.handlers:
        logger.addHandler(_Notes())
    logger.setLevel(logging.WARNING if quiet else logging.INFO)


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
def share_bar(description: str, quiet: bool) -> Iterator[Callable[[str, float], None] | None]:
    """A bar for work in stages, told which one it is and what share of all is done; `None` without a terminal."""
    with progress_bar(quiet or not err.is_terminal) as progress:
        if progress is None:
            yield None
            return
        task = progress.add_task(description, total=100, text="")
        yield lambda text, share: progress.update(task, completed=100 * share, text=text)


@contextmanager
def training_progress(description: str, quiet: bool) -> Iterator[Callback]:
    """A progress bar for pre-training: epoch, loss beside the prior's entropy, accuracy by type, time left.

    It moves within an epoch of several steps, too. Where stderr is no terminal, a plain line appears every tenth of the
    way instead.
    """
    from topoter.training import Callback

    with progress_bar(quiet or not err.is_terminal) as progress:

        class Shown(Callback):
            def on_start(self, state: TrainingState) -> None:
                self.epochs = state.settings.epochs
                self.task = progress.add_task(description, total=self.epochs, text="") if progress else None

            def on_step(self, state: TrainingState, done: int, total: int | None) -> None:
                if progress is not None and self.task is not None and total is not None and total > 1:
                    said = f"step {done}/{total} {describe(state.history[-1]) if state.history else ''}"
                    progress.update(self.task, completed=len(state.history) + done / total, text=said)

            def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
                if progress is not None and self.task is not None:
                    progress.update(self.task, completed=record.epoch, text=describe(record))
                elif not quiet and (record.epoch % max(1, self.epochs // 10) == 0):
                    note(f"{description} {record.epoch}/{self.epochs} {describe(record)}")

        yield Shown()


_TYPES = {"add": "add", "delete": "del", "keep_disconnected": "apart", "keep_connected": "conn"}


def describe(record: EpochRecord) -> str:
    """The loss, what guessing would cost, how often each type was right, and every other metric by its name."""
    text = f"loss {record.loss:.3f}"
    right: dict[str, str] = {}  # "" for the paper's term, "pair " for that of pairs
    others = ""
    for name, value in record.metrics.items():
        term, found, kind = name.partition("accuracy_")
        if value is None:
            continue
        if name == "prior_entropy":
            text += f" (prior {value:.3f})"
        elif found and kind in _TYPES:
            words = term.replace("_", " ")
            right[words] = right.get(words, "") + f" {_TYPES[kind]} {value:.0%}"
        elif not name.endswith("_prior_entropy"):  # the same pairs have the same prior
            others += f" {name.replace('_', ' ')} {value:.3f}"
    return text + "".join(f" {term}right:{shares}" for term, shares in right.items()) + others
