"""What a first use costs: compiling the kernels once on a machine, importing topoter every time, a look at the help."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

_IMPORT = """
import time
start = time.perf_counter()
import torch
between = time.perf_counter()
from topoter import TopoTER
print(between - start, time.perf_counter() - between)
"""
_STEP = """
import time
from benchmarks.steps import our_step
from topoter.datasets import block_model
step = our_step(block_model(2000, 4, 6.0, 64, 0), 64)
start = time.perf_counter()
step()
print(time.perf_counter() - start)
"""
# Each as a user calls it, in a Python of its own.
_CALLS = {
    "import torch": ["-c", "import torch"],
    "topoter --help": ["-m", "topoter", "--help"],
    "topoter --version": ["-m", "topoter", "--version"],
    "topoter fti": ["-m", "topoter", "fti"],
    "topoter fit --help": ["-m", "topoter", "fit", "--help"],
}


def _printed(code: str, **environment: str) -> list[float]:
    """The numbers that a new Python prints."""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return [float(word) for word in answer.stdout.split()]


def _seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
    return time.perf_counter() - start


def calls(rounds: int = 5) -> dict[str, float]:
    """Each call's share of the time of `import torch`; all in turn, several times, so that noise hits them alike."""
    measured = [{name: _seconds(arguments) for name, arguments in _CALLS.items()} for _ in range(rounds + 1)][1:]
    medians = {name: statistics.median(row[name] for row in measured) for name in _CALLS}
    torch_s = medians.pop("import torch")
    return {name: seconds / torch_s for name, seconds in medians.items()}


def startup(rounds: int = 5) -> dict[str, Any]:
    """Seconds: the first step with no compiled kernels on disk and with them, and the imports (medians).

    `calls_by_torch`: what help, version and wrong calls take, as shares of the time of `import torch`.
    """
    with tempfile.TemporaryDirectory() as empty:
        cold, warm = (_printed(_STEP, NUMBA_CACHE_DIR=empty)[0] for _ in range(2))
    _printed(_IMPORT)  # files come from the disk's cache from now on
    torch_s, topoter_s = zip(*(_printed(_IMPORT) for _ in range(rounds)))
    return {
        "first_step_s": cold,
        "first_step_cached_s": warm,
        "import_torch_s": statistics.median(torch_s),
        "import_topoter_s": statistics.median(topoter_s),
        "calls_by_torch": calls(rounds),
    }


if __name__ == "__main__":
    print("\n".join(f"{name}: {share:.2f} of the time of `import torch`" for name, share in calls().items()))
