"""The command line: one file per command; the only place that prints.

Results go to stdout, progress and errors to stderr. Exit code 2 means the call was wrong, 1 that it failed.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from topoter import __version__
from topoter.cli import (
    cluster,
    datasets,
    demo,
    embed,
    env,
    evaluate,
    explore,
    fit,
    links,
    neighbors,
    report,
    reproduce,
    search,
)
from topoter.cli.output import error_line, out
from topoter.errors import BadRowError, TopoterError

INTERRUPTED = 130
# Typer may carry its own copy of click; the base of its errors is the same class either way.
_CallError: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="topoter",
    help="Graph embeddings without labels, learned by predicting what was done to a graph's edges.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    demo,
    datasets,
    fit,
    embed,
    links,
    cluster,
    neighbors,
    explore,
    evaluate,
    reproduce,
    report,
    search,
    env,
):
    app.command(command.__name__.rsplit(".", 1)[-1])(command.run)


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
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # what Typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
    except TopoterError as error:
        hint = " Fix it, or leave such rows out with --drop-bad." if isinstance(error, BadRowError) else ""
        error_line(f"{error}{hint}")
        code = error.exit_code
    except _CallError as error:
        if error.format_message():  # without any argument the help is all there is to say
            error_line(error.format_message())
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        error_line("Interrupted.")
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        code = 0
    except OSError as error:  # a folder where a file should be, no permission, a full disk
        error_line(f"{error.filename}: {error.strerror}." if error.filename else str(error))
        code = 1
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
