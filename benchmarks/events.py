"""How long `topoter fit --snapshots --every 1d` takes: 20,000 events of 500 users in 60 days, as a real sub-process.

    python benchmarks/events.py

Prints the time of the whole command, and that of one over half of the days, so that the growth shows.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

EVENTS, USERS, DAYS = 20_000, 500, 60


def write_events(path: Path, events: int, days: int) -> None:
    """Messages within groups of 25 users, half of whom are away on any day."""
    random = np.random.default_rng(0)
    first = random.integers(0, USERS, events)
    second = (first // 25) * 25 + random.integers(0, 25, events)
    stamp = np.datetime64("2024-01-01T00:00:00") + random.integers(0, days * 86_400, events)
    lines = [f"u{a},u{b},{when}" for a, b, when in zip(first, second, stamp) if a != b]
    path.write_text("\n".join(["source,target,time", *lines]) + "\n")


def fitted(folder: Path, events: int, days: int) -> tuple[float, float]:
    """Seconds, and seconds of CPU time."""
    write_events(folder / "events.csv", events, days)
    command = [sys.executable, "-m", "topoter", "fit", "--snapshots", "events.csv", "--every", "1d", "-q"]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "-o", "m.topoter"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        for share in (2, 1):
            events, days = EVENTS // share, DAYS // share
            wall, cpu = fitted(Path(folder), events, days)
            print(f"{events:,} events of {USERS} users in {days} daily bins: {wall:.1f} s, {cpu:.1f} s of CPU time")
