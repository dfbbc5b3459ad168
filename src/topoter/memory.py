"""How much memory there is, and amounts of it as users write them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from topoter.errors import UsageError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_GROUP = Path("/sys/fs/cgroup")


def free_memory() -> int:
    """Bytes that a process can still get without driving others out: what the machine has, or what a container may."""
    free = _machine_free()
    try:  # a container's limit, where there is one ("max" says there is none)
        allowed = int((_GROUP / "memory.max").read_text())
        free = min(free, max(0, allowed - int((_GROUP / "memory.current").read_text())))
    except (OSError, ValueError):
        pass
    return free


def _machine_free() -> int:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found:
        return int(found.group(1)) << 10
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # macOS does not tell: half of all


def parse_memory(text: str, option: str = "--memory") -> int:
    """An amount of memory in bytes: "4GB", "500M", "1.5GiB"."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([kmgt]?i?)b?", text.strip().lower())
    size = int(float(found.group(1)) * _UNITS.get(found.group(2), 0)) if found else 0
    if size <= 0:
        raise UsageError(f"{option} must be an amount such as 500MB or 4GB. Got {text!r} instead.")
    return size


def show_memory(size: float) -> str:
    """An amount of memory as one reads it."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1000:.0f} kB"
