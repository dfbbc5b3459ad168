"""dH of one SGC layer in one go: both graphs, all hops, bias and activation, a few columns at a time.

Columns do not touch each other, so a block of them that fits in the cache runs through all hops before the next one
comes, and threads share out the columns without ever waiting for each other. What is kept for the backward pass is one
bit of information per entry and graph: the sign before the activation. The twin is `TopoTERModel.delta` without it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from topoter.kernels import buffers
from topoter.kernels.compiled import compile_kernel, num_threads, run_parallel
from topoter.kernels.sparse import SparseOperator

_BLOCK_BYTES = 8 << 20  # of one block of columns
_NO_MASK = np.empty((0, 0), dtype=np.bool_)


def sgc_delta(
    signal: Tensor, bias: Tensor, before: SparseOperator, after: SparseOperator, order: int, negative_slope: float
) -> Tensor:
    """LeakyReLU(after^k signal + bias) - LeakyReLU(before^k signal + bias), [N, F]; both operators symmetric."""
    delta: Tensor = _Delta.apply(signal, bias, before, after, order, negative_slope)
    return delta


class _Delta(torch.autograd.Function):
    @staticmethod
    def forward(ctx, signal, bias, before, after, order, negative_slope):  # type: ignore[no-untyped-def]
        signal = signal.contiguous()
        delta = buffers.empty(*signal.shape)
        # Without an activation the bias cancels out and no sign matters.
        masks = [] if negative_slope == 1 else [buffers.empty(*signal.shape, dtype=torch.bool) for _ in range(2)]
        arrays = (signal.detach().numpy(), bias.detach().numpy(), order, np.float32(negative_slope))
        _over_columns(_delta_columns, signal, before, after, (*arrays, delta.numpy(), *_as_arrays(masks)))
        ctx.masks, ctx.operators, ctx.settings = masks, (before, after), (order, negative_slope)
        return delta

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        order, negative_slope = ctx.settings
        grad = grad.contiguous()
        grad_signal = buffers.empty(*grad.shape)
        grad_bias = torch.zeros(grad.size(1))
        arrays = (grad.numpy(), order, np.float32(negative_slope), *_as_arrays(ctx.masks))
        before, after = ctx.operators
        _over_columns(_gradient_columns, grad, before, after, (*arrays, grad_signal.numpy(), grad_bias.numpy()))
        return grad_signal, grad_bias, None, None, None, None


def _as_arrays(masks: list[Tensor]) -> list[np.ndarray]:
    return [mask.numpy() for mask in masks] or [_NO_MASK, _NO_MASK]


def _over_columns(
    kernel: Any, like: Tensor, before: SparseOperator, after: SparseOperator, arguments: tuple[Any, ...]
) -> None:
    """Run a kernel on equal shares of the columns, one for each thread."""
    num_nodes, channels = like.shape
    threads = num_threads() if like.numel() >= 1 << 17 else 1
    cuts = [channels * part // threads for part in range(threads + 1)]
    width = max(32, _BLOCK_BYTES // (4 * max(1, num_nodes)) // 32 * 32)
    matrices = [array.numpy() for op in (before, after) for array in (op.indptr, op.indices, op.values)]
    calls = [(first, last, min(width, last - first), *matrices, *arguments) for first, last in pairwise(cuts)]
    run_parallel("propagation", kernel, [call for call in calls if call[0] < call[1]])


@compile_kernel()
def _hops(indptr, indices, values, block, spare, width, order):  # type: ignore[no-untyped-def]
    """The matrix applied `order` times to a block; the two blocks take turns, the one with the result is returned."""
    source, target = block, spare
    for _ in range(order):
        for row in range(indptr.shape[0] - 1):
            out = target[row]
            for f in range(width):
                out[f] = np.float32(0)
            for entry in range(indptr[row], indptr[row + 1]):
                value = values[entry]
                neighbour = source[indices[entry]]
                for f in range(width):
                    out[f] += value * neighbour[f]
        source, target = target, source
    return source


@compile_kernel()
def _delta_columns(  # type: ignore[no-untyped-def]
    first, last, width, indptr, indices, values, indptr_t, indices_t, values_t,
    signal, bias, order, slope, delta, mask, mask_t,
):  # fmt: skip
    num_nodes = signal.shape[0]
    linear = mask.shape[0] == 0
    block = np.empty((num_nodes, width), dtype=np.float32)
    spare = np.empty((num_nodes, width), dtype=np.float32)
    for start in range(first, last, width):
        w = min(width, last - start)
        for side in range(2):
            for row in range(num_nodes):
                here, given = block[row], signal[row, start : start + w]
                for f in range(w):
                    here[f] = given[f]
            if side == 0:
                h = _hops(indptr, indices, values, block, spare, w, order)
            else:
                h = _hops(indptr_t, indices_t, values_t, block, spare, w, order)
            signs = mask if side == 0 else mask_t
            for row in range(num_nodes):
                values_here, out = h[row], delta[row, start : start + w]
                if not linear:
                    offset, sign = bias[start : start + w], signs[row, start : start + w]
                    for f in range(w):
                        values_here[f] += offset[f]
                    for f in range(w):
                        sign[f] = values_here[f] > 0
                    for f in range(w):
                        values_here[f] = max(values_here[f], slope * values_here[f])
                if side == 0:
                    for f in range(w):
                        out[f] = -values_here[f]
                else:
                    for f in range(w):
                        out[f] += values_here[f]


@compile_kernel()
def _gradient_columns(  # type: ignore[no-untyped-def]
    first, last, width, indptr, indices, values, indptr_t, indices_t, values_t,
    grad, order, slope, mask, mask_t, grad_signal, grad_bias,
):  # fmt: skip
    num_nodes = grad.shape[0]
    linear = mask.shape[0] == 0
    block = np.empty((num_nodes, width), dtype=np.float32)
    spare = np.empty((num_nodes, width), dtype=np.float32)
    sums = np.zeros(width, dtype=np.float64)
    for start in range(first, last, width):
        w = min(width, last - start)
        sums[:] = 0.0
        for side in range(2):
            factor = np.float32(-1) if side == 0 else np.float32(1)
            signs = mask if side == 0 else mask_t
            for row in range(num_nodes):
                here, given = block[row], grad[row, start : start + w]
                if linear:
                    for f in range(w):
                        here[f] = factor * given[f]
                else:
                    sign = signs[row, start : start + w]
                    for f in range(w):
                        here[f] = factor * given[f] * (slope + (np.float32(1) - slope) * np.float32(sign[f]))
                    for f in range(w):
                        sums[f] += here[f]
            if side == 0:
                h = _hops(indptr, indices, values, block, spare, w, order)
            else:
                h = _hops(indptr_t, indices_t, values_t, block, spare, w, order)
            for row in range(num_nodes):
                result, out = h[row], grad_signal[row, start : start + w]
                if side == 0:
                    for f in range(w):
                        out[f] = result[f]
                else:
                    for f in range(w):
                        out[f] += result[f]
        for f in range(w):
            grad_bias[start + f] = sums[f]
