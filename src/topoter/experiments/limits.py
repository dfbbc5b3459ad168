"""How long a run may take and how much memory it may hold; one that needs more is ended, and that is its result.

A run with limits is made in another process (`child.py`), which is watched from here: code that is busy inside a
library could not watch itself. One process makes all seeds of a row, because to start it takes seconds.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from topoter.errors import UsageError

_LOOK_EVERY = 0.1  # seconds between two looks at a process


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most a run may take; None: whatever it needs."""

    hours: float | None = None
    memory_gb: float | None = None

    def check(self) -> None:
        for name, value in (("hours", self.hours), ("memory_gb", self.memory_gb)):
            if value is not None and value <= 0:
                raise UsageError(f"The limit {name} must be more than 0. Got {value} instead.")

    def reached(self, seconds: float, megabytes: float) -> Stopped | None:
        """The limit that a run has run into, if it has."""
        if self.hours is not None and seconds > 3600 * self.hours:
            return Stopped("time", self.hours)
        if self.memory_gb is not None and megabytes > 1024 * self.memory_gb:
            return Stopped("memory", self.memory_gb)
        return None


class Stopped(msgspec.Struct, frozen=True):
    """Which limit ended a run: hours or GB; 0 GB where the machine itself had no more."""

    by: Literal["time", "memory"]
    limit: float

    @property
    def text(self) -> str:
        """As a cell of a table says it."""
        if self.by == "memory":
            return "out of memory"
        return "> 1 day" if self.limit == 24 else f"> {self.limit:.3g} h"

    def stands_for(self, limits: Limits | None) -> bool:
        """Whether a run under these limits would be ended as well; without any, what is known is kept."""
        if limits is None:
            return True
        asked = limits.hours if self.by == "time" else limits.memory_gb
        return asked is not None and asked <= self.limit


@dataclass(frozen=True)
class Watched:
    """What became of a request: the answer, or the limit that ended it, or (neither) how its process ended."""

    answer: Any
    stopped: Stopped | None
    code: int
    seconds: float
    peak_mb: float


class _Child:
    """A process of ours that answers requests, each a line of JSON, until its input ends."""

    def __init__(self, module: str, serves: Hashable) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.serves = (module, serves)
        self.process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, request: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(request + b"\n")
        self.process.stdin.flush()

    def end(self, *, by_itself: bool = False) -> int:
        """End it at once, or wait until it has ended by itself; returns its code."""
        if not by_itself:
            self.process.kill()
        code = self.process.wait()
        self._reader.join()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)


_idle: list[_Child] = []  # whose last request is answered; threads of a cluster's worker have one each


@atexit.register
def end_idle() -> None:
    """End the processes that wait for another run."""
    while _idle:
        _idle.pop().end()


def watch(module: str, serves: Hashable, request: bytes, limits: Limits, on_progress: Callable[[Any], None]) -> Watched:
    """Give a request to a module of ours in another process, and end that where it passes a limit.

    Args:
        serves: what requests must have in common to be given to the same process.
        request: a line for its standard input.
        on_progress: gets every "progress" that it tells; any other line of JSON is its answer.
    """
    child = _idle.pop() if _idle else None
    if child is not None and child.serves != (module, serves):
        child.end()
        child = None
    child = child or _Child(module, serves)
    start, peak, stopped, answer, code, ended = time.monotonic(), 0.0, None, None, 0, False
    try:
        child.ask(request)
        while stopped is None and answer is None:
            try:
                line = child.lines.get(timeout=_LOOK_EVERY)
            except queue.Empty:
                peak = max(peak, memory_of(child.process.pid))
                stopped = limits.reached(time.monotonic() - start, peak)
                continue
            if line is None:
                ended = True
                break
            told = json.loads(line)
            if "progress" in told:
                on_progress(told["progress"])
            else:
                answer = told
    except BrokenPipeError:  # it ended before it had read the request: its code says how
        ended = True
    finally:
        if answer is not None and "made" in answer:
            _idle.append(child)
        else:
            code = child.end(by_itself=ended)
    return Watched(answer, stopped, code, time.monotonic() - start, peak)


def memory_of(pid: int) -> float:
    """What a process holds now, in MB; 0 where that is not known."""
    statm = Path(f"/proc/{pid}/statm")
    try:
        if statm.parent.parent.joinpath("self").exists():
            return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return int(shown.stdout or 0) / 1024
    except (OSError, ValueError):  # it has just ended
        return 0.0
