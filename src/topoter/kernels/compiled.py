"""How kernels are compiled: once, cached on disk, announced, on as many threads as PyTorch uses."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import torch

logger = logging.getLogger("topoter")

# Sums may be reordered and fused: that is what lets the compiler use vector registers. NaNs are still
# propagated by the arithmetic, and training checks that the loss is finite.
FAST_MATH = {"reassoc", "nsz", "arcp", "contract"}


def compile_kernel(parallel: bool = False, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a loop over NumPy arrays to machine code; the result is kept on disk for the next process."""
    return numba.njit(
        cache=not inline,
        parallel=parallel,
        fastmath=FAST_MATH,
        boundscheck=False,
        nogil=True,
        inline="always" if inline else "never",
    )


@functools.cache
def _announce(name: str) -> None:
    logger.info("compiling the %s kernel (first use on this machine, cached afterwards) ...", name)


def run(name: str, kernel: Any, *arguments: Any) -> Any:
    """Call a compiled kernel on PyTorch's number of threads, saying so when it has to be compiled first."""
    threads = min(torch.get_num_threads(), numba.config.NUMBA_NUM_THREADS)
    if numba.get_num_threads() != threads:
        numba.set_num_threads(threads)
    if kernel.signatures or not _needs_compiling(kernel):
        return kernel(*arguments)
    _announce(name)
    start = time.perf_counter()
    result = kernel(*arguments)
    logger.info("compiled the %s kernel in %.1f s", name, time.perf_counter() - start)
    return result


def _needs_compiling(kernel: Any) -> bool:
    """Whether the cache on disk has nothing for this kernel yet."""
    cache_path = kernel.stats.cache_path
    if cache_path is None:
        return True
    return not any(Path(cache_path).glob(f"*.{kernel.py_func.__name__}-*.nbi"))
