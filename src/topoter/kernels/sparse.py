"""Sparse times dense, the one product behind propagation (A H) and sparse features (X W)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from topoter.kernels import buffers, mode, use_compiled
from topoter.kernels.compiled import compile_kernel, num_threads, prefetch, run, run_parallel

# Devices whose sparse product torch has; on the others messages are gathered and scattered.
_WITH_CSR = ("cpu", "cuda")
# Multiplications below which waking a second thread costs more than it saves.
_WORTH_A_THREAD = 1 << 20
# Columns that are looked at at once for entries.
_STRETCH = 32
# Entries between asking for a row and using it.
_AHEAD = 8
# What a core's own cache holds, roughly.
_CACHE_BYTES = 2 << 20


@dataclass(eq=False)
class SparseOperator:
    """A sparse matrix in CSR form that multiplies dense ones, with a gradient for the dense side.

    Args:
        indptr: where each row starts, int64 [R + 1].
        indices: the columns, int32 [nnz].
        values: the entries, float [nnz].
        num_columns: the number of columns C.
        transposed: the operator's transpose, used by the backward pass; `None` says it is symmetric.
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    num_columns: int
    transposed: SparseOperator | None = None
    _row: Tensor | None = field(default=None, repr=False)
    _torch: Tensor | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        return self.indptr.numel() - 1, self.num_columns

    @property
    def row(self) -> Tensor:
        """The row of every entry (only the scatter product needs it)."""
        if self._row is None:
            counts = self.indptr[1:] - self.indptr[:-1]
            self._row = torch.repeat_interleave(counts)
        return self._row

    def as_torch(self, dtype: torch.dtype) -> Tensor:
        """The same matrix as torch's own CSR tensor, kept for the next product."""
        if self._torch is None or self._torch.dtype != dtype:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
                arrays = (self.indptr, self.indices.long(), self.values.to(dtype))
                self._torch = torch.sparse_csr_tensor(*arrays, self.shape, check_invariants=False)
        return self._torch

    def to(self, device: torch.device | str) -> SparseOperator:
        transposed = None if self.transposed is None else self.transposed.to(device)
        indptr, indices, values = (tensor.to(device) for tensor in (self.indptr, self.indices, self.values))
        return SparseOperator(indptr, indices, values, self.num_columns, transposed)

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(self, dense)
        return product

    @staticmethod
    def from_dense(dense: Tensor) -> SparseOperator:
        """The operator of a matrix that holds mostly zeros, with its transpose beside it."""
        if use_compiled(dense):
            rows, columns = dense.shape
            found = run("sparse features", _entries, dense.contiguous().numpy(), int(dense.count_nonzero()))
            turned = run("sparse features", _turned, *found, columns)
            forward, backward = _from_arrays(found, columns), _from_arrays(turned, rows)
        else:
            forward, backward = _csr(dense), _csr(dense.t())
        forward.transposed = backward
        return forward


def _from_arrays(arrays: Sequence[np.ndarray], num_columns: int) -> SparseOperator:
    indptr, indices, values = (torch.from_numpy(array) for array in arrays)
    return SparseOperator(indptr, indices, values, num_columns)


def _csr(dense: Tensor) -> SparseOperator:
    """The twin of `_entries`, on any device."""
    row, column = dense.nonzero(as_tuple=True)
    indptr = torch.zeros(dense.size(0) + 1, dtype=torch.int64, device=dense.device)
    torch.cumsum(torch.bincount(row, minlength=dense.size(0)), 0, out=indptr[1:])
    return SparseOperator(indptr, column.int(), dense[row, column].contiguous(), dense.size(1))


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, operator: SparseOperator, dense: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.operator = operator
        return multiply(operator, dense)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[None, Tensor]:  # type: ignore[no-untyped-def]
        return None, multiply_transposed(ctx.operator, grad)


def multiply(operator: SparseOperator, dense: Tensor) -> Tensor:
    """operator @ dense, by the fastest path of the device."""
    if use_compiled(dense):
        dense = dense.contiguous()
        out = buffers.empty(operator.shape[0], dense.size(1))
        arrays = (operator.indices.numpy(), operator.values.numpy(), dense.detach().numpy(), out.numpy())
        indptr = operator.indptr.numpy()
        rows = equal_work(indptr, dense.size(1))
        run_parallel("propagation", _multiply_rows, [(start, stop, indptr, *arrays) for start, stop in pairwise(rows)])
        return out
    if mode() == "fast" and dense.device.type in _WITH_CSR:
        product: Tensor = operator.as_torch(dense.dtype) @ dense
        return product
    return multiply_plain(operator, dense)


