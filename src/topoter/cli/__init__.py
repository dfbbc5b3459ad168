"""The command line: one file per command; the only place that prints.

Results go to stdout, progress and errors to stderr. Exit code 2 means the call was wrong, 1 that it failed.
"""

from __future__ import annotations

import sys
from typing import Any

import typer

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
from topoter.cli.output import error_line
from topoter.errors import TopoterError

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


@app.callback()
def _root() -> None:
    """Graph embeddings without labels, learned by predicting what was done to a graph's edges."""


def main() -> None:
    """Run a command and turn every expected failure into one line and an exit code."""
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # what Typer makes of Ctrl-C
            raise KeyboardInterrupt
    except TopoterError as error:
        error_line(str(error))
        code = error.exit_code
    except _CallError as error:
        error_line(error.format_message())
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        error_line("Interrupted.")
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
