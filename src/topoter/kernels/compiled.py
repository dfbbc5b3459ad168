"""How kernels are compiled and run: once, cached on disk, announced, on as many threads as PyTorch uses."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numba
import torch
from numba import types
from numba.extending import intrinsic

logger = logging.getLogger("topoter")

# Sums may be reordered and fused: that is what lets the compiler use vector registers. NaNs are still
# propagated by the arithmetic, and training checks that the loss is finite.
FAST_MATH = {"reassoc", "nsz", "arcp", "contract"}


def compile_kernel(inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a loop over NumPy arrays to machine code; the result is kept on disk for the next process."""
    return numba.njit(
        cache=not inline, fastmath=FAST_MATH, boundscheck=False, nogil=True, inline="always" if inline else "never"
    )


@intrinsic
def prefetch(typing_context: Any, array: Any, row: Any) -> Any:
    """Ask for the start of a row of a matrix before it is needed: the processor works on while memory answers.

    Rows that are looked up at random come from main memory once a graph outgrows the caches; a stream of entries
    tells which ones will be needed a few steps later.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir
        from numba.core import cgutils

        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = [
            context.cast(builder, arguments[1], signature.args[1], types.intp),
            context.get_constant(types.intp, 0),
        ]
        start = cgutils.get_item_pointer(context, builder, signature.args[0], matrix, place)
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        address = builder.bitcast(start, byte)
        for line in range(_LINES_AHEAD):
            here = builder.gep(address, [ir.Constant(ir.IntType(64), 64 * line)])
            builder.call(function, [here, number(0), number(3), number(1)])  # to read, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, row), generate


# Lines of 64 bytes asked for at once; beyond them the processor notices the stream by itself.
_LINES_AHEAD = 4


def num_threads() -> int:
    """As many as PyTorch uses, and no more than there are cores."""
    return min(torch.get_num_threads(), os.cpu_count() or 1)


def run(name: str, kernel: Any, *arguments: Any) -> Any:
    """Call a compiled kernel, saying so when it has to be compiled first."""
    if kernel.signatures or not _needs_compiling(kernel):
        return kernel(*arguments)
    _announce(f"compiling the {name} kernel (once on this machine) ...")
    start = time.perf_counter()
    kernel.compile(tuple(map(kernel.typeof_pyval, arguments)))
    _announce(f"compiled the {name} kernel in {time.perf_counter() - start:.1f} s")
    return kernel(*arguments)


def _announce(text: str) -> None:
    """Say why nothing seems to happen, even to those who have not set up logging."""
    if logger.hasHandlers():
        logger.info(text)
    else:
        print(f"topoter: {text}", file=sys.stderr)


def run_parallel(name: str, kernel: Any, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Make several calls of one kernel at the same time; none may write where another one does.

    Plain threads serve, because kernels release Python's lock: unlike a second OpenMP pool beside PyTorch's they
    sleep when idle, and several users of this library in one process do not disturb each other.
    """
    if len(calls) == 1 or not kernel.signatures:  # not compiled yet: never compile on two threads at once
        return [run(name, kernel, *arguments) for arguments in calls]
    others = [_pool().submit(kernel, *arguments) for arguments in calls[1:]]
    first = kernel(*calls[0])
    return [first, *(other.result() for other in others)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="topoter")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has no threads: it makes its own


def _needs_compiling(kernel: Any) -> bool:
    """Whether the cache on disk has nothing for this kernel, as it is written now, in this Python."""
    cache_path, code = kernel.stats.cache_path, kernel.py_func.__code__
    if cache_path is None:
        return True
    written = Path(code.co_filename).stat().st_mtime
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    found = Path(cache_path).glob(f"*.{code.co_name}-{code.co_firstlineno}.{python}*.nbi")
    return not any(index.stat().st_mtime >= written for index in found)
