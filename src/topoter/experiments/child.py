"""Runs in a process of their own: asked for line by line on standard input, told line by line in JSON.

{"progress": [3, 10, "fold 3 of 10"]}
{"made": {...}} | {"failed": [message, exit code, trace]} | {"out_of_memory": true}
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from topoter.experiments.engines import end_with
from topoter.experiments.experiment import Progress
from topoter.experiments.runs import Run
from topoter.experiments.store import plain


class Request(msgspec.Struct, frozen=True):
    """Which run to make, where the data are, and for which process."""

    run: Run
    data_root: str | None
    parent: int


def main() -> None:
    """Make the runs that are asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; our parent ends us
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)  # whatever a library prints is not for our parent to read

        def tell(content: dict[str, Any]) -> None:
            channel.write(msgspec.json.encode(content, enc_hook=plain) + b"\n")
            channel.flush()

        for number, line in enumerate(sys.stdin.buffer):
            request = msgspec.json.decode(line, type=Request)
            if number == 0:
                threading.Thread(target=end_with, args=(request.parent,), daemon=True).start()
            tell(_answer(request, lambda *step: tell({"progress": step})))


def _answer(request: Request, progress: Progress) -> dict[str, Any]:
    from topoter.experiments.runner import failure_of, make_here

    try:
        return {"made": make_here(request.run, Path(request.data_root) if request.data_root else None, progress)}
    except Exception as error:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # NumPy's way, and PyTorch's
            return {"out_of_memory": True}
        failure = failure_of(request.run, error)
        return {"failed": [failure.message, failure.exit_code, failure.trace]}


if __name__ == "__main__":
    main()
