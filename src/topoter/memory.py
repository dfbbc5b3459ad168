"""How much memory there is, and amounts of it as users write them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from topoter.errors import TopoterError, UsageError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_GROUP = Path("/sys/fs/cgroup")


_LIBRARIES = 2 * 10**9  # address space, measured 1.6 GB without CUDA: most of it is reserved, not used
_CLOSE = 256 << 20  # to the limit: libraries ask for more than that at once
# How PyTorch, the loader of shared libraries, C++ and the system say that there is none left.
_REFUSALS = ("can't allocate memory", "failed to map segment", "std::bad_alloc", "annot allocate memory")


def free_memory() -> int:
    """Bytes that this process can still get without driving others out: of the machine, a container, `ulimit -v`."""
    free = min(_machine_free(), _limit_free())
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


def _limit_free(field: str = "VmSize") -> int:
    """What `ulimit -v` leaves to this process; with "VmPeak" what it left when least was left."""
    try:
        import resource  # not on Windows

        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    except (ImportError, OSError):
        return sys.maxsize
    return sys.maxsize if allowed == resource.RLIM_INFINITY or not used else max(0, allowed - (int(used[1]) << 10))


def check_limit() -> None:
    """Raise where `ulimit -v` leaves too little for PyTorch and its like: without room they abort, without a word."""
    left = _limit_free()
    if left < _LIBRARIES:
        raise TopoterError(
            f"The memory limit (ulimit -v) leaves {show_memory(left)} of address space. PyTorch and its libraries "
            f"alone need {show_memory(_LIBRARIES)}: raise the limit to {show_memory(2 * _LIBRARIES)} or more."
        )


def is_shortage(error: BaseException) -> bool:
    """Whether an error says that there was not enough memory; libraries have many words for it.

    Close to a limit any error does: half-loaded libraries fail in ways of their own.
    """
    said = isinstance(error, MemoryError) or any(words in str(error) for words in _REFUSALS)
    return said or _limit_free("VmPeak") < _CLOSE


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
