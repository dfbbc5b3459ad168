"""Ctrl-C and SIGTERM in a command: the first ends it well, a second at once.

The first is a KeyboardInterrupt: what is half written is removed, what is made is kept. Another one while that goes on
would tear it apart (libraries in C have aborted over it), so the process leaves there and then; whatever it could not
remove is removed by the next call that writes in the same place.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED = 130  # the exit code
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it

_received: list[int] = []


def listen() -> None:
    """Answer signals from here on, also SIGINT in a process that a shell started in the background, to ignore it."""
    _received.clear()
    sys.unraisablehook = _unraisable
    for number in _SIGNALS:
        signal.signal(number, _receive)


def ignore() -> None:
    """Let nothing come between the last line and the end."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def was_asked_for() -> bool:
    """Whether a signal came; a library may have turned it into an error of its own."""
    return bool(_received)


def leave_at_once(words: str = "Interrupted.") -> NoReturn:
    """One line, and the end, without handing the exception through whatever is going on."""
    ignore()
    line = f"error: {words}\n"
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, (_cursor() + line).encode())
    os._exit(INTERRUPTED)


def _cursor() -> str:
    return f"\n{_SHOW_CURSOR}" if sys.__stderr__ and sys.__stderr__.isatty() else ""


def _unraisable(caught: Any) -> None:
    """Where C called Python, as numba does when it loads what is compiled, a KeyboardInterrupt would be lost."""
    if caught.exc_type is KeyboardInterrupt:
        leave_at_once()
    sys.__unraisablehook__(caught)


def _receive(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if len(_received) > 1:
        leave_at_once()
    raise KeyboardInterrupt
