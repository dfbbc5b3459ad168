"""Large buffers that are used again: fresh memory costs a page fault per 4 KB, often more than the work on it.

Allocators give large blocks back to the system when they are freed, so every step of training would pay that price
anew. Here a freed block waits for the next request of about its size, until `release()`. Sizes are rounded up, because
batches of graphs differ a little in size each time: by exact size, blocks would pile up that nobody asks for again.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

_SMALL = 1 << 17  # bytes; below, the ordinary allocator keeps what is freed by itself
_TYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.int64: np.dtype(np.int64),
    torch.bool: np.dtype(np.bool_),
}
_free: defaultdict[int, list[np.ndarray]] = defaultdict(list)


def empty(*shape: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Tensor:
    """An uninitialised tensor; its memory comes back here when nothing refers to it any more.

    On other devices than the CPU PyTorch's own allocator already keeps what is freed.
    """
    if device is not None and device.type != "cpu":
        return torch.empty(*shape, dtype=dtype, device=device)
    kind = _TYPES[dtype]
    size = int(np.prod(shape)) * kind.itemsize
    if size < _SMALL:
        return torch.empty(*shape, dtype=dtype)
    room = _rounded_up(size)
    waiting = _free[room]
    block = waiting.pop() if waiting else np.empty(room, dtype=np.uint8)
    # The tensor's storage holds on to this view, and only the view's end says that the block is free.
    view = block[:size]
    weakref.finalize(view, waiting.append, block).atexit = False
    return torch.from_numpy(view).view(dtype).view(*shape)


def _rounded_up(size: int) -> int:
    """The next of eight sizes between two powers of two; what is too much is never touched, so it costs no memory."""
    step = 1 << max(size.bit_length() - 4, 0)
    return -(-size // step) * step


def release() -> None:
    """Give the waiting blocks back to the system, and what the C library keeps of freed memory."""
    for waiting in _free.values():
        waiting.clear()
    trim = _malloc_trim()
    if trim:
        trim(0)


@cache
def _malloc_trim() -> Any:
    """glibc's own, where it is the C library."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
