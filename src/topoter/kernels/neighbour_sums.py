"""Propagation over lists of neighbours as they lie on disk: no matrix with values is ever built."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from topoter.kernels.compiled import compile_kernel, num_threads, prefetch, run_parallel

_AHEAD = 8  # entries between asking for a row and using it
_NONE = np.empty(0, dtype=np.float32)


def propagate_rows(
    start: int,
    stop: int,
    indptr: np.ndarray,
    indices: np.ndarray,
    weight: np.ndarray | None,
    scale: np.ndarray,
    h: np.ndarray,
    out: np.ndarray,
) -> None:
    """Rows [start, stop) of D^-1/2 (A + I) D^-1/2 H into `out`; `scale` [N] is the diagonal of D^-1/2."""
    entries = indptr[[start, stop]]
    goals = np.linspace(entries[0], entries[1], num_threads() + 1)[1:-1]
    cuts = [start, *(start + np.searchsorted(indptr[start:stop], goals)).tolist(), stop]
    lists = (indptr, indices, _NONE if weight is None else weight, scale, h, out)
    calls = [(first, last, *lists) for first, last in pairwise(cuts)]
    run_parallel("out-of-core propagation", _propagate_rows, calls)


@compile_kernel()
def _propagate_rows(start, stop, indptr, indices, weight, scale, h, out):  # type: ignore[no-untyped-def]
    width = h.shape[1]
    last_entry = indices.shape[0] - 1
    weighted = weight.shape[0] > 0
    for row in range(start, stop):
        target, own = out[row], scale[row]
        for f in range(width):
            target[f] = own * h[row, f]
        for entry in range(indptr[row], indptr[row + 1]):
            prefetch(h, indices[min(entry + _AHEAD, last_entry)])
            j = indices[entry]
            value = scale[j]
            if weighted:
                value *= weight[entry]
            source = h[j]
            for f in range(width):
                target[f] += value * source[f]
        for f in range(width):
            target[f] *= own


def propagate_rows_plain(
    start: int,
    stop: int,
    indptr: np.ndarray,
    indices: np.ndarray,
    weight: np.ndarray | None,
    scale: np.ndarray,
    h: np.ndarray,
    out: np.ndarray,
) -> None:
    """The twin: gather, weigh, add up."""
    entries = slice(int(indptr[start]), int(indptr[stop]))
    row = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
    value = scale[indices[entries]]
    if weight is not None:
        value = value * weight[entries]
    sums = scale[start:stop, None] * h[start:stop]
    np.add.at(sums, row, value[:, None] * h[indices[entries]])
    out[start:stop] = scale[start:stop, None] * sums