def multiply_transposed(operator: SparseOperator, dense: Tensor) -> Tensor:
    """operator^T @ dense: by its transpose, or where the result fits in the cache and `dense` does not, by itself."""
    if operator.transposed is None:
        return multiply(operator, dense)
    width = dense.size(1)
    fits = 4 * operator.num_columns * width <= _CACHE_BYTES < 4 * operator.shape[0] * width
    if not (fits and use_compiled(dense)):
        return multiply(operator.transposed, dense)
    dense = dense.contiguous()
    out = torch.zeros(operator.num_columns, width)
    arrays = [array.numpy() for array in (operator.indptr, operator.indices, operator.values)]
    cuts = [width * part // num_threads() for part in range(num_threads() + 1)]
    calls = [(first, last, *arrays, dense.detach().numpy(), out.numpy()) for first, last in pairwise(cuts)]
    run_parallel("propagation", _scatter_columns, calls)
    return out


def multiply_plain(operator: SparseOperator, dense: Tensor) -> Tensor:
    """The twin: gather, weigh, scatter; any device, any float type."""
    out = dense.new_zeros(operator.shape[0], dense.size(1))
    messages = dense[operator.indices.long()] * operator.values.to(dense.dtype).unsqueeze(1)
    return out.index_add_(0, operator.row, messages)


def equal_work(indptr: np.ndarray, width: int) -> list[int]:
    """Where to cut the rows so that every thread gets as many entries; small products are not cut."""
    total = int(indptr[-1])
    threads = num_threads() if total * width >= _WORTH_A_THREAD else 1
    cuts = np.searchsorted(indptr, [total * part // threads for part in range(1, threads)])
    return [0, *(int(cut) for cut in cuts), indptr.shape[0] - 1]


@compile_kernel(inline=True)
def row_of_product(row, indptr, indices, values, source, out):  # type: ignore[no-untyped-def]
    """One row of the product, into `out`: four entries at a time, so that it is read and written once for all four."""
    width = source.shape[1]
    begin, end = indptr[row], indptr[row + 1]
    last_entry = indices.shape[0] - 1
    for entry in range(begin, end):
        prefetch(source, indices[min(entry + _AHEAD, last_entry)])
    for f in range(width):
        out[f] = np.float32(0)
    entry = begin
    while entry + 4 <= end:
        v0, v1, v2, v3 = values[entry], values[entry + 1], values[entry + 2], values[entry + 3]
        s0, s1 = source[indices[entry]], source[indices[entry + 1]]
        s2, s3 = source[indices[entry + 2]], source[indices[entry + 3]]
        for f in range(width):
            out[f] += v0 * s0[f] + v1 * s1[f] + v2 * s2[f] + v3 * s3[f]
        entry += 4
    while entry < end:
        value, neighbour = values[entry], source[indices[entry]]
        for f in range(width):
            out[f] += value * neighbour[f]
        entry += 1


@compile_kernel()
def _multiply_rows(start, stop, indptr, indices, values, source, out):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        row_of_product(row, indptr, indices, values, source, out[row])


@compile_kernel()
def _scatter_columns(first, last, indptr, indices, values, dense, out):  # type: ignore[no-untyped-def]
    """Columns [first, last) of the transposed product: every row of `dense` is read once, added where it belongs."""
    width = last - first
    for row in range(indptr.shape[0] - 1):
        source = dense[row, first:last]
        for entry in range(indptr[row], indptr[row + 1]):
            value = values[entry]
            target = out[indices[entry], first:last]
            for f in range(width):
                target[f] += value * source[f]


@compile_kernel()
def _entries(dense, count):  # type: ignore[no-untyped-def]
    """Where rows start, columns and values of what is not zero; stretches of zeros are passed over."""
    num_rows, width = dense.shape
    indptr = np.zeros(num_rows + 1, dtype=np.int64)
    indices = np.empty(count, dtype=np.int32)
    values = np.empty(count, dtype=np.float32)
    entry = 0
    for row in range(num_rows):
        line = dense[row]
        for first in range(0, width, _STRETCH):
            last, size = min(first + _STRETCH, width), np.float32(0)
            for column in range(first, last):
                size += abs(line[column])
            if size != 0:
                for column in range(first, last):
                    if line[column] != 0:
                        indices[entry], values[entry] = column, line[column]
                        entry += 1
        indptr[row + 1] = entry
    return indptr, indices, values


@compile_kernel()
def _turned(indptr, indices, values, num_columns):  # type: ignore[no-untyped-def]
    """The transpose, by counting."""
    start = np.zeros(num_columns + 1, dtype=np.int64)
    for entry in range(indices.shape[0]):
        start[indices[entry] + 1] += 1
    for column in range(num_columns):
        start[column + 1] += start[column]
    filled = start[:-1].copy()
    rows, turned = np.empty_like(indices), np.empty_like(values)
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            place = filled[indices[entry]]
            rows[place], turned[place] = row, values[entry]
            filled[indices[entry]] = place + 1
    return start, rows, turned
