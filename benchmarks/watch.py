"""Run a command and tell what it took: `python -S benchmarks/watch.py COMMAND...`; the last line it prints is JSON.

A process's own peak starts at that of the process it was forked from, so that a small one, this one, stands between.
Each process is looked at ten times a second. Memory is told apart by what it is:

    peak_mb       the largest resident set that the system counted for a process, pages of mapped files included
    anonymous_mb  of that what is the process's own, as far as the looks saw it
    mapped_mb     pages of mapped files: the system takes them back when it needs the room

A command that starts others (torchrun) is told by its largest process; `processes_mb` are the peaks of all of them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

SECONDS = 0.1
FIELDS = {"VmHWM": "peak_mb", "RssAnon": "anonymous_mb", "RssFile": "mapped_mb"}


def look(process: int, seen: dict[int, dict[str, float]]) -> None:
    """Take down the memory of a process and of those it started."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
        started = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return
    found = seen.setdefault(process, dict.fromkeys(FIELDS.values(), 0.0))
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name in FIELDS:
            key = FIELDS[name]
            found[key] = max(found[key], int(value.split()[0]) * 1024 / 1e6)
    for child in started.split():
        look(int(child), seen)


def main(command: list[str]) -> None:
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ)
    seen: dict[int, dict[str, float]] = {}
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
        look(child, seen)
        time.sleep(SECONDS)
    largest = max(seen.values(), key=lambda found: found["peak_mb"])
    unit = 1e6 if sys.platform == "darwin" else 1024 / 1e6 * 1e0
    told = {
        "code": os.waitstatus_to_exitcode(status),
        "seconds": time.perf_counter() - start,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        **largest,
        "processes_mb": sorted((found["peak_mb"] for found in seen.values()), reverse=True),
    }
    told["peak_mb"] = max(told["peak_mb"], usage.ru_maxrss * unit)
    print("\n" + json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])
