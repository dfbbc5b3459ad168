"""How long a run may take and how much memory it may hold; one that needs more is ended, and that is its result.

A run with limits is made in a process of its own (`child.py`), which is watched from here: code that is busy inside a
library could not watch itself.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
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
    """What became of a process: its last line, or the limit that ended it, or (neither) the code it ended with."""

    answer: Any
    stopped: Stopped | None
    code: int
    seconds: float
    peak_mb: float


def watch(module: str, request: bytes, limits: Limits, on_line: Callable[[Any], None]) -> Watched:
    """Run a module of ours in a process of its own, give it a request, and end it where it passes a limit.

    Args:
        request: what it reads from its standard input.
        on_line: gets every line of JSON that it writes but the last, which is its answer.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdin is not None
    start, peak, latest, stopped = time.monotonic(), 0.0, None, None
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
    try:
        reader.start()
        process.stdin.write(request)
        process.stdin.close()
        while stopped is None:
            try:
                line = lines.get(timeout=_LOOK_EVERY)
            except queue.Empty:
                peak = max(peak, memory_of(process.pid))
                stopped = limits.reached(time.monotonic() - start, peak)
                continue
            if line is None:
                break
            if latest is not None:
                on_line(latest)
            latest = json.loads(line)
    except BrokenPipeError:  # it ended before it had read the request: its code says how
        pass
    finally:
        if stopped is not None or sys.exc_info()[0] is not None:
            process.kill()
        process.wait()
        reader.join()
        assert process.stdout is not None
        process.stdout.close()
    return Watched(latest, stopped, process.returncode, time.monotonic() - start, peak)


def _read(stream: Any, lines: queue.SimpleQueue[bytes | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


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
