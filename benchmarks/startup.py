"""What a first use costs: compiling the kernels once on a machine, and importing topoter every time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

_IMPORT = """
import time
start = time.perf_counter()
import torch
between = time.perf_counter()
import topoter
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


def _printed(code: str, **environment: str) -> list[float]:
    """The numbers that a new Python prints."""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return [float(word) for word in answer.stdout.split()]


def startup(rounds: int = 5) -> dict[str, Any]:
    """Seconds: the first step with no compiled kernels on disk and with them, and the imports (medians)."""
    with tempfile.TemporaryDirectory() as empty:
        cold, warm = (_printed(_STEP, NUMBA_CACHE_DIR=empty)[0] for _ in range(2))
    _printed(_IMPORT)  # files come from the disk's cache from now on
    torch_s, topoter_s = zip(*(_printed(_IMPORT) for _ in range(rounds)))
    return {
        "first_step_s": cold,
        "first_step_cached_s": warm,
        "import_torch_s": statistics.median(torch_s),
        "import_topoter_s": statistics.median(topoter_s),
    }
