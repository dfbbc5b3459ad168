"""The command line: one file per command; the only place that prints.

Results go to stdout, progress and errors to stderr. Exit code 2 means the call was wrong, 1 that it failed.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from topoter import __version__, interruption
from topoter.cli.output import error_line, out
from topoter.errors import BadRowError, TopoterError
from topoter.interruption import INTERRUPTED
from topoter.memory import check_limit, is_shortage

_SHORTAGE = (
    "There is not enough memory for this. `topoter estimate` tells how much is needed; a graph that `topoter import` "
    "made, and --memory, need less."
)
# Typer may carry its own copy of click; the base of its errors is the same class either way.
_CallError: Any = typer.BadParameter.__mro__[2]

# Each is `run` in the file of that name. The list of commands says this line of it and imports none of them.
COMMANDS = {
    "demo": "Pre-train on Cora or MUTAG without labels, classify, write a report. Offline, a minute.",
    "datasets": "List the datasets: what is known, what is on disk, how to get the rest.",
    "import": "Make a graph directory of tables of edges that may be larger than memory.",
    "estimate": "Estimate the memory and the time that fit and embed will need.",
    "fit": "Pre-train on a graph, on a set of graphs, or on a graph over time, and save the model.",
    "info": "Tell what a model file or an imported graph holds.",
    "label": "Label all nodes of a graph from the labels of some, with probabilities.",
    "embed": "Embed a graph's nodes, or the graphs of a set, with a saved model.",
    "links": "Rank the pairs of nodes that are not connected and most likely should be.",
    "anomalies": "Find nodes that do not fit their neighbours, edges that look false, and missing ones.",
    "cluster": "Group nodes by their embeddings.",
    "neighbors": "Find the nearest neighbours of nodes by their embeddings.",
    "explore": "Write a page to walk through embeddings: a map to zoom, search, colour and click.",
    "evaluate": "Evaluate a method on a dataset, or all usual ones on your own graph and labels.",
    "reproduce": "Reproduce a table or figure of the paper, or all of them.",
    "report": "Write what was run as one self-contained page, or as Markdown.",
    "search": "Search for good parameters, without a look at the test labels.",
    "env": "Show versions, threads, devices, and which kernels are active.",
}


def _from_file(attribute: str) -> Any:
    return property(lambda command: getattr(command.loaded, attribute), lambda command, value: None)


class _Command(TyperCommand):
    """A command whose file is imported when its help or its options are asked for, not when it is listed."""

    help, params, callback = _from_file("help"), _from_file("params"), _from_file("callback")

    @cached_property
    def loaded(self) -> Any:
        alone = typer.Typer(add_completion=False)
        alone.command(self.name)(import_module(f"topoter.cli.{self.name}").run)
        return typer.main.get_command(alone)

    def invoke(self, ctx: Any) -> Any:
        check_limit()
        return super().invoke(ctx)


app = typer.Typer(
    name="topoter",
    help="Graph embeddings without labels, learned by predicting what was done to a graph's edges.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _line in COMMANDS.items():
    app.command(_name, cls=_Command, short_help=_line)(lambda: None)


def _show_version(asked: bool) -> None:
    if asked:
        out.print(f"topoter {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Graph embeddings without labels, learned by predicting what was done to a graph's edges."""


def main() -> None:
    """Run a command and turn every expected failure into one line and an exit code."""
    if any(":" in argument for argument in sys.argv[1:]):  # "my_module:MyEncoder": also a module in this folder
        sys.path.append(os.getcwd())
    line = ""
    try:
        code = app(prog_name="topoter", standalone_mode=False)
        if code == INTERRUPTED:  # what Typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
    except TopoterError as error:
        hint = " Fix it, or leave such rows out with --drop-bad." if isinstance(error, BadRowError) else ""
        code, line = error.exit_code, f"{error}{hint}"
    except _CallError as error:
        code, line = error.exit_code, error.format_message()  # without any argument the help is all there is to say
    except (KeyboardInterrupt, typer.Abort):
        code, line = INTERRUPTED, "Interrupted."
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        code = 0
    except OSError as error:  # a folder where a file should be, no permission, a full disk
        code, line = 1, f"{error.filename}: {error.strerror}." if error.filename else str(error)
    except Exception as error:
        if not is_shortage(error) and not interruption.was_asked_for():
            raise
        code, line = 1, _SHORTAGE
    if code not in (0, None, INTERRUPTED) and interruption.was_asked_for():
        code, line = INTERRUPTED, "Interrupted."  # a library, or whoever trusted it, took the signal for a failure
    interruption.ignore()
    if line:
        error_line(line)
    _leave(code if isinstance(code, int) else 0)


def _leave(code: int) -> NoReturn:
    """End the process at once, without taking the interpreter apart.

    A thread of a library that then still lets go of a Python object (Arrow's readers may) is ended by Python, and C++
    aborts the process for it. Seen in one of 90 calls on a busy machine: exit code 134 after all was done and said.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
