"""dH of one SGC layer in one go: the last hop of each graph, bias and activation go straight into the result.

What is kept for the backward pass is one bit of information per entry and graph: the sign before the activation. The
twin is `TopoTERModel.delta` without it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from topoter.kernels import buffers
from topoter.kernels.compiled import compile_kernel, run_parallel
from topoter.kernels.sparse import SparseOperator, equal_work, multiply, row_of_product

_NO_SIGNS = np.empty((0, 0), dtype=np.bool_)


def sgc_delta(
    signal: Tensor, bias: Tensor, before: SparseOperator, after: SparseOperator, order: int, negative_slope: float
) -> Tensor:
    """LeakyReLU(after^k signal + bias) - LeakyReLU(before^k signal + bias), [N, F]; both operators symmetric."""
    delta: Tensor = _Delta.apply(signal, bias, before, after, order, negative_slope)
    return delta


class _Delta(torch.autograd.Function):
    @staticmethod
    def forward(ctx, signal, bias, before, after, order, negative_slope):  # type: ignore[no-untyped-def]
        signal = signal.detach().contiguous()
        delta = buffers.empty(*signal.shape)
        # Without an activation the bias cancels out and no sign matters.
        linear = negative_slope == 1
        signs = [None if linear else buffers.empty(*signal.shape, dtype=torch.bool) for _ in (before, after)]
        for operator, sign, is_after in zip((before, after), signs, (False, True)):
            h = _hops(operator, signal, order - 1)
            kept = _NO_SIGNS if sign is None else sign.numpy()
            arguments = (h.numpy(), bias.detach().numpy(), np.float32(negative_slope), kept, is_after, delta.numpy())
            _over_rows(_last_hop, operator, arguments)
        ctx.signs, ctx.operators, ctx.settings = signs, (before, after), (order, negative_slope)
        return delta

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        order, negative_slope = ctx.settings
        grad = grad.contiguous()
        grad_signal = buffers.empty(*grad.shape)
        grad_bias = torch.zeros(grad.size(1))
        nothing = np.empty(grad.size(1), dtype=np.float32)
        for operator, sign, is_after in zip(ctx.operators, ctx.signs, (False, True)):
            h = grad
            if sign is not None:
                h = buffers.empty(*grad.shape)
                inputs = (grad.numpy(), sign.numpy(), np.float32(negative_slope), h.numpy())
                total = torch.from_numpy(sum(_over_rows(_through_activation, operator, inputs))).float()
                grad_bias += total if is_after else -total
            h = _hops(operator, h, order - 1)
            arguments = (h.numpy(), nothing, np.float32(1), _NO_SIGNS, is_after, grad_signal.numpy())
            _over_rows(_last_hop, operator, arguments)
        return grad_signal, grad_bias, None, None, None, None


def _hops(operator: SparseOperator, h: Tensor, count: int) -> Tensor:
    for _ in range(count):
        h = multiply(operator, h)
    return h


def _over_rows(kernel: Any, operator: SparseOperator, arguments: tuple[Any, ...]) -> list[Any]:
    """Run a kernel on shares of the rows that hold as many entries, one for each thread."""
    matrix = (operator.indptr.numpy(), operator.indices.numpy(), operator.values.numpy())
    cuts = equal_work(matrix[0], arguments[0].shape[1])
    return run_parallel("propagation", kernel, [(start, stop, *matrix, *arguments) for start, stop in pairwise(cuts)])


@compile_kernel()
def _last_hop(  # type: ignore[no-untyped-def]
    start, stop, indptr, indices, values, source, bias, slope, signs, is_after, out
):  # fmt: skip
    """The last propagation of one graph, then bias and activation: subtracted from `out`, or added to it.

    Without room for signs there is no bias and no activation.
    """
    width = source.shape[1]
    linear = signs.shape[0] == 0
    h = np.empty(width, dtype=np.float32)
    for row in range(start, stop):
        row_of_product(row, indptr, indices, values, source, h)
        if not linear:
            sign = signs[row]
            for f in range(width):
                h[f] += bias[f]
            for f in range(width):
                sign[f] = h[f] > 0
            for f in range(width):
                h[f] = max(h[f], slope * h[f])
        target = out[row]
        if is_after:
            for f in range(width):
                target[f] += h[f]
        else:
            for f in range(width):
                target[f] = -h[f]


@compile_kernel()
def _through_activation(  # type: ignore[no-untyped-def]
    start, stop, indptr, indices, values, grad, signs, slope, out
):  # fmt: skip
    """The gradient before the activation, into `out`; returns its sum over these rows, which is the bias's."""
    width = out.shape[1]
    sums = np.zeros(width, dtype=np.float64)
    for row in range(start, stop):
        here, given, sign = out[row], grad[row], signs[row]
        for f in range(width):
            here[f] = given[f] * (slope + (np.float32(1) - slope) * np.float32(sign[f]))
        for f in range(width):
            sums[f] += here[f]
    return sums
